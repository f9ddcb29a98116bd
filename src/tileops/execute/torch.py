"""PyTorch: tensors on any device, with their gradients."""

from typing import Any

import numpy as np
import torch

from tileops._plan import Plan, cached_plan, make_plan
from tileops._rules import Operator
from tileops.errors import DTypeError, OutputError
from tileops.execute import _out
from tileops.execute._memory import Memory
from tileops.execute.array_api import Executor

_AS_BYTES = frozenset(
    getattr(torch, name)
    for name in (
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)),
        *("bits1x8", "bits2x4", "bits4x2", "bits8", "bit"),
    )
    if hasattr(torch, name)
)
"""Dtypes narrower than a byte, and raw bits: stored in whole bytes, and copied by no kernel."""

_PACKED = (torch.quint4x2, torch.quint2x4)

_UNIFORM = (torch.per_tensor_affine, torch.per_tensor_symmetric)


class Torch(Executor):
    """Repeats by the library's own operation, which records the gradient."""

    library = "torch"

    max_rank = None

    def shape(self, operator: str, x: Any) -> tuple[int, ...]:
        """Give the shape; sizes may be symbolic while tracing."""
        if x.is_nested:
            raise DTypeError(
                f"{operator}: the input is a nested tensor, whose rows differ in size, so that no "
                f"axis has one to repeat; pass torch.nested.to_padded_tensor(x, 0) or each row"
            )
        # Under torch.jit.trace sizes are tensors.
        return tuple(n if isinstance(n, int | torch.SymInt) else int(n) for n in x.shape)

    def itemsize(self, x: Any) -> int:
        """Give the bytes of an element."""
        return int(x.dtype.itemsize)

    def plan(
        self, operator: Operator, shape: tuple[int, ...], counts: tuple[int, ...], itemsize: int
    ) -> Plan:
        """Plan; without the cache under torch.compile, which traces through it with a warning."""
        make = make_plan if torch.compiler.is_compiling() else cached_plan
        return make(operator, shape, counts, itemsize)

    def check(self, operator: str, x: Any, plan: Plan) -> None:
        """Refuse tensors without strides, and those quantised along an axis."""
        super().check(operator, x, plan)
        if x.layout is not torch.strided:
            raise DTypeError(
                f"{operator}: the input has layout {x.layout}; only torch.strided tensors are "
                f"repeated; pass x.to_dense()"
            )
        if x.dtype in _PACKED:
            raise DTypeError(
                f"{operator}: the input has dtype {x.dtype}, several elements a byte, which the "
                f"library does not copy; pass x.dequantize()"
            )
        if x.is_quantized and x.qscheme() not in _UNIFORM:
            raise DTypeError(
                f"{operator}: the input is quantised along axis {x.q_per_channel_axis()}, whose "
                f"scales the result could not carry; pass x.dequantize() or x.int_repr()"
            )

    def view(self, x: Any, plan: Plan) -> Any:
        """Expand without a copy; a write to the input shows in the result."""
        return _spread(x, plan).reshape(plan.shape) if plan.is_view else None

    def copy(self, x: Any, plan: Plan) -> Any:
        """Repeat into new memory."""
        if x.dtype in _AS_BYTES:
            return x.view(torch.uint8).repeat(plan.repeats).view(x.dtype)
        return x.repeat(plan.repeats)

    def write(self, operator: str, x: Any, plan: Plan, out: Any) -> None:
        """Write through a view of `out` whose axes are split like the plan's."""
        _out.check_class(operator, torch.Tensor, out)
        if out.layout is not torch.strided or out.is_quantized or x.is_quantized:
            raise DTypeError(
                f"{operator}: out= works between dense tensors that are not quantised; "
                f"leave out= away"
            )
        if torch.is_grad_enabled() and (x.requires_grad or out.requires_grad):
            raise OutputError(
                f"{operator}: out= records no gradient, and the input or out requires one; "
                f"leave out= away, or call under torch.no_grad()"
            )
        if out.is_inference() and not torch.is_inference_mode_enabled():
            raise OutputError(
                f"{operator}: out is an inference tensor, which is written in inference mode "
                f"only; pass out.clone(), or call under torch.inference_mode()"
            )
        _out.check_layout(operator, x, out, plan)
        if not x.is_meta:
            _out.check_memory(operator, _memory(operator, x), _memory(operator, out))
        if x.dtype in _AS_BYTES:
            x, out = x.view(torch.uint8), out.view(torch.uint8)
        out.view(plan.spread).copy_(_spread(x, plan))

    def is_symbolic(self, count: Any) -> bool:
        """Whether a count is a symbolic integer of dynamic shapes."""
        return isinstance(count, torch.SymInt)

    def from_numpy(self, array: Any, device: str | None) -> Any:
        """Copy a NumPy array onto a device, such as "cpu" or "cuda:1"."""
        if array.dtype.name == "bfloat16":
            return torch.tensor(array.view(np.int16), device=device).view(torch.bfloat16)
        return torch.tensor(array, device=device)

    def to_numpy(self, x: Any) -> Any:
        """Copy a tensor to the host."""
        x = x.detach().resolve_conj().resolve_neg().cpu()
        if x.dtype is torch.bfloat16:
            import ml_dtypes  # noqa: PLC0415 (NumPy knows this dtype through another package)

            return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        return x.numpy()

    def devices(self) -> list[str]:
        """Name the CPU and each GPU."""
        return ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]


def _spread(x: Any, plan: Plan) -> Any:
    return x.reshape(plan.split).expand(plan.spread)


def _memory(operator: str, x: Any) -> Memory:
    size = x.element_size()
    try:
        address = x.data_ptr()
    except RuntimeError:
        address = 0
    if address == 0 and x.numel():
        raise OutputError(
            f"{operator}: the input or out is a {type(x).__name__} without memory of its own "
            f"(traced, fake, or inside torch.func), so that an overlap with out cannot be ruled "
            f"out; leave out= away"
        )
    return Memory(address, tuple(x.shape), tuple(s * size for s in x.stride()), size)


executor = Torch()
