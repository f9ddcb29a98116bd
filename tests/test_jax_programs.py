"""Calls inside JAX programs: every transformation, and gradients by the adjoints."""

import os
import subprocess
import sys
from collections import UserList

import numpy as np
import pytest

import tileops

pytestmark = pytest.mark.library("jax")

CALLS = {
    "tile": (lambda x: tileops.tile(x, (2, 3)), lambda jnp, x: jnp.tile(x, (2, 3))),
    "tile, a new axis": (
        lambda x: tileops.tile(x, (4, 1, 2)),
        lambda jnp, x: jnp.tile(x, (4, 1, 2)),
    ),
    "tile to nothing": (lambda x: tileops.tile(x, (0, 2)), lambda jnp, x: jnp.tile(x, (0, 2))),
    "expand": (
        lambda x: tileops.expand(x[:, None], (5, 1, 4, 1)),
        lambda jnp, x: jnp.broadcast_to(x[:, None], (5, x.shape[0], 4, x.shape[1])),
    ),
}


@pytest.fixture
def jax():
    import jax
    import jax.export  # JAX 0.7 has the attribute only after this

    return jax


@pytest.fixture(params=CALLS)
def calls(request, jax):
    ours, theirs = CALLS[request.param]
    return ours, lambda x: theirs(jax.numpy, x)


@pytest.fixture
def x(jax, rng):
    return jax.numpy.asarray(rng.integers(-3, 4, (3, 2)).astype(np.float32))


def equal(a, b):
    """Return whether two trees of arrays have equal dtypes, shapes and bits."""
    import jax

    leaves = (jax.tree.leaves(tree) for tree in (a, b))
    return all(
        p.dtype == q.dtype
        and p.shape == q.shape
        and np.asarray(p).tobytes() == np.asarray(q).tobytes()
        for p, q in zip(*leaves, strict=True)
    )


TRANSFORMATIONS = {
    "jit": lambda jax, f: jax.jit(f),
    "grad": lambda jax, f: jax.grad(lambda x: (f(x) ** 2).sum()),
    "grad of grad": lambda jax, f: jax.grad(
        lambda x: jax.grad(lambda y: (f(y) ** 3).sum())(x).sum()
    ),
    "vmap": lambda jax, f: lambda x: jax.vmap(f)(jax.numpy.stack([x, x + 1])),
    "vmap, last axis": lambda jax, f: (
        lambda x: jax.vmap(f, in_axes=-1, out_axes=-1)(jax.numpy.stack([x, x + 1], axis=-1))
    ),
    "jvp": lambda jax, f: lambda x: jax.jvp(f, (x,), (x + 1,)),
    "linearize": lambda jax, f: lambda x: jax.linearize(f, x)[1](x - 1),
    "vjp": lambda jax, f: lambda x: jax.vjp(f, x)[1](f(x)),
    "jacfwd": lambda jax, f: jax.jacfwd(f),
    "jacrev": lambda jax, f: jax.jacrev(f),
    "hessian": lambda jax, f: jax.hessian(lambda x: (f(x) ** 2).sum()),
    "checkpoint": lambda jax, f: jax.grad(jax.checkpoint(lambda x: (f(x) ** 2).sum())),
    "scan": lambda jax, f: lambda x: jax.lax.scan(lambda c, _: (c + 1, f(c)), x, length=3),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_transformations_give_the_results_of_the_library(jax, calls, x, name):
    results = [TRANSFORMATIONS[name](jax, f)(x) for f in calls]
    assert equal(*results)
    jitted = [jax.jit(TRANSFORMATIONS[name](jax, f))(x) for f in calls]
    assert equal(*jitted)


def test_shapes_are_known_without_values(jax, calls, x):
    ours, theirs = (jax.eval_shape(f, jax.ShapeDtypeStruct(x.shape, x.dtype)) for f in calls)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
def test_donated_arguments_are_accepted(jax, calls, x):
    ours, theirs = calls
    expected = theirs(x)
    assert equal(jax.jit(ours, donate_argnums=0)(x + 0), expected)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "bfloat16"])
def test_adjoints_are_the_gradients_of_the_library(jax, rng, dtype):
    jnp = jax.numpy
    x = jnp.asarray(rng.integers(-3, 4, (3, 1, 2))).astype(dtype)
    for repeats in ((2, 3, 1), (4, 1, 5, 2), (0, 1, 1), (1, 1, 1)):
        y, pull = jax.vjp(lambda x, repeats=repeats: jnp.tile(x, repeats), x)
        g = jnp.asarray(rng.integers(-3, 4, y.shape)).astype(dtype)
        assert equal(tileops.tile_adjoint(g, x.shape, repeats) + 0, pull(g)[0] + 0)
    y, pull = jax.vjp(lambda x: jnp.broadcast_to(x, (5, 3, 4, 2)), x)
    g = jnp.asarray(rng.integers(-3, 4, y.shape)).astype(dtype)
    assert equal(tileops.expand_adjoint(g, x.shape) + 0, pull(g)[0] + 0)


