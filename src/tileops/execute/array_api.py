"""Any library of the Array API standard: the meaning of Tile and Expand in three calls.

The other modules of this package override what their library does better, or
what the standard lacks.
"""

from importlib import import_module
from operator import index
from typing import Any

import numpy as np

from tileops._plan import Plan, cached_plan, make_plan
from tileops._rules import Operator
from tileops._texts import type_name
from tileops.errors import DTypeError, ShapeError

_UNKNOWN = 16
"""The bytes assumed for an element whose dtype does not tell its size, such as text."""

_NARROW_FLOATS = ("float16", "bfloat16", "float8_", "float6_", "float4_")


def wide_dtype(name: str) -> str | None:
    """Name the wider dtype in which a dtype of narrow floats is summed; None for any other."""
    if name in {"complex32", "bcomplex32"}:
        return "complex64"
    return "float32" if name.startswith(_NARROW_FLOATS) else None


def spread(xp: Any, x: Any, plan: Plan) -> Any:
    """Broadcast an array to the axes that a plan's last reshape merges."""
    return xp.broadcast_to(xp.reshape(x, plan.split), plan.spread)


def native(array: Any) -> Any:
    """Return an array in this machine's byte order, the only one in most libraries."""
    dtype = array.dtype
    return array if dtype.isnative else array.astype(dtype.newbyteorder("="))


