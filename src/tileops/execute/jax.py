"""JAX: its own tile and broadcast_to, eager and traced.

The general way through split axes takes three operations instead of one, and is slower in eager
calls.
"""

from functools import lru_cache, partial
from math import prod
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jax.extend.source_info_util import register_exclusion
from jax.sharding import AxisType, PartitionSpec

from tileops._plan import Plan, make_plan
from tileops._rules import LIMIT, TILE, Operator, extent, is_empty, is_equal, known
from tileops._texts import show
from tileops.errors import DTypeError, OutputTooLargeError
from tileops.execute.array_api import Executor, native, wide_dtype

try:
    from jax import enable_x64
except ImportError:  # before JAX 0.8
    from jax.experimental import enable_x64

_AT_ONCE = 8
"""The most copies of an array that one concatenation joins."""

_PARTS_OF_BYTES = frozenset(
    jnp.dtype(getattr(jnp, name))
    for name in ("int1", "uint1", "int2", "uint2", "int4", "uint4", "float4_e2m1fn")
    if hasattr(jnp, name)
)
"""Dtypes narrower than a byte."""

_TWO_BITS = (jnp.int2, jnp.uint2)
"""Dtypes that are moved and summed as bytes, because concatenating them in XLA ends the process."""

_HAS_TILE = hasattr(jax.lax, "tile")
"""Whether tile is a primitive. Before JAX 0.9 it is a broadcast and a reshape, which Explicit axes
refuse."""

_Symbol = type(jax.export.symbolic_shape("n")[0])

# What JAX reports about a program then names the caller's lines, as it does for JAX's functions.
register_exclusion(str(Path(__file__).parents[1]))


class Jax(Executor):
    """Repeats by JAX's own primitives; arrays never change, so there is no view and no `out`."""

    __slots__ = ()

    library = "jax"

    max_rank = None

    how_to_be_static = (
        "pass Python's ints and name their argument in jax.jit(..., static_argnums=...), "
        "or close over them"
    )

    def array(self, x: Any) -> Any:
        """Return the array that an object stands for, such as a parameter of Flax.

        As in JAX, the object may also stand for a number or an array of NumPy.
        """
        convert = None if isinstance(x, jax.Array) else getattr(x, "__jax_array__", None)
        if convert is None:
            return x
        array = convert()
        # `jnp.asarray` takes as long as a small copy, even where it has nothing to convert.
        return array if isinstance(array, jax.Array) else jnp.asarray(array)

    def shape(self, name: str, x: Any, which: str = "the input") -> tuple[int, ...]:
        """Return the shape; refuse a Ref, which JAX traces like an array."""
        if isinstance(x, jax.core.Tracer) and not isinstance(jax.typeof(x), jax.core.ShapedArray):
            raise DTypeError(f"{name}: {which} is a Ref of JAX, not an array; pass ref[...]")
        return super().shape(name, x, which)

    def check(self, operator: Operator, x: Any, plan: Plan) -> None:
        """Refuse a result of narrow elements that has more bits than XLA can count."""
        _check_bits(operator.name, x.dtype, plan.shape, operator.argument.name)

    def copy(self, x: Any, plan: Plan) -> Any:
        """Repeat into a new array.

        Outside of a trace, this is one call of a compiled function; `jnp.tile` makes four calls.
        """
        is_divided = _may_be_divided(x, plan)
        if isinstance(x, jax.core.Tracer):
            return _repeat(x, plan, is_divided)
        zero = _zero_bits(x.dtype)
        if zero is None:
            return _compiled(x, plan.repeats, is_divided)
        device = x.device  # a sharding if the array lies on several devices
        if isinstance(device, jax.Device):
            return _compiled(x, plan.repeats, is_divided, _resident(zero.dtype, device))
        with jax.transfer_guard_host_to_device("allow"):  # the zero is not the caller's data
            return _compiled(x, plan.repeats, is_divided, zero)

    def sum(self, name: str, g: Any, plan: Plan, shape: tuple[int, ...]) -> Any:
        """Sum over what a plan repeats; a sharded array by the transpose of its repetition.

        A reduction would replicate a sharded array first, or be refused. But JAX cannot transpose
        where axes of the mesh are mapped by hand, or sums are put off, nor under a gradient on a
        mesh of one device; there it reduces whatever needs no reshape. `jnp.sum` would turn 64 bits
        into 32 where JAX has 64 bits turned off.
        """
        if not plan.repeated:
            return super().sum(name, g, plan, shape)
        if is_empty(plan.shape):
            _check_bits(name, g.dtype, shape, "shape")  # only the sum of an empty `g` can be larger
            return _zeros(g, shape)
        wide = "int8" if g.dtype in _TWO_BITS else wide_dtype(self.dtype(g))
        if wide is not None:
            return self.sum(name, g.astype(wide), plan, shape).astype(g.dtype)
        sharding = jax.typeof(g).sharding
        is_by_hand = AxisType.Manual in sharding.mesh.axis_types
        is_whole = sharding.mesh.size <= 1 and not plan.merges
        is_reduced = is_whole or is_by_hand or _is_reduced_later(sharding)
        if not is_reduced and _may_be_sharded(g):
            return _sum_sharded(g, plan, shape)
        with enable_x64(True):  # without it, JAX 0.7 fails to reduce 64 bits
            total = jax.lax.reduce_sum(jnp.reshape(g, plan.spread), axes=plan.repeated)
        return jnp.reshape(total, shape)

    def is_symbolic(self, count: Any) -> bool:
        """Whether a count is a symbol of jax.export."""
        return isinstance(count, _Symbol)

    def from_numpy(self, array: Any, device: str | None) -> Any:
        """Copy a NumPy array onto a device, such as "cpu" or "cuda:1"."""
        array = native(array)
        kind, _, number = (device or "").partition(":")
        there = jax.device_put(array, jax.devices(kind or None)[int(number or 0)])
        if there.dtype != array.dtype:
            raise ValueError(
                f"it becomes {there.dtype}; to keep 64 bits, call "
                f"jax.config.update('jax_enable_x64', True), or start Python with JAX_ENABLE_X64=1"
            )
        return there

    def devices(self) -> list[str]:
        """Name each device of the default platform."""
        return [f"{device.platform}:{device.id}" for device in jax.devices()]

    def has_device(self, device: str) -> bool:
        """Whether any platform has this device; `devices` names only the default platform's."""
        kind, colon, number = device.partition(":")
        try:
            found = len(jax.devices(kind)) if kind else 0
        except RuntimeError:
            return False
        return number in map(str, range(found)) if colon else found > 0