def test_adjoints_can_be_transformed(jax, x):
    def f(g):
        return tileops.tile_adjoint(g, (3, 2), (2, 3)) * 2

    g = jax.numpy.tile(x, (2, 3))
    assert equal(jax.jit(f)(g), f(g))
    assert equal(jax.grad(lambda g: f(g).sum())(g), jax.numpy.full_like(g, 2))
    assert equal(jax.vmap(f)(jax.numpy.stack([g, g])), jax.numpy.stack([f(g), f(g)]))


def test_sharded_arrays_stay_sharded():
    """On 8 devices, axes that are not repeated keep an inferred, given or `shard_map` sharding."""
    code = """
import jax, numpy as np, tileops
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
x = np.arange(192, dtype=np.float32).reshape(16, 12)
cases = (
    (lambda a: tileops.tile(a, (5, 1, 1)), np.tile(x, (5, 1, 1)), P(None, "a", "b")),
    (lambda a: tileops.expand(a, (5, 16, 12)), np.tile(x, (5, 1, 1)), P(None, "a", "b")),
    (lambda a: tileops.expand(a[:, None], (16, 7, 12)), np.repeat(x[:, None], 7, 1),
     P("a", None, "b")),
)
for kind in (AxisType.Auto, AxisType.Explicit):
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(kind, kind))
    there = NamedSharding(mesh, P("a", "b"))
    a = jax.device_put(x, there)
    for call, expected, spec in cases:
        given = jax.jit(call, in_shardings=there, out_shardings=NamedSharding(mesh, spec))
        for f in (call, jax.jit(call), given):
            result = f(a)
            assert np.array_equal(result, expected)
            assert result.sharding.spec == spec, result.sharding
            assert all(8 * s.data.size == result.size for s in result.addressable_shards)
        text = given.lower(a).compile().as_text()
        assert not any(op in text for op in ("all-gather", "all-to-all", "collective-permute"))
    local = jax.shard_map(
        lambda a: tileops.tile(a, (2, 3)), mesh=mesh, in_specs=P("a", "b"), out_specs=P("a", "b")
    )
    result = jax.jit(local)(a)
    assert result.shape == (32, 36)
    assert all(8 * s.data.size == result.size for s in result.addressable_shards)
    assert np.array_equal(np.asarray(result)[:8, :18], np.tile(x[:4, :6], (2, 3)))
print("done")
"""
    run_on_eight_devices(code)


def test_sharded_axes_stay_sharded_when_they_are_repeated():
    """JAX's own tile would replicate or refuse; here no device ever holds the whole result."""
    code = """
import math, re
import jax, numpy as np, tileops
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
x = np.arange(192 * 160, dtype=np.float32).reshape(192, 160)
for kind in (AxisType.Auto, AxisType.Explicit):
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(kind, kind))
    for dtype in ("float32", "bfloat16"):
        source = x.astype(dtype)
        for spec in (P("a", "b"), P("b", None), P(None, ("a", "b"))):
            shards = math.prod(mesh.shape[name] for part in spec if part
                               for name in ([part] if isinstance(part, str) else part))
            there = NamedSharding(mesh, spec)
            a = jax.device_put(source, there)
            for repeats in ((3, 2), (1, 2), (2, 1, 3), (40, 1), (1, 1)):
                after = NamedSharding(mesh, P(*[None] * (len(repeats) - 2), *spec))
                call = lambda a: tileops.tile(a, repeats)
                given = jax.jit(call, in_shardings=there, out_shardings=after)
                expected = np.tile(source, repeats).tobytes()
                for f in (call, jax.jit(call), given):
                    result = f(a)
                    assert np.asarray(result).tobytes() == expected
                    assert result.sharding.is_equivalent_to(after, result.ndim), result.sharding
                program = jax.jit(call).lower(a).compile().as_text()
                sizes = [
                    math.prod(map(int, shape.split(",")))
                    for shape in re.findall(r"\\b[a-z]+[0-9]+\\[([0-9,]+)\\]", program)
                ]
                assert sizes and max(sizes) * shards == result.size, (repeats, spec)
                assert "all-gather" not in program
    a = jax.device_put(x, NamedSharding(mesh, P("a", "b")))
    gradient = jax.jit(jax.grad(lambda a: (tileops.tile(a, (3, 2)) ** 2).sum()))(a)
    assert np.array_equal(gradient, 12 * x)
    assert gradient.sharding.spec == P("a", "b")
    assert np.asarray(tileops.tile(a, (0, 2))).shape == (0, 320)
    assert jax.jit(jax.vmap(lambda a: tileops.tile(a, 3)))(a).shape == (192, 480)
    few = jax.device_put(x[:8, :2], NamedSharding(mesh, P("a", None)))
    many = tileops.tile(few, (5000, 3))
    assert np.asarray(many).tobytes() == np.tile(x[:8, :2], (5000, 3)).tobytes()
    assert many.sharding.spec[0] == "a"
    assert "concatenate" not in str(jax.make_jaxpr(lambda a: tileops.tile(a, 3))(x))
    whole = jax.device_put(x[:8, :2], NamedSharding(mesh, P()))
    many = np.tile(x[:8, :2], (9000, 1))
    assert np.asarray(tileops.tile(whole, (9000, 1))).tobytes() == many.tobytes()
print("done")
"""
    run_on_eight_devices(code)


