"""NumPy: arrays of every dtype, scalars, masked arrays and other subclasses."""

import copy
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tileops._plan import Plan, sum_groups
from tileops._rules import Operator
from tileops._texts import type_name
from tileops.errors import DTypeError, OutputError
from tileops.execute import _out, host
from tileops.execute._memory import memory_of
from tileops.execute.array_api import Executor, spread, wide_dtype

PLAIN = (np.ndarray, np.memmap)
"""Classes that add nothing to a result. A memmap's result lies in memory, not in the file."""

_MASKED_SCALARS = (type(np.ma.masked), np.ma.mvoid)
"""What a masked array's elements and reductions are where they are masked."""

_FEWEST_SUMMED = 16
"""The fewest repeats worth a sum of their own: NumPy sums over several axes in short loops, up to
nine times as long, but the sum of a few repeats is an array that takes as long to write."""

_MOST_FLAT = 32
"""The most axes of an array over whose elements NumPy iterates."""


class NumPy(Executor):
    """Copies in the memory of the CPU, and broadcasts views."""

    __slots__ = ()

    library = "numpy"

    int64 = np.dtype(np.int64)

    plain = np.ndarray

    def array(self, x: Any) -> Any:
        """Return the array that a proxy stands for, and a masked scalar as an array of rank 0."""
        if x.__class__ is not type(x):
            x = x.view()  # from the proxy itself, NumPy makes arrays of another dtype
        if not isinstance(x, _MASKED_SCALARS):
            return x
        return np.ma.array(x, subok=False, hard_mask=x.hardmask)

    def shape(self, name: str, x: Any, which: str = "the input") -> tuple[int, ...]:
        """Return the shape, whose sizes are always known."""
        return x.shape  # type: ignore[no-any-return]

    def dtype(self, x: Any) -> str:
        """Name the dtype; "string" for text, and for objects that are all of type str."""
        name = _name(x.dtype)
        if name is None:
            values = x if x.ndim <= _MOST_FLAT else x.reshape(-1)
            is_text = all(isinstance(value, str) for value in values.flat)
            return "string" if is_text else f"{x.dtype.name} (not all of it str)"
        return name

    def itemsize(self, x: Any) -> int:
        """Return the bytes of an element, including its mask; for an object, of its reference."""
        mask = np.ma.getmask(x) if isinstance(x, np.ma.MaskedArray) else np.ma.nomask
        # A subclass may name the dtype of a part, as Astropy's distributions name that of a sample.
        return int(x.itemsize) + (0 if mask is np.ma.nomask else mask.dtype.itemsize)

    def check(self, operator: Operator, x: Any, plan: Plan) -> None:
        """Refuse subclasses whose meaning the result could not carry."""
        _check_masked(operator.name, "the input", x)
        values = x.baseclass if isinstance(x, np.ma.MaskedArray) else type(x)
        if issubclass(values, np.matrix) and len(plan.shape) != x.ndim:
            plain = "numpy.asarray(x)"
            if isinstance(x, np.ma.MaskedArray):
                plain = f"numpy.ma.array({plain}, mask=x.mask), which keeps values and mask"
            raise DTypeError(
                f"{operator.name}: the input is a numpy.matrix, which has two axes, and the result "
                f"has {len(plan.shape)}; pass an array that is not a matrix, such as {plain}"
            )

    def view(self, x: Any, plan: Plan) -> Any:
        """Broadcast without a copy; the result is read-only."""
        flags = x.flags
        # The last two are `is_buffer`, without a call.
        if type(x) is np.ndarray and plan.strides and flags.c_contiguous and flags.num >= 0:
            # The view that np.broadcast_to returns, in a tenth of its time.
            try:
                result: Any = np.ndarray(plan.shape, x.dtype, x, 0, plan.strides)
            except TypeError:  # since NumPy 2.5, for StringDType
                return np.broadcast_to(x, plan.shape)
            result.flags.writeable = False
            return result
        if isinstance(x, np.ma.MaskedArray) and x.dtype.names:
            return None  # NumPy makes a whole new mask for a view of masked records
        if not plan.is_view:
            return None
        if not _has_own_functions(x):
            return _with_metadata(x, _broadcast, plan)
        # A result that merges axes and still is a view is empty, so `_tile` copies nothing.
        return self._tile(x, plan) if plan.merges else np.broadcast_to(x, plan.shape, subok=True)

    def copy(self, x: Any, plan: Plan) -> Any:
        """Write into new memory."""
        if type(x) is np.ndarray:
            return host.new(x, plan)
        return self._tile(x, plan) if _has_own_functions(x) else _with_metadata(x, host.new, plan)

    @staticmethod
    def _tile(x: Any, plan: Plan) -> Any:
        """Have the array's class carry out np.tile, which may keep the order of its strides."""
        result = np.tile(x, plan.repeats)
        # Where nothing is repeated, np.tile of some classes copies only the values.
        is_new = plan.repeated and result.flags.c_contiguous
        return result if is_new else np.copy(result, "C", subok=True)

    def write(self, name: str, x: Any, plan: Plan, out: Any) -> None:
        """Write into `out`, a plain array of any strides."""
        if type(x) is not np.ndarray or type(out) is not np.ndarray:
            _out.check_class(name, np.ndarray, out)
            x, out = _plain(name, "input", x), _plain(name, "out", out)
        _out.check_layout(name, x, out, plan.shape)
        if not out.flags.writeable:
            raise OutputError(f"{name}: out is read-only; pass a writable array")
        if np.may_share_memory(x, out) or not out.flags.forc:
            _out.check_memory(name, memory_of(x), memory_of(out))
        host.write(x, plan, out)

    def sum(self, name: str, g: Any, plan: Plan, shape: tuple[int, ...]) -> Any:
        """Sum over what a plan repeats, in any byte order, also of subclasses and masked arrays."""
        _check_masked(name, "g", g)
        if isinstance(g, np.ma.MaskedArray) and issubclass(g.baseclass, np.matrix):
            g = np.ma.array(np.asarray(g), mask=np.ma.getmask(g))
        is_plain = type(g) in PLAIN or isinstance(g, (np.generic, np.matrix))
        total = _as_array(g) if is_plain else g
        if g.size == 0:
            # NumPy's sum would mask these zeros, or make them in a dtype in which they take more
            # bytes than any array.
            return np.zeros_like(total, order="C", shape=shape)
        if plan.repeated:
            dtype = np.dtype(wide_dtype(self.dtype(g)) or g.dtype).type  # of the native byte order
            total = total.reshape(plan.spread)
            for axes in sum_groups(plan, _FEWEST_SUMMED):
                total = total.sum(axis=axes, dtype=dtype, keepdims=True)
        else:
            total = np.copy(total, "C", subok=True)
        return total.astype(g.dtype, order="C", copy=False).reshape(shape)

    def from_numpy(self, array: Any, device: str | None) -> Any:
        """Return the array itself."""
        return array


