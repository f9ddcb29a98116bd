"""What only JAX has: tracing, transformations, typed keys, and symbolic shapes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tileops
import variants
from tileops._plan import cached_plan

pytestmark = pytest.mark.library("jax")


@pytest.fixture
def jax():
    import jax
    import jax.export  # JAX 0.7 has the attribute only after this

    return jax


@pytest.mark.parametrize("rank", [64, 65])
def test_bits_of_narrow_floats_of_many_axes_survive(jax, rank):
    bits = np.array([0x7F93, 0x0010], np.uint16)
    x = jax.numpy.asarray(bits).view("bfloat16").reshape((1,) * (rank - 1) + (2,))
    for result in (
        tileops.tile(x, 3),
        tileops.tile(x, (2, *(1,) * (rank - 2), 3)),
        tileops.expand(x, (3, *(1,) * (rank - 1))),
        tileops.tile(x, 1),
    ):
        found = jax.lax.bitcast_convert_type(result, "uint16").reshape(-1, 2)
        assert (np.asarray(found) == bits).all()


def test_jit_grad_and_vmap_give_the_results_of_jax(jax):
    jnp = jax.numpy
    x = jnp.arange(6.0).reshape(2, 3)
    assert (jax.jit(lambda x: tileops.tile(x, (2, 2)))(x) == jnp.tile(x, (2, 2))).all()
    assert (jax.vmap(lambda row: tileops.tile(row, 2))(x) == jnp.tile(x, (1, 2))).all()
    assert (jax.grad(lambda x: tileops.tile(x, (2, 2)).sum())(x) == 4).all()
    assert (jax.grad(lambda x: tileops.expand(x, (5, 1, 1)).sum())(x) == 5).all()


@pytest.mark.parametrize(
    "repeats, primitive",
    [((2, 2), "tile"), ((0, 2), "tile"), ((3, 1, 1), "broadcast_in_dim")],
)
def test_a_call_is_one_primitive(jax, repeats, primitive):
    x = jax.numpy.ones((2, 3))
    jaxpr = jax.make_jaxpr(lambda x: tileops.tile(x, repeats))(x)
    expected = [primitive]
    if primitive == "tile" and not hasattr(jax.lax, "tile"):  # JAX before 0.8
        expected = ["reshape", "broadcast_in_dim", "reshape"]
    assert [equation.primitive.name for equation in jaxpr.eqns] == expected


@pytest.mark.parametrize("call", [tileops.tile, tileops.expand])
def test_traced_counts_must_be_static(jax, call):
    x = jax.numpy.ones((1, 3))
    message = r"traced.*must be static.*static_argnums.*close over"
    for counts in (2, jax.numpy.array([2, 3])):
        with pytest.raises(TypeError, match=message):
            jax.jit(call)(x, counts)
    with pytest.raises(TypeError, match=message):
        jax.jit(lambda x, n: call(x, (n, 3)))(x, 2)
    assert jax.jit(call, static_argnums=1)(x, (2, 1)).shape == (2, 3)


def test_traced_counts_of_an_onnx_operator_must_be_static_whatever_their_dtype(jax):
    x, counts = jax.numpy.ones((1, 3)), jax.numpy.array([2, 2], "int32")
    for call in (tileops.onnx.tile, tileops.onnx.expand):
        with pytest.raises(TypeError, match=r"traced.*must be static.*static_argnums.*close over"):
            jax.jit(call)(x, counts)
        with pytest.raises(TypeError, match=r"has dtype int32; .* int64 of any library"):
            call(x, counts)
    assert tileops.onnx.tile(x, np.array([2, 2])).shape == (2, 6)


def test_typed_keys_are_repeated(jax):
    key = jax.random.key(7)
    result = tileops.tile(key, (2,))
    assert result.dtype == key.dtype
    data = jax.random.key_data(result)
    assert (data == jax.random.key_data(key)).all()


class Bare:
    """Converts to an array by JAX's protocol, and has no other attribute of an array."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value


class Parameter(Bare):
    """Forwards every attribute to its array, as the parameters of Flax do."""

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "value"), name)