def test_a_thousand_copies_are_concatenated_from_few_parts(jax):
    """The gradient adds up a slice for each part, and each slice moves data between devices."""
    from tileops.execute.jax import _side_by_side

    program = jax.make_jaxpr(lambda x: _side_by_side(x, 0, 1000))(jax.numpy.ones(8))
    parts = [len(step.invars) for step in program.eqns if step.primitive.name == "concatenate"]
    assert len(parts) == 8
    assert sum(parts) <= 24


def test_axes_of_a_mesh_that_a_single_device_makes_up_count_as_sharded():
    """JAX refuses by the type: a program for many devices also has to run on one."""
    code = """
import math
import jax, numpy as np, tileops
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
in_mesh = jax.set_mesh if hasattr(jax, "set_mesh") else jax.sharding.use_mesh  # before JAX 0.8
x = np.arange(128, dtype=np.float32).reshape(8, 16)
quarters = x[:4, :8] + x[4:, :8] + x[:4, 8:] + x[4:, 8:]
for sizes in ((1, 1), (8, 1)):
    devices = np.array(jax.devices()[: math.prod(sizes)]).reshape(sizes)
    mesh = Mesh(devices, ("a", "b"), axis_types=(AxisType.Explicit,) * 2)
    for spec in (P("a", "b"), P("b", None), P(None, "b")):
        a = jax.device_put(x, NamedSharding(mesh, spec))
        with in_mesh(mesh):
            for wrap in (lambda f: f, jax.jit):
                for repeats in ((2, 1), (1, 2)):
                    result = wrap(lambda a: tileops.tile(a, repeats))(a)
                    assert np.asarray(result).tobytes() == np.tile(x, repeats).tobytes()
                    assert result.sharding.spec == spec, result.sharding
                    gradient = wrap(jax.grad(lambda a: (tileops.tile(a, repeats) ** 2).sum()))(a)
                    assert np.array_equal(gradient, 2 * math.prod(repeats) * x)
                assert np.asarray(wrap(lambda a: tileops.tile(a, (0, 2)))(a)).shape == (0, 32)
                quarter = wrap(lambda a: tileops.tile_adjoint(a, (4, 8), (2, 2)))(a)
                assert np.array_equal(quarter, quarters)
                summed = wrap(lambda a: tileops.expand_adjoint(a, (1, 16)))(a)
                assert np.array_equal(summed, x.sum(0, keepdims=True))
                wide = wrap(lambda a: tileops.expand(a[:, None], (8, 3, 16)))(a)
                assert np.array_equal(wide, np.repeat(x[:, None], 3, 1))
        if mesh.size == 1:  # on several devices, JAX itself wants to be in a mesh here
            gradient = jax.grad(lambda a: tileops.expand_adjoint(a, (1, 16)).sum())(a)
            assert np.array_equal(gradient, np.ones_like(x))
print("done")
"""
    run_on_eight_devices(code)


def test_axes_that_are_not_sharded_are_repeated_by_the_library():
    """JAX's own tile keeps the sharding of an array of which only the batch is sharded."""
    code = """
import jax, numpy as np, tileops
from tileops.execute import jax as executor
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
concatenate, seen = executor._concatenate, []
executor._concatenate = lambda x, plan: (seen.append(plan), concatenate(x, plan))[1]
x = np.arange(16 * 6, dtype=np.float32).reshape(16, 6)
for kind in (AxisType.Auto, AxisType.Explicit):
    a = jax.device_put(x, NamedSharding(jax.make_mesh((8,), ("a",), axis_types=(kind,)), P("a")))
    for repeats, spec in (((1, 4), P("a")), ((3, 1, 4), P(None, "a"))):
        for f in (lambda a: tileops.tile(a, repeats), jax.jit(lambda a: tileops.tile(a, repeats))):
            result = f(a)
            assert np.asarray(result).tobytes() == np.tile(x, repeats).tobytes()
            there = NamedSharding(a.sharding.mesh, spec)
            assert result.sharding.is_equivalent_to(there, result.ndim), result.sharding
            if kind is AxisType.Auto:
                break  # a traced array does not tell
    assert not seen or (kind is AxisType.Explicit and not hasattr(jax.lax, "tile"))
    gradient = jax.jit(jax.grad(lambda a: (tileops.tile(a, (1, 4)) ** 2).sum()))(a)
    assert np.array_equal(gradient, 8 * x)
    assert gradient.sharding.is_equivalent_to(a.sharding, 2)
    seen.clear()
    tileops.tile(a, (2, 1))
    assert seen
    seen.clear()
for size in (1, 2):
    a = jax.device_put(x, NamedSharding(jax.make_mesh((size,), ("a",), (AxisType.Auto,)), P("a")))
    assert np.array_equal(jax.jit(lambda a: tileops.tile(a, (2, 1)))(a), np.tile(x, (2, 1)))
    assert bool(seen) == (size > 1)
print("done")
"""
    run_on_eight_devices(code)