@lru_cache(maxsize=256)
def _name(dtype: Any) -> str | None:
    """Name a dtype, which takes NumPy 2 µs; None if the name depends on the elements."""
    if dtype.kind == "O" or hasattr(dtype, "na_object"):  # such text may hold that object
        return None
    return "string" if dtype.kind in "UT" else str(dtype.name)


def _check_masked(name: str, which: str, x: Any) -> None:
    """Refuse a subclass of masked arrays: masked arrays drop what their subclasses add."""
    if isinstance(x, np.ma.MaskedArray) and type(x) is not np.ma.MaskedArray:
        raise DTypeError(
            f"{name}: {which} is {type_name(type(x))}, an unknown subclass of masked arrays; pass "
            f"numpy.ma.array(x, subok=False), which keeps values and mask"
        )


def _plain(name: str, which: str, array: Any) -> Any:
    """Return an array as a plain array; refuse an array whose class adds to its values."""
    if type(array) not in PLAIN and not isinstance(array, np.generic):
        raise DTypeError(
            f"{name}: out= works between plain NumPy arrays, and the {which} is "
            f"{type_name(type(array))}; pass numpy.ndarray, or omit out="
        )
    return _as_array(array)


def _as_array(x: Any) -> Any:
    """Return a scalar or subclass as a plain array; np.asarray would widen text of no width."""
    is_empty = isinstance(x, np.generic) and x.dtype.itemsize == 0
    return np.ndarray((), x.dtype) if is_empty else np.asarray(x)


def _has_own_functions(x: Any) -> bool:
    """Whether an array's class overrides NumPy's functions, and so may add to each element."""
    own = getattr(type(x), "__array_function__", None)  # a scalar has none
    return own not in (None, np.ndarray.__array_function__)


def _broadcast(values: Any, plan: Plan) -> Any:
    if not plan.merges:
        return np.broadcast_to(values, plan.shape)
    return spread(np, values, plan).reshape(plan.shape)


def _with_metadata(x: Any, make: Callable[[Any, Plan], Any], plan: Plan) -> Any:
    """Make the result from an array's values, and give it what the array's class adds to them."""
    if type(x) in PLAIN or isinstance(x, np.generic):
        return make(_as_array(x), plan)
    if type(x) is np.ma.MaskedArray:
        result: Any = make(np.asarray(x), plan).view(np.ma.MaskedArray)
        result._update_from(x)  # noqa: SLF001 (the constructor would fix the fill value)
        result._fill_value = copy.copy(result._fill_value)  # noqa: SLF001 (is changed in place)
        mask = np.ma.getmask(x)
        if mask is not np.ma.nomask:
            result._mask = make(mask, plan)  # noqa: SLF001 (the property would copy the mask)
        return result
    # As in `np.broadcast_to`, `__array_finalize__` gives the result what a subclass adds.
    return np.ndarray.__array_wrap__(x, make(np.asarray(x), plan), None, False)


executor = NumPy()