@pytest.mark.parametrize("cls", [Bare, Parameter])
def test_objects_with_a_jax_array_method_are_treated_as_arrays(jax, cls):
    x = jax.numpy.ones((1, 3), "float32")
    calls = {
        "tile": lambda p: tileops.tile(p, (2, 1)),
        "identity": lambda p: tileops.expand(p, (1, 3)),
        "tile_1": lambda p: tileops.onnx.tile_1(p, 2, 1),
        "adjoint": lambda p: tileops.tile_adjoint(p, (1, 1), (1, 3)),
    }
    for name, call in calls.items():
        assert type(call(cls(x))) is type(x), name
        assert np.asarray(call(cls(x))).tobytes() == np.asarray(call(x)).tobytes(), name
        inside = jax.make_jaxpr(lambda a, call=call: call(cls(a)))(x)
        assert str(inside) == str(jax.make_jaxpr(call)(x)), name
    keys = jax.random.split(jax.random.key(0), 3)
    assert tileops.tile(cls(keys), 2).dtype == keys.dtype
    (n,) = jax.export.symbolic_shape("n")
    exported = jax.export.export(jax.jit(lambda a: tileops.expand(cls(x), (a.shape[0], 3)) + a))(
        jax.ShapeDtypeStruct((n, 3), "float32")
    )
    assert exported.call(jax.numpy.zeros((5, 3), "float32")).sum() == 15
    with pytest.raises(tileops.DTypeError, match="out= takes arrays of NumPy"):
        tileops.tile(cls(x), 2, out=np.ones(2))


@pytest.mark.parametrize("cls", [Bare, Parameter])
@pytest.mark.parametrize("value", [np.ones(3, "float32"), np.float32(3), 3.0], ids=repr)
def test_objects_may_stand_for_numbers_and_arrays_of_numpy(jax, cls, value):
    for ours, theirs in (
        (lambda p: tileops.tile(p, 2), lambda p: jax.numpy.tile(p, 2)),
        (lambda p: tileops.expand(p, (2, 3)), lambda p: jax.numpy.broadcast_to(p, (2, 3))),
    ):
        for wrap in (lambda f: f, jax.jit):
            found = wrap(lambda ours=ours: ours(cls(value)))()
            expected = theirs(jax.numpy.asarray(value))
            assert isinstance(found, jax.Array)
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            assert found.weak_type == expected.weak_type
            assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()


def test_the_type_of_an_array_is_not_an_array(jax):
    x = jax.numpy.ones(3, int)
    for call in (lambda a: tileops.tile(a, 2), lambda a: tileops.tile(x, a)):
        with pytest.raises(tileops.DTypeError, match=r"not an array|of no known library"):
            call(jax.typeof(x))


def test_an_array_of_another_library_is_not_taken_for_one_of_jax(jax):
    class Quantity(Parameter):
        def __array_namespace__(self):
            raise NotImplementedError("its own")

    with pytest.raises(NotImplementedError, match="its own"):
        tileops.tile(Quantity(jax.numpy.ones(3)), 2)


def test_the_source_info_of_a_program_names_the_line_of_the_user(jax):
    from jax.extend import source_info_util

    x = jax.numpy.ones((2, 3), "bfloat16")
    for call in (lambda a: tileops.tile(a, (2, 2)), lambda a: tileops.expand(a, (4, 2, 3))):
        for equation in jax.make_jaxpr(call)(x).eqns:
            assert Path(__file__).name in source_info_util.summarize(equation.source_info)


@pytest.fixture
def no_kept_scalar():
    """Forget the scalar that is passed with narrow floats, so that the test makes it."""
    from tileops.execute import jax as executor

    executor._kept_zero.cache_clear()


@pytest.mark.usefixtures("no_kept_scalar")
@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize("guard", ["disallow", "disallow_explicit"])
def test_a_call_passes_the_transfer_guard(jax, guard, name):
    x = jax.numpy.arange(6, dtype=name)
    with jax.transfer_guard(guard):
        results = tileops.tile(x, 3), tileops.expand(x, (2, 1)), tileops.tile(x, 1)
    for result, shape in zip(results, ((18,), (2, 6), (6,)), strict=True):
        assert result.shape == shape
        assert (np.asarray(result).reshape(-1, 6) == np.asarray(x)).all()