def test_an_empty_result_stays_on_the_devices_of_a_sharded_array():
    """Each device holds the whole result, because JAX gives no values of sharded empty arrays."""
    code = """
import jax, numpy as np, tileops
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
in_mesh = jax.set_mesh if hasattr(jax, "set_mesh") else jax.sharding.use_mesh  # before JAX 0.8
for kind in (AxisType.Auto, AxisType.Explicit):
    mesh = Mesh(np.array(jax.devices()[4:]), ("a",), axis_types=(kind,))
    for dtype in ("float32", "bfloat16", "int2", "bool"):
        x = jax.device_put(jax.numpy.ones((3, 4), dtype), NamedSharding(mesh, P(None, "a")))
        for repeats, shape in (((0, 1), (0, 4)), ((2, 0), (6, 0)), ((0, 2, 3), (0, 6, 12))):
            call = lambda x: tileops.tile(x, repeats)
            for f in (call, jax.jit(call)):
                result = f(x)
                assert (result.shape, result.dtype) == (shape, x.dtype)
                assert np.asarray(result).shape == shape
                assert result.devices() == x.devices() and result.committed
                assert result.is_fully_replicated
    keys = jax.random.split(jax.random.key(0), 4)
    keys = jax.device_put(keys, NamedSharding(mesh, P("a")))
    for call in (lambda x: tileops.tile(x, (0, 1)), lambda x: tileops.expand(x, (0, 4))):
        for x in (jax.device_put(np.ones(4), NamedSharding(mesh, P("a"))), keys):
            for f in (call, jax.jit(call)):
                result = f(x)
                assert (result.shape, result.dtype) == ((0, 4), x.dtype)
                assert result.devices() == x.devices() and result.is_fully_replicated
    for f in (lambda x: tileops.tile(x, 0), jax.jit(lambda x: tileops.tile(x, 0))):
        assert (f(keys).shape, f(keys).dtype) == ((0,), keys.dtype)
        assert f(keys).devices() == keys.devices()
    weak = jax.device_put(jax.numpy.full(4, 1.0), NamedSharding(mesh, P("a")))
    assert weak.weak_type and tileops.expand(weak, (0, 4)).weak_type
    for f in (lambda x: tileops.tile(x, 0), jax.jit(lambda x: tileops.tile(x, 0))):
        assert f(weak).weak_type and f(weak).devices() == weak.devices()
        assert np.asarray(f(weak)).shape == (0,)
    x = jax.device_put(np.ones((3, 4), "float32"), NamedSharding(mesh, P(None, "a")))
    total = tileops.tile_adjoint(tileops.tile(x, (0, 1)), (3, 4), (0, 1))
    assert total.devices() == x.devices() and not total.any()
    with in_mesh(mesh):
        assert not jax.grad(lambda x: tileops.tile(x, (0, 2)).sum())(x).any()
        assert jax.vmap(lambda x: tileops.tile(x, 0))(x).shape == (3, 0)
print("done")
"""
    run_on_eight_devices(code)


def test_an_empty_result_of_auto_axes_is_one_broadcast():
    """The compiler decides where it lies."""
    code = """
import jax, numpy as np, tileops
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ("a",), axis_types=(AxisType.Auto,))
x = jax.device_put(np.ones(8, np.float32), NamedSharding(mesh, P("a")))
program = jax.make_jaxpr(lambda x: tileops.expand(x, (0, 8)))(x)
assert [step.primitive.name for step in program.eqns] == ["broadcast_in_dim"], program
print("done")
"""
    run_on_eight_devices(code)


def test_traced_references_are_refused(jax):
    if hasattr(jax, "new_ref"):
        new_ref = jax.new_ref
    else:  # before JAX 0.8
        from jax.experimental import mutable_array as new_ref
    x = jax.numpy.zeros(3)
    for call in (
        lambda ref: tileops.tile(ref, 1),
        lambda ref: tileops.tile(ref, 2),
        lambda ref: tileops.expand(ref, (3,)),
        lambda ref: tileops.expand(ref, (2, 3)),
        lambda ref: tileops.expand_adjoint(ref, (3,)),
    ):
        with pytest.raises(
            tileops.DTypeError, match=r"is a Ref of JAX, not an array; pass ref\[...\]"
        ):
            jax.jit(call)(new_ref(x))
    assert jax.jit(lambda ref: tileops.tile(ref[...], 2))(new_ref(x)).shape == (6,)


def test_all_bits_of_sharded_arrays_survive():
    """The elements include 8-bit NaNs and 2-bit integers, which XLA concatenates wrongly."""
    code = """
import jax, ml_dtypes, numpy as np, tileops
from jax.sharding import NamedSharding, PartitionSpec as P
there = NamedSharding(jax.make_mesh((8,), ("a",)), P("a"))
narrow = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4}
names = [name for name in dir(ml_dtypes) if name.startswith("float8")]
assert len(names) > 6
for name in (*narrow, *names, "bfloat16", "float16", "float32"):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    bits = narrow.get(name, 8 * dtype.itemsize)
    x = np.arange(max(2**min(bits, 16), 64), dtype=f"u{dtype.itemsize}")
    x = (x % 2**bits).astype(dtype) if name in narrow else (x << max(bits - 16, 0)).view(dtype)
    sharded = jax.device_put(x, there)
    for repeats in (2, 3, (3, 1)):
        result = tileops.tile(sharded, repeats)
        assert result.dtype == x.dtype
        assert not result.is_fully_replicated
        assert np.asarray(result).tobytes() == np.tile(x, repeats).tobytes(), (name, repeats)
    result = np.asarray(tileops.expand(sharded, (3, x.size)))
    assert result.tobytes() == np.tile(x, 3).tobytes(), name
print("done")
"""
    run_on_eight_devices(code)