def _check_bits(name: str, dtype: Any, shape: tuple[int, ...], argument: str) -> None:
    """Refuse narrow elements with more bits than XLA can count: XLA would end the process."""
    if dtype in _PARTS_OF_BYTES and extent(shape) > LIMIT // 8:
        raise OutputTooLargeError(
            f"{name}: the result's shape {show(shape)} of {dtype} is larger than any array of JAX: "
            f"XLA counts bits, up to 2**63-1; reduce the {argument} or the input"
        )


@partial(jax.jit, static_argnums=(1, 2))
def _compiled(x: Any, repeats: tuple[int, ...], is_divided: bool, zero: Any = None) -> Any:
    """Repeat in a compiled program. If a zero is given, floats are repeated as integers.

    The compiler would see through a mere view of floats as integers, and move floats. So a zero
    whose value the compiler does not know is added to the integers, bit by bit.

    JAX finds its programs by the values of the arguments, so they outlive the plan of a call.
    """
    plan = make_plan(TILE, x.shape, repeats, 0)
    if zero is None:
        return _repeat(x, plan, is_divided)
    bits = jax.lax.bitcast_convert_type(x, zero.dtype) ^ zero
    return jax.lax.bitcast_convert_type(_repeat(bits, plan, is_divided), x.dtype)


@lru_cache(maxsize=64)
def _zero_bits(dtype: Any) -> Any:
    """Return a zero of the integers that carry a dtype's bits; None if XLA keeps all bits.

    On a CPU, XLA moves bfloat16 and 8-bit floats as wider floats: subnormals of bfloat16 become 0
    if the processor has instructions for bfloat16, and 8-bit NaNs change in a concatenation.
    """
    if dtype == jnp.bfloat16:
        return np.uint16(0)
    return np.uint8(0) if dtype.name.startswith("float8") else None