class Executor:
    """What is known of a library: how it carries out a plan, and how arrays get in and out.

    Each library has one executor. PyTorch's has no attributes, because torch.compile would guard
    them. A parameter `name` is the name with which errors begin: that of the operator, or of
    whatever else calls.
    """

    __slots__ = ()

    library = ""
    """The library's name."""

    how_to_be_static = "pass Python's ints in place of the array"
    """What to pass as counts instead of an array whose values are not known now."""

    max_rank: int | None = 64
    """The most axes of an array, None for no limit; most libraries build on NumPy, which has 64.

    It is checked only for results of more than `MOST_AXES` axes; a lower limit is left to the
    library's own error.
    """

    int64: Any = None
    """The dtype int64, if the library's arrays are in the table of the most common classes."""

    plain: Any = None
    """The class whose arrays `plan` takes without `shape`, `itemsize` and `check`, which together
    would take as long as a small copy; None if there is no such class."""

    def __reduce__(self) -> Any:
        """Make copies and pickles give this executor again, so that a library has only one."""
        from tileops.execute import executor_named  # noqa: PLC0415 (it imports this module)

        return executor_named, (self.library,)

    def namespace(self, x: Any) -> Any:
        """Return the namespace with the standard's functions for an array."""
        return x.__array_namespace__()

    def array(self, x: Any) -> Any:
        """Return the array that an object of the library stands for, or the array itself."""
        return x

    def shape(self, name: str, x: Any, which: str = "the input") -> tuple[int, ...]:
        """Return the shape; ShapeError if a size is not known, which the standard marks by None.

        Errors call the array `which`.
        """
        try:
            shape = tuple(x.shape)
            if None not in shape:
                return tuple(size if self.is_symbolic(size) else index(size) for size in shape)
        except Exception as error:
            raise ShapeError(
                f"{name}: {which} is {type_name(type(x))}, whose shape is not a tuple of sizes; "
                f"pass an array of NumPy, PyTorch, JAX, CuPy, Dask or any Array API library"
            ) from error
        raise ShapeError(
            f"{name}: axis {shape.index(None)} of {which} has no known size "
            f"(shape {shape}); compute the array first, or declare its size"
        )

    def dtype(self, x: Any) -> str:
        """Name the dtype as the standard does; text is "string" in every library."""
        name = str(x.dtype).rpartition(".")[2]
        return "string" if name == "utf8" else name  # some libraries name text by its encoding

    def itemsize(self, x: Any) -> int:
        """Return the bytes of an element: its `itemsize`, otherwise by the standard's functions."""
        for described in (x.dtype, x):
            itemsize = getattr(described, "itemsize", None)
            if itemsize is not None:
                return int(itemsize)
        xp = self.namespace(x)
        try:
            if xp.isdtype(x.dtype, "bool"):
                return 1
            if xp.isdtype(x.dtype, "integral"):
                return int(xp.iinfo(x.dtype).bits) // 8
            parts = 2 if xp.isdtype(x.dtype, "complex floating") else 1
            return parts * int(xp.finfo(x.dtype).bits) // 8
        except Exception:  # noqa: BLE001 (a dtype that is not in the standard)
            return _UNKNOWN

    def plan(self, operator: Operator, x: Any, counts: tuple[int, ...]) -> Plan:
        """Plan the call for an array, or refuse what the rules or the library do not allow."""
        if type(x) is self.plain:
            return self.plan_shape(operator, x.shape, counts, x.itemsize)
        shape = self.shape(operator.name, x)
        plan = self.plan_shape(operator, shape, counts, self.itemsize(x))
        self.check(operator, x, plan)
        return plan

    def plan_shape(
        self, operator: Operator, shape: tuple[int, ...], counts: tuple[int, ...], itemsize: int
    ) -> Plan:
        """Plan the call for an array of a shape, or refuse what the rules do not allow."""
        try:
            return cached_plan(operator, shape, counts, itemsize)
        except TypeError:  # a plan that is not cached
            pass
        # A plan of a million axes takes long, so a rank that the rules or the library do not allow
        # is refused before it is made. Above `MOST_AXES`, no step has more axes than the result.
        rank = len(operator.align(operator.argument, shape, counts)[0])
        if self.max_rank is not None and rank > self.max_rank:
            raise ShapeError(
                f"{operator.name}: the result has {rank} axes; {self.library} arrays can "
                f"have {self.max_rank} at most; use fewer axes, or merge some"
            )
        return make_plan(operator, shape, counts, itemsize)

    def check(self, operator: Operator, x: Any, plan: Plan) -> None:
        """Refuse an array that the library cannot repeat; unless overridden, it repeats all."""

    def view(self, x: Any, plan: Plan) -> Any:
        """Return the result without a copy, or None where a view is impossible or not certain.

        The standard promises no view: `broadcast_to` may copy, as it does for sparse arrays.
        """
        return x if plan.is_identity else None

    def view_or_copy(self, x: Any, plan: Plan) -> Any:
        """Return a view or a copy where `view` returned None; unless overridden, a copy."""
        return self.copy(x, plan)

    def copy(self, x: Any, plan: Plan) -> Any:
        """Return the result in its own memory."""
        xp = self.namespace(x)
        if not plan.repeated:  # not every library's reshape copies when it is told to
            return xp.reshape(xp.asarray(x, copy=True), plan.shape)
        # Through one flat axis, because a copy without it keeps the order of the strides.
        return xp.reshape(xp.reshape(spread(xp, x, plan), (-1,), copy=True), plan.shape)

    def sum(self, name: str, g: Any, plan: Plan, shape: tuple[int, ...]) -> Any:
        """Sum an array over what a plan repeats, into a new array of the given shape."""
        xp = self.namespace(g)
        if not plan.repeated:
            return xp.reshape(xp.asarray(g, copy=True), shape)
        wide = wide_dtype(self.dtype(g))
        total = xp.sum(
            xp.reshape(g, plan.spread),
            axis=plan.repeated,
            dtype=getattr(xp, wide) if wide else g.dtype,
            keepdims=True,  # in some libraries, a sum without axes is a scalar and no array
        )
        return xp.reshape(xp.astype(total, g.dtype, copy=False), shape)

    def write(self, name: str, x: Any, plan: Plan, out: Any) -> None:
        """Write the result into `out`; an `out` that is refused is left as it was.

        The standard cannot write through strides, and some libraries cannot write
        into arrays at all, so this refuses every `out`.
        """
        raise DTypeError(
            f"{name}: out= takes arrays of NumPy, PyTorch and CuPy, and the input is an array of "
            f"{self.library}; omit out=, and use the returned array"
        )

    def is_integer(self, array: Any) -> bool:
        """Whether an array holds integers; bool does not count as an integer."""
        return self.dtype(array).startswith(("int", "uint"))

    def is_symbolic(self, count: Any) -> bool:
        """Whether a count is a symbol of the library: an unknown integer while it traces."""
        return False

    def numbers(self, array: Any) -> list[Any]:
        """Return a numeric array's values, for rank 0 or 1; raise any error if they are unknown."""
        mask = getattr(array, "mask", None)
        if mask is not None and not callable(mask) and np.any(np.asarray(mask)):
            raise ValueError("masked values are not known")
        if hasattr(array, "tolist"):
            values = array.tolist()
            return values if isinstance(values, list) else [values]
        convert = index if self.is_integer(array) else float
        return list(map(convert, array)) if array.shape else [convert(array)]

    def from_numpy(self, array: Any, device: str | None) -> Any:
        """Copy a NumPy array into the library, onto the device of this name if it has several."""
        return import_module(self.library).asarray(native(array), copy=True)

    def to_numpy(self, x: Any) -> Any:
        """Return an array's values as a NumPy array."""
        values = np.asanyarray(x)
        # NumPy makes an array of one object from an array that it does not know.
        if values.dtype == object and x.dtype != object:
            raise TypeError(f"NumPy does not know {type_name(type(x))} as an array")
        return values

    def devices(self) -> list[str]:
        """Name the devices of this machine, as `from_numpy` takes them."""
        return ["cpu"]

    def find_device(self, device: Any) -> str | None:
        """Return the library's name for a device, in lower case; None if there is no such device.

        The only device of a kind may have no number: "cpu:0" is PyTorch's "cpu".
        """
        lower = device.lower() if isinstance(device, str) else ""
        kind, _, number = lower.partition(":")
        names = (lower, kind) if number == "0" else (lower,)
        return next((name for name in names if self.has_device(name)), None)

    def has_device(self, device: str) -> bool:
        """Whether `devices` lists a device of this name, or any device if the name is its kind."""
        return any(device in {found, found.partition(":")[0]} for found in self.devices())