def test_bits_of_sharded_arrays_survive_on_their_devices():
    """The kept scalar lies on one device, so a sharded array takes a scalar of the host."""
    code = """
import jax, numpy as np, tileops
from jax.sharding import NamedSharding, PartitionSpec as P
bits = np.array([0x0010, 0x7F93, 1, 2] * 2, np.uint16)
there = NamedSharding(jax.make_mesh((8,), ("a",)), P("a"))
x = jax.device_put(bits.view(jax.numpy.bfloat16), there)
result = tileops.tile(x, 3)
assert np.asarray(result).view(np.uint16).tolist() == bits.tolist() * 3
assert result.devices() == x.devices()
print("done")
"""
    run_on_eight_devices(code)


def test_adjoints_in_a_shard_map_over_part_of_the_mesh():
    code = """
import jax, numpy as np, tileops
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
g = np.arange(128, dtype=np.float32).reshape(16, 8)
for kind in (AxisType.Auto, AxisType.Explicit):
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(kind, kind))
    there = jax.device_put(g, NamedSharding(mesh, P("a", "b")))
    for call, expected in (
        (lambda g: tileops.tile_adjoint(g, (4, 4), (1, 2)), g.reshape(16, 2, 4).sum(1)),
        (lambda g: tileops.expand_adjoint(g, (4, 1)), g.sum(1, keepdims=True)),
    ):
        by_hand = jax.shard_map(
            call, mesh=mesh, in_specs=P("a"), out_specs=P("a"), axis_names={"a"}
        )
        for f in (by_hand, jax.jit(by_hand)):
            total = f(there)
            assert np.array_equal(total, expected)
            assert not total.is_fully_replicated
print("done")
"""
    run_on_eight_devices(code)


def test_adjoints_of_sharded_arrays_stay_sharded():
    """JAX's own gradients also stay sharded; a reduction would replicate or be refused."""
    code = """
import math
import jax, ml_dtypes, numpy as np, tileops
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
rng = np.random.default_rng(0)
for kind in (AxisType.Auto, AxisType.Explicit):
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(kind, kind))
    for dtype in ("float32", "int32", "bfloat16"):
        for shape, spec in (((16, 12), P("data", "model")), ((4, 24), P(None, ("data", "model")))):
            there = NamedSharding(mesh, spec)
            for repeats in ((3, 2), (2, 1, 3), (40, 1), (1, 1), (0, 2)):
                padded = (1, *shape)[-len(repeats):]
                split = [n for pair in zip(repeats, padded) for n in pair]
                g = rng.integers(-3, 4, split).astype(dtype)
                expected = g.sum(tuple(range(0, len(split), 2))).reshape(shape)
                g = g.reshape([n * r for n, r in zip(padded, repeats)])
                after = P(*[None] * (len(repeats) - 2), *spec) if g.size else P()
                g = jax.device_put(g, NamedSharding(mesh, after))
                call = lambda g: tileops.tile_adjoint(g, shape, repeats)
                for f in (call, jax.jit(call)):
                    total = f(g)
                    assert total.dtype == g.dtype
                    assert np.array_equal(total, expected), (kind, dtype, shape, repeats)
                    assert not g.size or total.sharding.is_equivalent_to(there, 2), total.sharding
                program = jax.jit(call).lower(g).compile().as_text()
                assert "all-gather" not in program
    there = NamedSharding(mesh, P("data", None, "model"))
    g = jax.device_put(np.ones((16, 5, 2), "float32"), there)
    total = tileops.expand_adjoint(g, (16, 1, 2))
    assert np.array_equal(total, np.full((16, 1, 2), 5))
    assert total.sharding.is_equivalent_to(there, 3)
    few = jax.device_put(np.ones(24, "float32"), NamedSharding(mesh, P(("data", "model"))))
    for n in (1, 3, 4, 6, 8):  # not all of which 8 devices share
        assert np.array_equal(tileops.tile_adjoint(few, n, 24 // n), np.full(n, 24 // n))
    alone = jax.make_mesh((8, 1), ("data", "model"), axis_types=(kind, kind))
    g = jax.device_put(np.ones((16, 6), "float32"), NamedSharding(alone, P("data", "model")))
    assert np.array_equal(tileops.expand_adjoint(g, (16, 1)), np.full((16, 1), 6))
    empty = np.zeros((4, 0), "int32")
    for spec in (P("data", None), P()):
        g = jax.device_put(empty, NamedSharding(mesh, spec))
        call = lambda g: tileops.tile_adjoint(g, (4, 3), (1, 0))
        for f in (call, jax.jit(call)):
            assert np.array_equal(f(g), np.zeros((4, 3), "int32"))
    half = jax.device_put(np.ones(4096, ml_dtypes.bfloat16), NamedSharding(mesh, P("data")))
    assert tileops.tile_adjoint(half, 4, 1024).tolist() == [1024] * 4
print("done")
"""
    run_on_eight_devices(code)