def test_export_with_symbolic_tiles(jax):
    (n,) = jax.export.symbolic_shape("n")
    exported = jax.export.export(jax.jit(lambda x, like: tileops.onnx.tile_1(x, like.shape[0], 1)))(
        jax.ShapeDtypeStruct((2, 3), "float32"), jax.ShapeDtypeStruct((n,), "float32")
    )
    x = jax.numpy.arange(6, dtype="float32").reshape(2, 3)
    like = jax.numpy.zeros(2, "float32")
    assert np.array_equal(exported.call(x, like), np.tile(x, (1, 2)))


def test_export_with_symbolic_sizes(jax):
    export = jax.export
    (n,) = export.symbolic_shape("n")
    spec = jax.ShapeDtypeStruct((n, 1), "float32")

    def f(x):
        return (
            tileops.tile(x, (2, 3)),
            tileops.expand(x, (4, 1, 5)),
            tileops.tile(x, (1, x.shape[0])),
        )

    exported = export.export(jax.jit(f))(spec)
    for size in (2, 5):
        shapes = [r.shape for r in exported.call(jax.numpy.ones((size, 1), "float32"))]
        assert shapes == [(2 * size, 3), (4, size, 5), (size, size)]


def test_out_and_views_are_refused_with_a_remedy(jax):
    x = jax.numpy.ones(2)
    with pytest.raises(
        TypeError, match=r"out= takes arrays of NumPy.*an array of jax; .*returned array"
    ):
        tileops.tile(x, 2, out=x)
    with pytest.raises(ValueError, match=r"copy=False"):
        tileops.tile(x, 2, copy=False)


def test_donating_the_input_keeps_the_result(jax):
    x = jax.numpy.arange(3.0)
    results = [tileops.tile(x, 1), tileops.expand(x, 3, copy=True)]
    with jax.disable_jit():
        results += [tileops.tile(x, 1), tileops.expand(x, 3, copy=True)]
    x.delete()
    assert all(result.tolist() == [0, 1, 2] for result in results)


