"""PyTorch's tensors as bytes: which may be moved without PyTorch, and when that pays.

PyTorch does not see such a move. So nothing may be lost by that: no gradient, no trace, no mode or
subclass that intercepts operations, no check of the storage.
"""

from contextlib import nullcontext
from functools import cache
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.profiler import record_function

from tileops._plan import MOST_AXES, Plan
from tileops._texts import type_name
from tileops.errors import OutputError
from tileops.execute import device, host
from tileops.execute._memory import Memory, as_array
from tileops.execute.torch_cost import steps_cost_less

try:
    # These tell whether anything else has to see an operation. Only `_is_tracing` has a public
    # name: `torch.jit.is_tracing`, which takes several times as long, but which TorchDynamo traces.
    from torch._C import (
        DispatchKey,
        _are_functorch_transforms_active,
        _dispatch_tls_is_dispatch_key_excluded,
        _is_torch_function_mode_enabled,
        _is_tracing,
        _len_torch_dispatch_stack,
    )
    from torch.autograd import _profiler_enabled
    from torch.overrides import _get_current_function_mode_stack
except ImportError:  # private names may be missing in another version of PyTorch
    _HAS_PRIVATE_NAMES = False
else:
    _HAS_PRIVATE_NAMES = hasattr(forward_ad, "_current_level")

try:
    from torch.utils._device import DeviceContext
except ImportError:  # the class is private, and may be missing
    DeviceContext = None

_FEWEST = 3 * 2**23
"""The fewest elements of a result on a GPU for which our own kernel saves time."""

PLAIN = (torch.Tensor, torch.nn.Parameter)
"""Classes of tensors that consist of nothing but their bytes."""

_MOVED = PLAIN if _HAS_PRIVATE_NAMES else ()
"""The classes whose bytes are moved here."""


def is_plain(x: Any) -> bool:
    """Whether a tensor is of no subclass, holds its values as they are, and nothing else sees it.

    A trace would keep the sizes that a copy in several steps is given, and transforms of torch.func
    have rules of their own for each step.
    """
    return (
        type(x) in _MOVED
        and not (x.is_conj() or x.is_neg() or x.is_quantized)
        and not (_is_tracing() or _len_torch_dispatch_stack() or _are_functorch_transforms_active())
        and not (_is_torch_function_mode_enabled() and _is_intercepted())
    )


def _is_intercepted() -> bool:
    """Whether any mode other than a default device intercepts functions."""
    return any(type(mode) is not DeviceContext for mode in _get_current_function_mode_stack())


def pays(x: Any, plan: Plan, strides: tuple[int, ...] | None = None) -> bool:
    """Whether moving a tensor's bytes ourselves may take less time than PyTorch's copy.

    `strides` are the strides of `out`, if there is one.
    """
    if len(plan.shape) > MOST_AXES:
        return False
    if _is_on_gpu(x):
        return device.pays(plan, x.element_size(), _FEWEST) and _cuda() is not None
    return (
        x.is_cpu
        and plan.nbytes >= host.LEAST
        and steps_cost_less(plan, x.stride(), strides, torch.get_num_threads())
    )


def _is_on_gpu(x: Any) -> bool:
    """Whether a tensor lies in the memory of a GPU; tests replace this where there is no GPU."""
    return x.is_cuda  # type: ignore[no-any-return]


def is_recording() -> bool:
    """Whether PyTorch records gradients, which it may not do although they are enabled.

    It does not in inference mode, nor in a `__torch_dispatch__`, which autograd calls.
    """
    return (
        torch.is_grad_enabled()
        and not torch.is_inference_mode_enabled()
        and not (
            _HAS_PRIVATE_NAMES
            and _dispatch_tls_is_dispatch_key_excluded(DispatchKey.AutogradFunctionality)
        )
    )


def is_private(x: Any) -> bool:
    """Whether the bytes of a plain tensor may be moved behind PyTorch's back.

    They may not be under forward gradients, which have to see every operation.
    """
    return forward_ad._current_level < 0 and address(x) != 0  # noqa: SLF001 (no public name)


def is_stored(x: Any) -> bool:
    """Whether a tensor's storage has all of its elements, which a resized storage may lack.

    PyTorch's own operations then raise an error.
    """
    elements = x.numel()
    if elements == 0:
        return True
    if not x.is_contiguous():
        elements = 1 + sum(s * (n - 1) for n, s in zip(x.shape, x.stride(), strict=True))
    end = x.storage_offset() + elements
    return bool(x.untyped_storage().nbytes() >= end * x.element_size())


def move(x: Any, plan: Plan, out: Any) -> bool:
    """Write the repetition of `x` into `out`; return False if PyTorch's own copy has to do it."""
    with record_function("tileops::repeat") if _profiler_enabled() else nullcontext():
        if _is_on_gpu(x):
            return _cuda().repeat(x, plan, out)  # type: ignore[no-any-return]
        written = as_array(memory(out), writable=True)
        host.write(as_array(memory(x)), plan, written, torch.get_num_threads())
        return True


@cache
def _cuda() -> Any:
    """Return the module that launches kernels, or None if none can be compiled here."""
    if torch.version.hip:
        return None
    try:
        from tileops.execute import torch_cuda  # noqa: PLC0415 (few machines have a GPU)
    except (ImportError, RuntimeError):
        return None
    return torch_cuda


def memory(x: Any) -> Memory:
    """Say where the elements of a tensor lie."""
    size = x.element_size()
    return Memory(address(x), tuple(x.shape), tuple(s * size for s in x.stride()), size, x)


def check_stored(name: str, which: str, tensor: Any) -> None:
    """Refuse a tensor without an address, and a tensor whose storage lacks some of its elements."""
    if address(tensor) == 0 and tensor.numel() != 0 and not _is_freed(tensor):
        raise OutputError(
            f"{name}: {which} is {type_name(type(tensor))} without an address (traced, fake, "
            f"distributed, or inside torch.func), so that an overlap of input and out cannot be "
            f"ruled out; omit out="
        )
    if not is_stored(tensor):
        raise OutputError(
            f"{name}: {which} has shape {tuple(tensor.shape)}, but its storage was resized to "
            f"fewer bytes than that takes; pass a tensor whose storage holds all of its elements"
        )


def _is_freed(x: Any) -> bool:
    """Whether a tensor's storage has been resized to nothing."""
    try:
        return x.untyped_storage().nbytes() == 0  # type: ignore[no-any-return]
    except RuntimeError:  # the tensor has no storage
        return False


def address(x: Any) -> int:
    """Return the address of the first element, or 0 for a tensor without memory of its own."""
    try:
        return x.data_ptr()  # type: ignore[no-any-return]
    except (RuntimeError, UserWarning):  # PyTorch warns if the tensor is fake
        return 0