def test_an_array_that_each_device_holds_whole_is_summed_by_a_reduction():
    """Traced arrays of Auto axes do not tell, and are summed as if devices shared them."""
    code = """
import jax, numpy as np, tileops
from tileops.execute import jax as executor
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
executor._sum_sharded = None
values = np.arange(32, dtype=np.float32).reshape(8, 4)
for kind in (AxisType.Auto, AxisType.Explicit):
    mesh = jax.make_mesh((8,), ("a",), axis_types=(kind,))
    g = jax.device_put(values, NamedSharding(mesh, P()))
    call = lambda g: tileops.tile_adjoint(g, (4, 4), (2, 1))
    for f in (call, jax.jit(call))[: 1 if kind is AxisType.Auto else 2]:
        assert np.asarray(f(g)).tobytes() == (values[:4] + values[4:]).tobytes()
        assert f(g).devices() == g.devices() and f(g).is_fully_replicated
print("done")
"""
    run_on_eight_devices(code)


def test_sharded_arrays_stay_in_the_memory_of_the_host():
    code = """
import jax, numpy as np, tileops
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
kinds = {memory.kind for memory in jax.devices()[0].addressable_memories()}
host = "pinned_host" if "pinned_host" in kinds else "unpinned_host"  # JAX 0.7 has the latter only
values = np.arange(16, dtype="float32")
for kind in (AxisType.Auto, AxisType.Explicit):
    there = NamedSharding(jax.make_mesh((8,), ("a",), (kind,)), P("a"), memory_kind=host)
    x = jax.device_put(values, there)
    for call, expected in (
        (lambda x: tileops.tile(x, 2), np.tile(values, 2)),
        (lambda x: tileops.tile(x, 0), values[:0]),
        (lambda x: tileops.expand(x, (0, 16)), values[:0].reshape(0, 16)),
        (lambda x: tileops.tile_adjoint(x, 8, 2), values[:8] + values[8:]),
        (lambda x: tileops.expand_adjoint(x, 1), values.sum(keepdims=True)),
    ):
        for f in (call, jax.jit(call)):
            result = f(x)
            assert result.sharding.memory_kind == host
            assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
            assert np.array_equal(result, expected)
    assert tileops.tile_adjoint(x, 8, 2).sharding.is_equivalent_to(there, 1)
    if host == "unpinned_host" and kind is AxisType.Explicit:
        continue  # JAX 0.7 cannot broadcast to no elements under a gradient
    for empty in (lambda x: tileops.expand(x, (0, 16)), lambda x: tileops.tile(x, (0, 1))):
        result, pull = jax.vjp(empty, x)
        (gradient,) = pull(result)
        assert gradient.sharding.memory_kind == host
        assert gradient.shape == x.shape and not gradient.any()
print("done")
"""
    run_on_eight_devices(code)


def test_arrays_whose_gradients_are_reduced_later_are_repeated():
    """Each device has a part of the sum that is such a gradient."""
    code = """
import jax, numpy as np, tileops
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
in_mesh = jax.set_mesh if hasattr(jax, "set_mesh") else jax.sharding.use_mesh  # before JAX 0.8
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
has_specs = hasattr(P(), "partitions")  # JAX 0.7 cannot place such arrays; there, x is replicated
spec = P(None, None, reduced={"x"}) if has_specs else P(None, None)
of_gradient = P(None, None, unreduced={"x"}) if has_specs else spec
row, weights = np.arange(8, dtype="float32")[None], np.arange(32, dtype="float32").reshape(4, 8)
x, w = (jax.device_put(a, NamedSharding(mesh, spec)) for a in (row, weights))
for call in (lambda x: tileops.expand(x, (4, 8)), lambda x: tileops.tile(x, (4, 1))):
    gradient = jax.grad(lambda x: (call(x) * w).sum())
    adjoint = lambda w: tileops.expand_adjoint(w, (1, 8))
    for wrap in (jax.jit, lambda f: f):
        with in_mesh(mesh):
            result, found, total = wrap(call)(x), wrap(gradient)(x), wrap(adjoint)(w)
        assert result.sharding.spec == spec
        assert np.array_equal(result, np.repeat(row, 4, 0))
        assert found.sharding.spec == of_gradient
        assert total.sharding.spec == spec
        assert np.array_equal(total, weights.sum(0, keepdims=True))
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
numbers = np.arange(64, dtype="float32").reshape(8, 8)
for name in ("reduced", "unreduced") if has_specs else ():
    spec = P("y", None, **{name: {"x"}})
    with in_mesh(mesh):
        g = jax.device_put(numbers, NamedSharding(mesh, P("y", None)))
        g = jax.sharding.reshard(g, NamedSharding(mesh, spec))
        for wrap in (jax.jit, lambda f: f):
            total = wrap(lambda g: tileops.tile_adjoint(g, (4, 8), (2, 1)))(g)
            assert total.sharding.spec == P(None, None, **{name: {"x"}}), total.sharding.spec
            total = jax.sharding.reshard(total, NamedSharding(mesh, P(None, None)))
            assert np.array_equal(total, numbers[:4] + numbers[4:])
print("done")
"""
    run_on_eight_devices(code)