def test_sizes_past_int64_do_not_end_the_process():
    code = (
        "import jax, jax.numpy as jnp, tileops\n"
        "for repeats in (2**62, (2**32, 2**32), 2**100, (2**40, 0, 2**40)):\n"
        "    try: tileops.tile(jnp.ones((2, 1)), repeats)\n"
        "    except tileops.OutputTooLargeError: print('refused')\n"
        "for dtype in (jnp.int4, jnp.uint2, jnp.float4_e2m1fn):\n"
        "    try: tileops.tile(jnp.ones((2, 1), dtype), 2**60)\n"
        "    except tileops.OutputTooLargeError: print('refused')\n"
        "    try: tileops.tile_adjoint(jnp.ones(0, dtype), 2**61, 0)\n"
        "    except tileops.OutputTooLargeError: print('refused')\n"
        "try: tileops.tile_adjoint(jnp.ones(0, jnp.bfloat16), 2**61, 0)\n"
        "except jax.errors.JaxRuntimeError: print('out of memory')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    expected = "refused\n" * 10 + "out of memory\n"
    assert (done.returncode, done.stdout) == (0, expected), done.stderr


def test_bits_are_counted_only_for_elements_narrower_than_a_byte(jax):
    shape = jax.eval_shape(lambda x: tileops.tile(x, 2**61), jax.numpy.ones(2, "int8"))
    assert shape.shape == (2**62,)


@pytest.mark.parametrize(
    "name", ["int1", "uint1", "int2", "uint2", "int4", "uint4", "float4_e2m1fn"]
)
def test_2_to_the_60_elements_narrower_than_a_byte_are_refused(jax, name):
    if not hasattr(jax.numpy, name):
        pytest.skip(f"this version of JAX has no {name}")
    x, empty = jax.ShapeDtypeStruct((1,), name), jax.ShapeDtypeStruct((0,), name)
    assert jax.eval_shape(lambda x: tileops.tile(x, 2**60 - 1), x).shape == (2**60 - 1,)
    for operator, argument, call, given in (
        ("tile", "repeats", lambda x: tileops.tile(x, 2**60), x),
        ("expand", "shape", lambda x: tileops.expand(x, 2**60), x),
        ("tile_adjoint", "shape", lambda g: tileops.tile_adjoint(g, 2**60, 0), empty),
    ):
        with pytest.raises(tileops.OutputTooLargeError) as caught:
            jax.eval_shape(call, given)
        assert str(caught.value) == (
            f"{operator}: the result's shape ({2**60},) of {name} is larger than any array of JAX: "
            f"XLA counts bits, up to 2**63-1; reduce the {argument} or the input"
        )


def test_a_donated_input_under_vjp_keeps_the_result(jax):
    x = jax.numpy.arange(1024.0)
    result, _ = jax.vjp(lambda b: tileops.tile(b, 1), x)
    jax.jit(lambda a: a + 1, donate_argnums=0)(x)
    assert float(result.sum()) == 523776


def test_expand_refuses_a_symbolic_size_that_need_not_broadcast(jax):
    (b,) = jax.export.symbolic_shape("b")
    spec = jax.ShapeDtypeStruct((b,), "float32")
    for call in (
        lambda a: tileops.expand(a, 3),
        lambda a: tileops.expand(jax.numpy.ones(3), 3 * a.shape[0]),
    ):
        with pytest.raises(tileops.ShapeError, match="must be equal, or one of them 1"):
            jax.export.export(jax.jit(call))(spec)


def test_an_array_on_one_device_is_summed_by_a_reduction(jax, monkeypatch):
    monkeypatch.setattr("tileops.execute.jax._sum_sharded", None)
    assert tileops.tile_adjoint(jax.numpy.ones(4), 2, 2).tolist() == [2, 2]


def test_an_adjoint_without_sums_keeps_the_bits_of_signalling_nans(jax):
    bits = np.array([[0x7F81, 0xFF81, 0x3F80, 0x8000]], np.uint16)
    g = jax.numpy.asarray(bits).view("bfloat16")
    for result in (tileops.tile_adjoint(g, (1, 4), 1), tileops.expand_adjoint(g[0], 4)):
        assert np.asarray(result).tobytes() == bits.tobytes()


def test_an_empty_sum_in_the_memory_of_its_device_is_not_moved(jax):
    g = jax.numpy.ones((2, 0))
    program = jax.make_jaxpr(lambda g: tileops.tile_adjoint(g, (2, 3), (1, 0)))(g)
    assert "device_put" not in str(program)
    assert not tileops.tile_adjoint(g, (2, 3), (1, 0)).any()


def test_int4_counts_are_accepted_and_typed_keys_are_refused(jax):
    x = jax.numpy.arange(3)
    assert tileops.tile(x, jax.numpy.array(2, "int4")).shape == (6,)
    with pytest.raises(tileops.RepeatsTypeError, match="must be integers"):
        tileops.tile(x, jax.random.key(0))


def test_arrays_of_many_axes_are_not_compiled_at_each_call(jax):
    import tileops.execute.jax as executor

    x = jax.numpy.ones((1,) * 40 + (2,))
    for rank in (41, 70):
        compiled = executor._compiled._cache_size()
        results = [tileops.tile(x, (1,) * (rank - 1) + (3,)) for _ in range(3)]
        assert {r.shape for r in results} == {(1,) * (rank - 1) + (6,)}
        assert executor._compiled._cache_size() - compiled == 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_compiled_programs_outlive_plans(jax, dtype):
    """Plans of calls on other arrays may push out a plan; to compile takes 50 ms."""
    import tileops.execute.jax as executor

    x = jax.numpy.ones((7, 1), dtype)
    tileops.tile(x, (3, 5))
    compiled = executor._compiled._cache_size()
    for call in (
        lambda: tileops.tile(x, (3, 5)),
        lambda: tileops.expand(x, (1, 7, 5)),
        lambda: tileops.tile(x, (1, 1, 5)),
    ):
        cached_plan.cache_clear()
        call()
    assert executor._compiled._cache_size() == compiled + 1  # the last two are the same


@pytest.mark.usefixtures("no_kept_scalar")
def test_the_kept_scalar_commits_no_result_to_its_device(jax):
    """The kept scalar is no tracer, even if the first call is traced and closes over an array."""
    from tileops.execute import jax as executor

    x = jax.numpy.asarray([0x0010, 0x7F93], "uint16").view("bfloat16")
    traced = jax.jit(lambda y: (tileops.tile(x, 2), y))(0)[0]
    results = [traced, tileops.tile(x, 2), tileops.tile(jax.device_put(x, jax.devices()[0]), 2)]
    assert executor._kept_zero.cache_info().currsize == 1
    for result in results:
        assert np.asarray(result.view("uint16")).tolist() == [0x0010, 0x7F93] * 2
    assert [result.committed for result in results] == [False, False, True]


@pytest.mark.usefixtures("no_kept_scalar")
@pytest.mark.parametrize("kind", ["shard_map", "vmap", "vjp", "disable_jit", "sparsify"])
@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2"])
def test_the_kept_scalar_is_no_tracer_of_any_trace(jax, kind, name):
    """It outlives the trace; JAX's `ensure_compile_time_eval` leaves only those of `jit`."""
    from jax.experimental import sparse

    x, v = jax.numpy.asarray([1, 2], name), jax.numpy.zeros(4)

    def f(v):
        return v + tileops.tile(x, 2).astype(v.dtype)

    mesh, spec = jax.make_mesh((1,), ("a",)), jax.sharding.PartitionSpec()
    mapped = jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)
    if kind == "shard_map":
        result = mapped(v)
    elif kind == "vmap":
        result = jax.vmap(mapped)(v[None])[0]
    elif kind == "vjp":
        result = jax.vjp(mapped, v)[0]
    elif kind == "disable_jit":
        with jax.disable_jit():
            result = jax.jit(mapped)(v)
    else:
        result = sparse.sparsify(f, use_tracer=True)(v)
    assert result.tolist() == [1, 2] * 2
    assert tileops.tile(x, 2).tolist() == [1, 2] * 2


