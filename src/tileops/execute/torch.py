"""PyTorch: tensors on any device, with their gradients."""

from typing import Any

import numpy as np
import torch
from torch import strided
from torch.compiler import is_dynamo_compiling
from torch.jit import is_tracing

from tileops._plan import MOST_AXES, Plan, cached_plan, make_plan, sum_groups
from tileops._rules import Operator, is_equal, is_same_symbol
from tileops._texts import type_name
from tileops.errors import DTypeError, OutputError, ShapeError
from tileops.execute import _out, host
from tileops.execute.allocating import HUGE, prefer_huge_pages
from tileops.execute.array_api import Executor, native, wide_dtype
from tileops.execute.torch_bytes import (
    PLAIN,
    address,
    check_stored,
    is_plain,
    is_private,
    is_recording,
    is_stored,
    memory,
    move,
    pays,
)

_AS_BYTES = frozenset(
    getattr(torch, name)
    for name in (
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)),
        *("bits1x8", "bits2x4", "bits4x2", "bits8", "float4_e2m1fn_x2"),
    )
    if hasattr(torch, name)
)
"""Dtypes narrower than a byte, and raw bits, which PyTorch stores in bytes but cannot all copy."""

_PACKED = (torch.quint4x2, torch.quint2x4)

_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
"""Integers that PyTorch does not add, with the integers whose sums have the same bits."""

_HALVES = (torch.float16, torch.bfloat16)
"""Dtypes that PyTorch sums in float32, except where the result is a single sum."""

_LEAST_RECORDED = 512 * 1024
"""The fewest bytes of a result for which steps of our own save more time than Python takes to run
the function whose gradient is then recorded, forward and backward."""

_MOST_SUMMED = 64
"""The most axes that a tensor may have for PyTorch to sum over some of them."""

_UNIFORM = (torch.per_tensor_affine, torch.per_tensor_symmetric)

_unsafe_view = torch.ops.aten._unsafe_view.default  # noqa: SLF001
"""A reshape whose result PyTorch does not take for a view; no function of `torch` is that."""