def test_adjoints_of_sharded_arrays_take_symbolic_sizes():
    """The symbolic sizes are of axes that are not sharded, or are a whole number of shards."""
    code = """
import jax, jax.export, numpy as np, tileops
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
a, b = jax.export.symbolic_shape("a, b")
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
for shape, spec in (((16, b), P("x", None)), ((8 * a, b), P("x", None)), ((a, 16), P(None, "x"))):
    there = NamedSharding(mesh, spec)
    symbolic = jax.ShapeDtypeStruct(shape, "float32", sharding=there)
    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    for call, expected in (
        (lambda g: tileops.expand_adjoint(g, (1, g.shape[1])), x.sum(0, keepdims=True)),
        (lambda g: tileops.expand_adjoint(g, (g.shape[0], 1)), x.sum(1, keepdims=True)),
        (lambda g: tileops.tile_adjoint(tileops.tile(g, (1, 3)), g.shape, (1, 3)), 3 * x),
    ):
        exported = jax.export.export(jax.jit(call))(symbolic)
        assert np.array_equal(jax.jit(exported.call)(jax.device_put(x, there)), expected)
print("done")
"""
    run_on_eight_devices(code)


def test_symbolic_counts_repeat_arrays_in_a_mesh_of_auto_axes():
    """Copies cannot be concatenated if their number is unknown, so JAX's own tile is called."""
    code = """
import jax, jax.export, numpy as np, tileops
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
in_mesh = jax.set_mesh if hasattr(jax, "set_mesh") else jax.sharding.use_mesh  # before JAX 0.8
(n,) = jax.export.symbolic_shape("n")
x = np.arange(48, dtype=np.float32).reshape(16, 3)
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
there = NamedSharding(mesh, P("x", None))
symbolic = jax.ShapeDtypeStruct((16, n), "float32", sharding=there)
for call, expected in (
    (lambda x: tileops.tile(x, (x.shape[1], 2)), np.tile(x, (3, 2))),
    (lambda x: tileops.tile(x, (2, x.shape[1])), np.tile(x, (2, 3))),
    (lambda x: tileops.tile(x, (1, x.shape[1])), np.tile(x, (1, 3))),
):
    with in_mesh(mesh):
        exported = jax.export.export(jax.jit(call))(symbolic)
    result = jax.jit(exported.call)(jax.device_put(x, there))
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    assert np.asarray(result).tobytes() == expected.tobytes()
print("done")
"""
    run_on_eight_devices(code)


def test_adjoints_sum_two_bit_integers():
    """Sums wrap around at two bits, also for traced arrays where a mesh has Auto axes."""
    code = """
import jax, numpy as np, tileops
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
in_mesh = jax.set_mesh if hasattr(jax, "set_mesh") else jax.sharding.use_mesh  # before JAX 0.8
for kind in (AxisType.Auto, AxisType.Explicit):
    mesh = jax.make_mesh((2, 4), ("a", "b"), axis_types=(kind, kind))
    for dtype, expected in (("uint2", [0, 2, 0, 2]), ("int2", [0, -2, 0, -2])):
        g = jax.numpy.asarray([0, 1, 2, 3] * 2, dtype)
        call = lambda g: tileops.tile_adjoint(g, 4, 2)
        for x in (g, jax.device_put(g, NamedSharding(mesh, P("a")))):
            for f in (call, jax.jit(call)):
                total = f(x)
                assert isinstance(total, jax.Array) and total.dtype == dtype
                assert total.astype("int8").tolist() == expected, (kind, dtype, total)
        with in_mesh(mesh):
            assert jax.jit(call)(g).astype("int8").tolist() == expected
print("done")
"""
    run_on_eight_devices(code)


def test_adjoints_keep_64_bits_without_jax_enable_x64():
    code = """
import jax, numpy as np, tileops
from jax.sharding import NamedSharding, PartitionSpec as P
from tileops.execute.jax import enable_x64
mesh = jax.make_mesh((8,), ("a",))
for dtype in ("int64", "uint64", "float64", "complex128"):
    values = np.arange(16).astype(dtype) + np.dtype(dtype).type(2**40)
    for spec in (P("a"), P()):
        with enable_x64(True):
            g = jax.device_put(values, NamedSharding(mesh, spec))
            empty = jax.device_put(values[:0], NamedSharding(mesh, spec))
        call = lambda g: tileops.tile_adjoint(g, 8, 2)
        for f in (call, jax.jit(call)):
            assert f(g).dtype == dtype, (dtype, spec)
            assert np.array_equal(f(g), values.reshape(2, 8).sum(0))
        assert tileops.expand_adjoint(g, ()) == values.sum()
        for result in (tileops.tile_adjoint(empty, 8, 0), tileops.tile(g, 0)):
            assert result.dtype == dtype
            assert not np.asarray(result).any()
print("done")
"""
    run_on_eight_devices(code)