@pytest.mark.usefixtures("no_kept_scalar")
@pytest.mark.parametrize("names", [("bfloat16", "float8_e5m2"), ("float8_e5m2", "bfloat16")])
def test_the_kept_scalar_has_the_width_of_the_elements(jax, names):
    for name in names:
        x = jax.numpy.asarray([[1, 2], [3, 4]], name)
        result = tileops.tile(x, (3, 2))
        assert (result.shape, result.dtype) == ((6, 4), x.dtype)
        assert (np.asarray(result) == np.tile(np.asarray(x), (3, 2))).all()


def test_the_kept_scalar_may_be_deleted(jax):
    """Users free memory by deleting all of `jax.live_arrays`."""
    from tileops.execute import jax as executor

    x = jax.numpy.asarray([1, 2], "bfloat16")
    executor._resident(np.dtype("uint16"), x.device).delete()
    assert tileops.tile(x, 2).tolist() == [1, 2, 1, 2]


def test_the_kept_scalar_is_made_once(jax):
    from tileops.execute import jax as executor

    zero, device = np.dtype("uint16"), jax.devices()[0]
    assert executor._resident(zero, device) is executor._resident(zero, device)


@pytest.mark.parametrize("operator, counts", [(tileops.tile, (3, 1)), (tileops.expand, (3, 2))])
def test_bfloat16_subnormals_survive(jax, operator, counts):
    jnp = jax.numpy
    bits = np.array([0x7893, 0x0010], np.uint16)
    x = jnp.asarray(bits).view(jnp.bfloat16)
    result = operator(x, counts)
    assert np.array_equal(np.asarray(result.view(jnp.uint16)), np.tile(bits, (3, 1)))
    if variants.converts_bfloat16():
        own = np.asarray(jnp.broadcast_to(x, (3, 2)).view(jnp.uint16))
        assert not np.any(own[:, 1]), "no longer so: use it for bfloat16"