def _resident(dtype: Any, device: Any) -> Any:
    """Return a zero that stays in a device's memory, because to send it takes longer."""
    zero = _kept_zero(dtype, device)
    if zero.is_deleted():  # by a caller who deletes all `jax.live_arrays`
        _kept_zero.cache_clear()
        zero = _kept_zero(dtype, device)
    return zero


@lru_cache(maxsize=64)
def _kept_zero(dtype: Any, device: Any) -> Any:
    """Return a zero that commits no result to its device, and is not a tracer even in a trace."""
    with jax.core.eval_context(), jax.transfer_guard("allow"), jax.default_device(device):
        return jax.device_put(np.zeros((), dtype))


def _repeat(x: Any, plan: Plan, is_divided: bool) -> Any:
    if plan.is_identity:
        return jnp.array(x, copy=True)  # broadcast_to would return the same buffer
    if not plan.merges and all(map(_is_size, plan.shape)):
        result = jnp.broadcast_to(x, plan.shape)
        whole = _replication(x, plan.shape) if is_divided and is_empty(plan.shape) else None
        return result if whole is None else jax.sharding.reshard(result, whole)
    if is_divided and all(map(known, plan.repeats)):
        return _concatenate(x, plan)
    return jnp.tile(x, plan.repeats)


def _is_size(count: int) -> bool:
    """Whether a count is known not to be negative; JAX broadcasts only to such sizes."""
    try:
        return bool(count >= 0)
    except Exception:  # noqa: BLE001 (its class has another place in other versions)
        return False


def _concatenate(x: Any, plan: Plan) -> Any:
    """Repeat an array whose repeated axes are shared by devices, and keep them shared.

    JAX's own tile would replicate the array, or refuse it.
    """
    if is_empty(plan.shape):
        return _zeros(x, plan.shape)
    if x.dtype in _TWO_BITS:
        return _concatenate(x.astype(jnp.int8), plan).astype(x.dtype)
    axes = list(zip(plan.padded, plan.repeats, strict=True))
    x = jnp.broadcast_to(x, [r if is_equal(n, 1) else n for n, r in axes])
    for axis, (n, r) in enumerate(axes):
        if not is_equal(n, 1):
            x = _side_by_side(x, axis, r)
    return x


def _replication(x: Any, shape: tuple[int, ...]) -> Any:
    """Return the sharding of a whole result on each device of a mesh; None without Explicit axes.

    An empty result needs it, because JAX cannot return the values of an empty sharded array.
    """
    sharding = jax.typeof(x).sharding
    if AxisType.Explicit not in sharding.mesh.axis_types:
        return None
    return sharding.update(spec=PartitionSpec(*[None] * len(shape)))


@partial(jax.jit, static_argnums=1)  # under a gradient, only a jitted function knows the devices
def _zeros(x: Any, shape: tuple[int, ...]) -> Any:
    """Return zeros on the device of an array, or on all the devices that share a sharded array."""
    if jnp.issubdtype(x.dtype, jax.dtypes.extended):  # such as the keys of random numbers
        zeros = jax.lax.full_like(x, 0, shape=shape)
    elif jax.typeof(x).weak_type:  # only without a dtype do the zeros have a weak type as well
        zeros = jax.lax.full_like(x, 0, shape=shape, sharding=_replication(x, shape))
    else:
        narrow = jax.lax.full_like(x, 0, jnp.int8, shape, sharding=_replication(x, shape))
        with enable_x64(True):  # JAX 0.7 needs it for 64 bits, and cannot compile constants of them
            zeros = jax.lax.convert_element_type(narrow, x.dtype)
    # If the result did not depend on `x`, it would be a constant on the default device.
    zeros = jax.lax.optimization_barrier((zeros, x))[0]
    return zeros if _space(x) == _space(zeros) else jax.device_put(zeros, _space(x))


def _space(x: Any) -> Any:
    """Return the memory space of an array, which JAX 0.7.0 does not tell: host or device."""
    return getattr(jax.typeof(x), "memory_space", None)