def test_arrays_are_carried_to_the_named_device():
    code = """
import jax, numpy as np
from tileops import execute
executor = execute.executor_named("jax")
for name, number in ((None, 0), ("cpu", 0), ("cpu:3", 3)):
    there = executor.from_numpy(np.ones(2, np.float32), name)
    assert there.devices() == {jax.devices("cpu")[number]}, name
assert executor.devices() == [f"cpu:{number}" for number in range(8)]
for name in ("cpu", "cpu:0", "cpu:7"):
    assert executor.has_device(name), name
for name in ("", ":0", "cpu:", "cpu:8", "cpu:-1", "cpu:00", "nowhere", "nowhere:0"):
    assert not executor.has_device(name), name
try:
    executor.from_numpy(np.ones(2, np.int64), "cpu:3")
except ValueError as error:
    assert str(error) == (
        "it becomes int32; to keep 64 bits, call jax.config.update('jax_enable_x64', True), or "
        "start Python with JAX_ENABLE_X64=1"
    ), error
    jax.config.update("jax_enable_x64", True)
    assert executor.from_numpy(np.ones(2, np.int64), "cpu:3").dtype == np.int64
    print("done")
"""
    run_on_eight_devices(code)


def test_bits_of_arrays_on_other_devices_survive_under_a_transfer_guard():
    code = """
import jax, numpy as np, tileops
from jax.sharding import NamedSharding, PartitionSpec as P
bits = np.array([0x0010, 0x7F93, 1, 2] * 2, np.uint16)
sharded = NamedSharding(jax.make_mesh((8,), ("a",)), P("a"))
for place in (sharded, jax.devices()[3]):
    x = jax.device_put(bits.view(jax.numpy.bfloat16), place)
    for guard in ("disallow", "disallow_explicit"):
        with jax.transfer_guard(guard):
            result = tileops.tile(x, 3)
        assert result.devices() == x.devices()
        assert np.asarray(result).view(np.uint16).tolist() == bits.tolist() * 3
print("done")
"""
    run_on_eight_devices(code)


def run_on_eight_devices(code):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"},
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_symbolic_counts_are_refused_for_arrays_of_other_libraries(jax):
    (n,) = jax.export.symbolic_shape("n")
    for counts in (n, (1, n), UserList([1, n])):
        with pytest.raises(tileops.RepeatsError, match=r"symbolic size n.*numpy.*pass integers"):
            tileops.tile(np.ones((1, 3)), counts)
    with pytest.raises(tileops.ShapeError, match=r"shape\[0\] is the symbolic size n.*numpy"):
        tileops.expand(np.ones((1, 3)), (n, 3))
    with pytest.raises(tileops.ShapeError, match="numpy"):
        tileops.expand_adjoint(np.ones((2, 3)), (n, 3))


def test_shapes_are_computed_from_symbolic_counts(jax):
    (n,) = jax.export.symbolic_shape("n")
    for counts in ((n, 2), [n, 2], UserList([n, 2])):
        assert tileops.tile_shape((3, 1), counts) == (3 * n, 2)
        assert tileops.expand_shape((1, 1), counts) == (n, 2)
    assert tileops.tile_shape((3, 1), n) == (3, n)


def test_expand_keeps_an_axis_whose_symbolic_size_is_the_target(jax):
    (n,) = jax.export.symbolic_shape("n")
    assert tileops.expand_shape((n,), (2, n)) == (2, n)
    exported = jax.export.export(jax.jit(lambda x: tileops.expand(x, (2, x.shape[0]))))(
        jax.ShapeDtypeStruct((n,), "float32")
    )
    x = np.array([1, 2, 3], np.float32)
    assert np.asarray(exported.call(x)).tobytes() == x.tobytes() * 2


def test_a_symbolic_count_may_be_negative(jax):
    """JAX cannot tell before the sizes are known, and since 0.9 its own tile does not check."""
    (n,) = jax.export.symbolic_shape("n")
    shape = jax.ShapeDtypeStruct((n, 3), "float32")
    x = np.arange(21, dtype=np.float32).reshape(7, 3)
    for call, expected in (
        (lambda x: tileops.tile(x[:1], (x.shape[0] - 5, 1)), np.tile(x[:1], (2, 1))),
        (lambda x: tileops.tile(x, (x.shape[0] - 5, 1, 1)), np.tile(x, (2, 1, 1))),
        (lambda x: tileops.onnx.tile(x[None], (x.shape[0] - 5, 1, 1)), np.tile(x, (2, 1, 1))),
        (lambda x: tileops.expand(x, (x.shape[0] - 5, 1, 1)), np.tile(x, (2, 1, 1))),
        (lambda x: tileops.expand(x[:1], (x.shape[0] - 2, 3)), np.tile(x[:1], (5, 1))),
    ):
        if hasattr(jax.lax, "tile"):
            exported = jax.export.export(jax.jit(call))(shape)
            assert equal(exported.call(x), expected)
        else:
            with pytest.raises(Exception, match="is inconclusive"):
                jax.export.export(jax.jit(call))(shape)


def test_arrays_that_a_trace_closes_over_take_symbolic_counts(jax):
    """A class token is such an array: a parameter, repeated for a batch of unknown size."""
    token = jax.numpy.arange(3.0)[None]
    (n,) = jax.export.symbolic_shape("n")
    for call in (
        lambda x: tileops.expand(token, (x.shape[0], 3)) + x,
        lambda x: tileops.tile(token, (x.shape[0], 1)) + x,
    ):
        shape = jax.ShapeDtypeStruct((n, 3), token.dtype)
        exported = jax.export.export(jax.jit(call))(shape)
        x = jax.numpy.ones((5, 3))
        assert equal(exported.call(x), x + token)