class Torch(Executor):
    """Repeats by PyTorch's own operations, and moves bytes itself where that pays."""

    __slots__ = ()

    library = "torch"

    int64 = torch.int64

    max_rank = None

    def shape(self, name: str, x: Any, which: str = "the input") -> tuple[int, ...]:
        """Return the shape; sizes may be symbolic while tracing.

        Tensors without strides are refused, and tensors that are quantised along an axis.
        """
        if x.is_nested:
            raise DTypeError(
                f"{name}: {which} is a nested tensor, whose rows differ in size, so that not "
                f"every axis has a single size; call torch.nested.to_padded_tensor first, or pass "
                f"each row"
            )
        # TorchDynamo traces only strided tensors, and does not let a backward read their layout.
        if not is_dynamo_compiling() and x.layout is not strided:
            raise DTypeError(
                f"{name}: {which} has layout {x.layout}; only torch.strided tensors are "
                f"repeated; call its to_dense() first"
            )
        if x.is_quantized:
            self._check_quantized(name, x, which)
        try:
            shape = tuple(x.shape)
        except RuntimeError as error:
            raise ShapeError(
                f"{name}: {which} is {type_name(type(x))}, which has no shape yet; call its "
                f"module first"
            ) from error
        if shape and type(shape[0]) is not int and is_tracing():
            return tuple(map(int, shape))  # torch.jit traces sizes as tensors
        return shape

    @staticmethod
    def _check_quantized(name: str, x: Any, which: str) -> None:
        if x.dtype in _PACKED:
            raise DTypeError(
                f"{name}: {which} has dtype {x.dtype}, with several elements in a byte, which "
                f"PyTorch does not copy; call its dequantize() first"
            )
        if x.qscheme() not in _UNIFORM:
            raise DTypeError(
                f"{name}: {which} is quantised along axis {x.q_per_channel_axis()}, whose "
                f"scales the result could not carry; call its dequantize() or int_repr() first"
            )

    def itemsize(self, x: Any) -> int:
        """Return the bytes of an element; a compiled graph would keep a read of `itemsize`."""
        return x.element_size()  # type: ignore[no-any-return]

    def plan(self, operator: Operator, x: Any, counts: tuple[int, ...]) -> Plan:
        """Look for a cached plan before all checks, which would take as long as a view."""
        if not is_dynamo_compiling() and x.layout is strided and not x.is_quantized:
            try:
                return cached_plan(operator, x.shape, counts, x.element_size())
            except (TypeError, RuntimeError):  # not cached, or a nested tensor without a shape
                pass
        # Neither `operator.name` nor a default, both of which a compiled program would guard.
        shape = self.shape(operator.argument.operator_name, x, "the input")
        return self.plan_shape(operator, shape, counts, self.itemsize(x))

    def plan_shape(
        self, operator: Operator, shape: tuple[int, ...], counts: tuple[int, ...], itemsize: int
    ) -> Plan:
        """Plan the call; torch.compile would trace the cache and warn, so it plans without it."""
        if is_dynamo_compiling():
            from tileops.execute import torch_compile  # noqa: PLC0415 (it loads TorchDynamo)

            argument = operator.argument
            plan = torch_compile.plan_numbers(
                operator.align, argument.least, argument.greatest, shape, counts, itemsize
            )
            if plan is None:
                # A size is a symbol, or the rules refuse the call. With an itemsize of 0, the plan
                # has neither bytes nor strides, which would be symbols as well.
                plan = make_plan(operator, shape, counts, 0)
            return plan
        # In a trace, an itemsize of 0 gives a plan without strides, because the trace would keep
        # the sizes of a view that is made from a plan with strides.
        return super().plan_shape(operator, shape, counts, 0 if is_tracing() else itemsize)

    def view(self, x: Any, plan: Plan) -> Any:
        """Expand without a copy; a write to the input shows in the result."""
        shape = plan.shape
        if not plan.merges:
            if not plan.strides:  # no axes, a symbol, a size of 0, or PyTorch traces
                if plan.is_identity:  # an exported ONNX model would keep an Expand without effect
                    return x[...]
                shape = _sizes_to_trace(x.ndim, plan)
            return x.expand(*shape)  # PyTorch reads single sizes faster than a tuple
        if not plan.is_view:
            return None
        return x.reshape(plan.split).expand(plan.spread).reshape(plan.shape)

    def copy(self, x: Any, plan: Plan) -> Any:
        """Repeat into new memory."""
        # The size comes first: a compiled program then has no guards on `_AS_BYTES`.
        if x.element_size() == 1 and x.dtype in _AS_BYTES and not x.requires_grad:
            return x.view(torch.uint8).repeat(plan.repeats).view(x.dtype)
        if plan.nbytes == 0 or not is_plain(x):
            # In an ONNX model, `repeat` becomes an Expand and a Tile; `tile` becomes a Tile, with a
            # Reshape before it where axes are new.
            return (x.tile if x.ndim == len(plan.repeats) else x.repeat)(plan.repeats)
        if plan.nbytes < host.LEAST:
            return _repeat(x, plan)
        is_recorded = x.requires_grad and is_recording() and not x.is_inference()
        is_moved = (not is_recorded or plan.nbytes >= _LEAST_RECORDED) and pays(x, plan)
        is_ours = is_moved or (x.is_cpu and plan.nbytes >= HUGE)  # PyTorch asks for no huge pages
        if is_ours and is_private(x) and is_stored(x):
            return _Repeat.apply(x, plan, is_moved) if is_recorded else _new(x, plan, is_moved)
        groups = _sum_groups(x, plan) if is_recorded else ()
        if len(groups) > 1:
            return _repeat_in_turn(x, plan, groups)
        return _repeat(x, plan)

    def sum(self, name: str, g: Any, plan: Plan, shape: tuple[int, ...]) -> Any:
        """Sum over what a plan repeats.

        PyTorch itself sums 16-bit floats in float32, except where the result has one element: then
        each thread keeps its part of the sum in 16 bits.
        """
        if g.dtype in _AS_BYTES:
            raise DTypeError(
                f"{name}: g has dtype {g.dtype}, which PyTorch cannot sum; convert it to "
                f"whole bytes first, such as g.view(torch.uint8)"
            )
        if not plan.repeated:
            return g.reshape(shape).clone(memory_format=torch.contiguous_format)
        if len(plan.spread) > _MOST_SUMMED:
            raise ShapeError(
                f"{name}: g, or a step on the way to the result, has {len(plan.spread)} axes; "
                f"PyTorch adds up over {_MOST_SUMMED} at most; merge axes first"
            )
        signed = _SIGNED.get(g.dtype)
        if signed is not None:
            return self.sum(name, g.view(signed), plan, shape).view(g.dtype)
        wide = wide_dtype(self.dtype(g))
        if wide and (g.dtype not in _HALVES or all(is_equal(n, 1) for n in shape)):
            return self.sum(name, g.to(getattr(torch, wide)), plan, shape).to(g.dtype)
        try:
            # Where `g` has these axes already, a reshape would fix their sizes in a trace.
            is_spread = not plan.merges and len(plan.spread) == g.ndim
            spread = g if is_spread else g.reshape(plan.spread)
        except RuntimeError as error:
            if type(g) in PLAIN:  # an error of another kind, such as of a mode
                raise
            raise ShapeError(
                f"{name}: g is {type_name(type(g))}, whose axes PyTorch cannot split "
                f"({error}); replicate a DTensor first, with g.redistribute()"
            ) from error
        for axes in _sum_groups(g, plan):
            spread = spread.sum(axes, keepdim=True, dtype=g.dtype)
        return _reshape_new(spread, shape)

    def write(self, name: str, x: Any, plan: Plan, out: Any) -> None:
        """Write the result into `out`, by PyTorch's own copy or by moving bytes."""
        _out.check_class(name, torch.Tensor, out)
        if out.is_nested or out.layout is not strided or out.is_quantized or x.is_quantized:
            raise DTypeError(
                f"{name}: out= works between dense tensors that are not quantised; omit out="
            )
        if (x.requires_grad or out.requires_grad) and is_recording():
            raise OutputError(
                f"{name}: out= records no gradient, and the input or out requires one; "
                f"omit out=, or call under torch.no_grad()"
            )
        if out.is_inference() and not torch.is_inference_mode_enabled():
            raise OutputError(
                f"{name}: out is an inference tensor, which is written in inference mode "
                f"only; pass out.clone(), or call under torch.inference_mode()"
            )
        _out.check_layout(name, x, out, plan.shape)
        if not x.is_meta:
            check_stored(name, "the input", x)
            check_stored(name, "out", out)
            are_runs = x.is_contiguous() and out.is_contiguous()
            if not (are_runs and _out.are_apart(address(x), x.nbytes, address(out), out.nbytes)):
                _out.check_memory(name, memory(x), memory(out))
            if pays(x, plan, out.stride()) and is_private(x) and is_plain(x) and is_plain(out):
                if not out.is_inference():
                    # Before a byte is written, because an interrupt may stop the write halfway.
                    torch.autograd.graph.increment_version(out)
                if move(x, plan, out):
                    return
        if x.dtype in _AS_BYTES:
            x, out = x.view(torch.uint8), out.view(torch.uint8)
        _copy(x, plan, out)

    def is_symbolic(self, count: Any) -> bool:
        """Whether a count is a symbol: a SymInt, or in a trace of torch.jit a tensor."""
        return isinstance(count, torch.SymInt) or (is_tracing() and isinstance(count, torch.Tensor))

    def numbers(self, array: Any) -> list[Any]:
        """Return the values of counts; TorchDynamo can read only values of signed dtypes."""
        if is_dynamo_compiling() and not array.dtype.is_signed:
            array = array.to(torch.int64)
        return super().numbers(array)

    def from_numpy(self, array: Any, device: str | None) -> Any:
        """Copy a NumPy array onto a device, such as "cpu" or "cuda:1"."""
        if array.dtype.name == "bfloat16":
            return torch.tensor(array.view(np.int16), device=device).view(torch.bfloat16)
        return torch.tensor(native(array), device=device)

    def to_numpy(self, x: Any) -> Any:
        """Copy a tensor to the host."""
        x = x.detach().resolve_conj().resolve_neg().cpu()
        if x.dtype is torch.bfloat16:
            import ml_dtypes  # noqa: PLC0415 (NumPy knows this dtype through another package)

            return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        return x.numpy()

    def devices(self) -> list[str]:
        """Name the CPU and each GPU, or each accelerator of another kind."""
        kind = torch.accelerator.current_accelerator()
        return ["cpu", *(f"{kind}:{i}" for i in range(torch.accelerator.device_count()))]