def _side_by_side(x: Any, axis: int, repeats: int) -> Any:
    """Concatenate copies of an array: of many, first half of them, and then the halves.

    The transpose adds up as many slices as there are parts, and each slice moves data between
    devices. The barrier keeps XLA from joining all steps into one concatenation.
    """
    if repeats <= _AT_ONCE:
        return jnp.concatenate([x] * repeats, axis) if repeats > 1 else x
    half = jax.lax.optimization_barrier(_side_by_side(x, axis, repeats // 2))
    return jnp.concatenate([half, half, *[x] * (repeats % 2)], axis)


def _sum_sharded(g: Any, plan: Plan, shape: tuple[int, ...]) -> Any:
    """Sum by the transpose of the repetition of an array that is sharded as `g` is."""
    kind = jax.typeof(g)
    parts = _parts(kind.sharding)[len(plan.shape) - len(shape) :]  # all None for Auto axes
    kept = (
        # `part` comes first, so that a symbolic size that no devices share is not compared.
        part if part is not None and n > 1 and n % _devices(kind.sharding.mesh, part) == 0 else None
        for n, part in zip(shape, parts, strict=True)
    )
    like = kind.update(shape=shape, sharding=kind.sharding.update(spec=PartitionSpec(*kept)))

    def repeat(x: Any) -> Any:
        result = _repeat(x, plan, True)
        is_explicit = AxisType.Explicit in kind.sharding.mesh.axis_types
        differs = is_explicit and jax.typeof(result).sharding != kind.sharding
        return jax.sharding.reshard(result, kind.sharding) if differs else result

    with enable_x64(True):  # otherwise JAX takes 64 bits for 32
        (total,) = jax.linear_transpose(repeat, like)(g)
    return total


def _parts(sharding: Any) -> Any:
    """Return the mesh axes that share each axis of an array: in JAX 0.7 the spec itself."""
    return getattr(sharding.spec, "partitions", sharding.spec)


def _is_reduced_later(sharding: Any) -> bool:
    """Whether devices have only parts of a sum, that is this array or will be its gradient."""
    spec = sharding.spec
    return bool(getattr(spec, "unreduced", None) or getattr(spec, "reduced", None))


def _devices(mesh: Any, part: Any) -> int:
    """Count the devices that share an axis."""
    names = part if isinstance(part, tuple) else (part,)
    return prod(mesh.shape[name] for name in names)


def _may_be_sharded(x: Any) -> bool:
    """Whether no device holds all of an array; of a traced array, whether that is possible.

    Explicit axes that share an array count even if a single device has all of it, because JAX
    refuses by the type. Auto axes do not tell what they share, and count in a trace. Axes that are
    mapped by hand, as in shard_map, do not count, because each device sees its own part.
    """
    if not isinstance(x, jax.core.Tracer):
        if not x.is_fully_replicated:
            return True
        sharding = x.sharding
        is_named = isinstance(sharding, jax.sharding.NamedSharding) and any(_parts(sharding))
        return is_named and any(_parts(jax.typeof(x).sharding))  # asking for the type takes 0.5 µs
    sharding = jax.typeof(x).sharding
    is_auto = AxisType.Auto in sharding.mesh.axis_types and sharding.mesh.size > 1
    return is_auto or any(_parts(sharding))


def _may_be_divided(x: Any, plan: Plan) -> bool:
    """Whether a repeated axis is divided among devices; of a traced array, whether it may be.

    An empty result of a sharded array counts as well; otherwise it would lie on the default device
    alone.
    """
    if not _may_be_sharded(x):
        return False
    sharding, is_traced = jax.typeof(x).sharding, isinstance(x, jax.core.Tracer)
    kinds = sharding.mesh.axis_types
    is_refused = AxisType.Explicit in kinds and not _HAS_TILE
    if is_refused or is_empty(plan.shape) or (is_traced and AxisType.Auto in kinds):
        return True
    are_divided = [part is not None for part in _parts(sharding)]
    if not is_traced:  # the type does not tell what Auto axes share
        parts = zip(x.shape, x.sharding.shard_shape(x.shape), are_divided, strict=True)
        are_divided = [is_named or n != part for n, part, is_named in parts]
    repeats = plan.repeats[len(plan.repeats) - x.ndim :]
    return any(d and not is_equal(r, 1) for d, r in zip(are_divided, repeats, strict=True))


executor = Jax()