class Standard(Executor):
    """A library without a module here; nothing tells whether its `broadcast_to` returns views."""

    __slots__ = ("library",)

    def __init__(self, library: str) -> None:
        self.library = library

    def array(self, x: Any) -> Any:
        """Return the array that a proxy stands for: not every function takes the proxy itself."""
        return x if x.__class__ is type(x) else self.namespace(x).reshape(x, x.shape)

    def view_or_copy(self, x: Any, plan: Plan) -> Any:
        """Return what the library's own `broadcast_to` returns, where that is the result."""
        if plan.merges:
            return self.copy(x, plan)
        return self.namespace(x).broadcast_to(x, plan.shape)

    def copy(self, x: Any, plan: Plan) -> Any:
        """Repeat by the library's own tile, which keeps chunks that a reshape may merge."""
        xp = self.namespace(x)
        if not plan.repeated or not _has_tile(xp):
            return super().copy(x, plan)
        part = x
        if 0 in plan.repeats:  # not every library's tile takes a count of 0
            nothing = tuple(slice(0 if r == 0 else None) for r in plan.repeats)
            part = xp.reshape(x, plan.padded)[nothing]
        try:
            return xp.tile(part, tuple(r or 1 for r in plan.repeats))
        except (TypeError, RuntimeError):
            # Its tile may lack a dtype, in ndonnx dates and what may be missing, or a kind of
            # array, in quaxed arrays with units.
            return super().copy(x, plan)

    def is_integer(self, array: Any) -> bool:
        """Ask the library, because its dtypes may have any names."""
        return bool(self.namespace(array).isdtype(array.dtype, "integral"))


def _has_tile(xp: Any) -> bool:
    """Whether a library has a tile, which the standard has from version 2023.12 on."""
    return hasattr(xp, "tile") and getattr(xp, "__array_api_version__", "2023.12") >= "2023.12"