def _sizes_to_trace(rank: int, plan: Plan) -> tuple[int, ...]:
    """Write sizes that stay as -1: an exported program would compute the symbols among them."""
    added = len(plan.shape) - rank
    axes = enumerate(zip(plan.shape, plan.repeats, strict=True))
    return tuple(-1 if i >= added and is_equal(r, 1) else n for i, (n, r) in axes)


def _sum_groups(x: Any, plan: Plan) -> tuple[tuple[int, ...], ...]:
    """Group the axes to sum over one after the other, or put them into one group.

    PyTorch's sum over axes that are no neighbours takes several times as long on a CPU, and adds up
    one number after the other, so that its error grows with their number. Narrow floats are summed
    at once, because each sum rounds them, and those of 8 bits PyTorch sums only over some axes; so
    is a single number that is repeated, such as the gradient of a sum, for which PyTorch's sum
    takes half the time; so are values that are traced or compiled, or on a GPU, where this was not
    measured. No step is kept for a plan that is not kept itself.
    """
    is_kept = plan.nbytes and len(plan.shape) <= MOST_AXES and not is_dynamo_compiling()
    if is_kept and x.is_cpu and type(x) in PLAIN and any(x.stride()):
        return (plan.repeated,) if wide_dtype(executor.dtype(x)) else sum_groups(plan)
    return (plan.repeated,)


def _reshape_new(x: Any, shape: tuple[int, ...]) -> Any:
    """Add or leave out axes of size 1 of a new tensor.

    For PyTorch the result is no view, because it refuses some writes to views.
    """
    if is_dynamo_compiling() or is_tracing() or type(x) is not torch.Tensor:
        return x.reshape(shape)
    return x if x.shape == shape else _unsafe_view(x, shape)


def _repeat(x: Any, plan: Plan) -> Any:
    """Do what PyTorch's repeat does, in less time."""
    if not plan.merges:
        # PyTorch reads single sizes faster than a tuple; at a rank of 0 there are no sizes to read.
        spread = x.expand(*plan.shape) if plan.shape else x
        return spread.clone(memory_format=torch.contiguous_format)
    if x.is_contiguous() and not x.requires_grad and (x.is_cpu or x.is_cuda):
        # One call in place of a reshape and an expand, which saves 0.8 µs. It is not used where a
        # gradient may be recorded, because its own is slower and rounds 16-bit floats once for each
        # axis, nor on other devices, some of which have no strides.
        return x.as_strided(plan.spread, plan.spread_strides).reshape(*plan.shape)
    # A reshape that merges axes has to copy, except if the input itself has a stride of 0.
    if 0 in x.stride():
        return x.repeat(plan.repeats)
    return x.reshape(*plan.split).expand(*plan.spread).reshape(*plan.shape)


def _repeat_in_turn(x: Any, plan: Plan, groups: tuple[tuple[int, ...], ...]) -> Any:
    """Repeat one group of axes after the other, so that autograd sums over one after the other."""
    spread, sizes = x.reshape(*plan.split), list(plan.split)
    for axes in reversed(groups):  # what is repeated last is summed first
        for axis in axes:
            sizes[axis] = plan.spread[axis]
        spread = spread.expand(*sizes)
    result = spread.reshape(*plan.shape)
    is_new = plan.merges and 0 not in x.stride()
    return result if is_new else result.clone(memory_format=torch.contiguous_format)


def _copy(x: Any, plan: Plan, out: Any) -> None:
    """Write by PyTorch's copy, which broadcasts, through a view of `out` if axes merge."""
    if plan.merges:
        # PyTorch reads single sizes faster than a tuple.
        out.view(*plan.spread).copy_(x.reshape(*plan.split))
    else:
        out.copy_(x)


def _new(x: Any, plan: Plan, is_moved: bool) -> Any:
    result = x.new_empty(plan.shape)
    if x.is_cpu:
        prefer_huge_pages(result.data_ptr(), plan.nbytes)
    if not (is_moved and move(x, plan, result)):
        _copy(x, plan, result)
    return result


class _Repeat(torch.autograd.Function):  # type: ignore[misc]
    """A repetition that PyTorch does not see, with the sum over the repeats as its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any, plan: Plan, is_moved: bool) -> Any:
        ctx.plan, ctx.shape = plan, x.shape
        ctx.set_materialize_grads(False)
        return _new(x, plan, is_moved)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        # A gradient that nobody computed stays None, as in PyTorch: optimizers tell it from zeros.
        total = None
        if gradient is not None:
            if not is_dynamo_compiling() and gradient.layout is not strided:
                gradient = gradient.to_dense()
            total = executor.sum("tile", gradient, ctx.plan, ctx.shape)
        return total, None, None


@is_same_symbol.register
def is_same_symint(wanted: torch.SymInt, size: Any) -> bool:
    """Guard whether two sizes are equal, or have the program check a size that it reads from data.

    Where the input's size is known not to be 1, it is that of the result, whether the size that is
    read is the same or 1.
    """
    from torch.fx.experimental import symbolic_shapes as symbols  # noqa: PLC0415 (it takes a second)

    same = size == wanted
    if symbols.guard_or_false(same):
        return True
    if not (symbols.guard_or_true(same) and symbols.statically_known_true(size != 1)):
        return bool(same)
    # With a message, PyTorch 2.13 could not export this by `strict=True`.
    torch._check(symbols.sym_or(same, wanted == 1))  # noqa: SLF001 (the name in PyTorch's docs)
    return True


executor = Torch()
