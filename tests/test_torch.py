"""What only PyTorch has: gradients, conjugate views, meta tensors, layouts, narrow integers."""

import subprocess
import sys
from math import prod

import pytest

import tileops
from tileops._plan import cached_plan, contiguous, sum_groups
from tileops._rules import TILE
from tileops.execute.torch_cost import steps_cost_less

pytestmark = pytest.mark.library("torch")


@pytest.fixture
def torch():
    import torch

    return torch


def same(a, b):
    return (
        a.dtype == b.dtype and a.shape == b.shape and a.device == b.device and bool((a == b).all())
    )


def test_gradients_of_first_and_second_order_are_right(torch):
    x = torch.randn(2, 1, 3, dtype=torch.float64, requires_grad=True)
    for f in (
        lambda x: tileops.tile(x, (2, 2, 1, 3)),
        lambda x: tileops.tile(x, (0, 2)),
        lambda x: tileops.tile(x, 1),
        lambda x: tileops.expand(x, (4, 2, 5, 1)),
        lambda x: tileops.expand(x, (2, 5, 3), copy=True),
    ):
        assert f(x).requires_grad
        assert torch.autograd.gradcheck(f, x)
        assert torch.autograd.gradgradcheck(f, x)


@pytest.mark.parametrize("repeats", [(1_000, 1, 2), (30_000, 1, 8)], ids=["64 kB", "8 MB"])
def test_gradients_of_many_repeats_are_accurate(torch, repeats):
    """PyTorch's own sum over axes that are no neighbours adds up one number after the other."""
    x = torch.zeros(8, 1, requires_grad=True)
    result = tileops.tile(x, repeats)
    g = torch.rand(result.shape, generator=torch.Generator().manual_seed(1))
    exact = g.double().reshape(repeats[0], 8, repeats[2]).sum((0, 2)).reshape(8, 1)
    (gradient,) = torch.autograd.grad(result, x, g)
    for total in (gradient, tileops.tile_adjoint(g, (8, 1), repeats)):
        assert ((total.double() - exact).abs().max() / exact.max()).item() < 3e-7


def sums_of(torch, call):
    """Call a function, and count how often PyTorch sums."""
    with torch.profiler.profile(acc_events=True) as profile:
        call()
    return [event.name for event in profile.events()].count("aten::sum")


@pytest.mark.parametrize(
    ("view", "shape", "repeats", "sums"),
    [
        (lambda x: x, (64, 64), (4, 4), 2),
        (lambda x: x.T, (64, 64), (4, 4), 2),
        (lambda x: x[::2, 1:], (128, 65), (4, 4), 2),
        (lambda x: x.expand(64, 64), (64, 1), (4, 4), 2 + 1),
        (lambda x: x, (1, 64, 1), (100, 1, 10), 2),
        (lambda x: x, (64, 1), (100, 1, 10), 2),
        (lambda x: x, (8, 9, 10, 11), (2, 1, 2, 2), 3),
        (lambda x: x, (2730, 2), (3, 2), 2),
    ],
)
def test_a_recorded_tile_is_summed_over_one_axis_after_the_other(torch, view, shape, repeats, sums):
    """By PyTorch alone: for results of this size, a function in Python would take too long."""
    x = torch.randint(9, shape).float().requires_grad_()
    result, expected = tileops.tile(view(x), repeats), view(x).repeat(repeats)
    assert torch.equal(result, expected)
    assert result.is_contiguous()
    assert not result._is_view()
    assert not isinstance(result.grad_fn, torch.autograd.function.BackwardCFunction)
    result.detach().zero_()
    assert torch.equal(view(x).repeat(repeats), expected)
    g = torch.randint(9, result.shape).float()
    assert sums_of(torch, lambda: result.backward(g)) == sums
    (theirs,) = torch.autograd.grad(expected, x, g)
    assert torch.equal(x.grad, theirs)


@pytest.mark.parametrize(("shape", "repeats"), [((2, 2), (2, 2)), ((64, 64), (4, 4))])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_gradients_of_narrow_floats_are_those_of_repeat(torch, dtype, shape, repeats):
    x = torch.zeros(shape, dtype=getattr(torch, dtype), requires_grad=True)
    result, expected = tileops.tile(x, repeats), x.repeat(repeats)
    g = torch.randint(2, result.shape).to(x.dtype)
    ours, theirs = (torch.autograd.grad(y, x, g)[0].float() for y in (result, expected))
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize(("g", "sums"), [((1024, 1024), 2), ((1, 1), 1)], ids=["all", "one"])
def test_a_gradient_of_a_single_number_is_summed_at_once(torch, g, sums):
    """PyTorch's sum over all axes is fast where it reads the same number again and again."""
    x = torch.zeros(256, 256, requires_grad=True)
    result, g = tileops.tile(x, (4, 4)), torch.ones(g).expand(1024, 1024)
    assert sums_of(torch, lambda: result.backward(g)) == sums
    assert sums_of(torch, lambda: tileops.tile_adjoint(g, (256, 256), (4, 4))) == sums
    assert x.grad.tolist() == tileops.tile_adjoint(g, (256, 256), (4, 4)).tolist()
    assert x.grad.unique().tolist() == [16]


def test_a_sparse_gradient_of_a_large_tile_is_summed(torch):
    x = torch.randn(1, 1024, 1, requires_grad=True)
    result = tileops.tile(x, (256, 1, 4))
    places = torch.zeros(1, 1024, 1, dtype=torch.int64)
    total = torch.gather(result, 0, places, sparse_grad=True).sum()
    (gradient,) = torch.autograd.grad(total, x)
    assert gradient.to_dense().tolist() == torch.ones_like(x).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64"])
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda g: tileops.expand_adjoint(g, (4,)), lambda g: g.sum((0, 1))),
        (lambda g: tileops.expand_adjoint(g, (1, 4)), lambda g: g.sum((0, 1)).reshape(1, 4)),
        (lambda g: tileops.expand_adjoint(g, (2, 3, 4)), lambda g: g),
        (lambda g: tileops.tile_adjoint(g, (3, 2), (2, 1, 2)), lambda g: g.sum(0)[:, :2] * 2),
        (lambda g: tileops.tile_adjoint(g[:0], (3, 4), (0, 1, 1)), lambda g: g[0] * 0),
    ],
)
def test_an_adjoint_is_a_tensor_of_its_own(torch, dtype, call, expected):
    """PyTorch refuses some writes to views, such as those of tensors that require a gradient."""
    g = torch.ones(2, 3, 4, dtype=getattr(torch, dtype))
    with torch.no_grad():
        total = call(g)
    assert total.tolist() == expected(g).tolist()
    assert not total._is_view()
    assert total.untyped_storage().data_ptr() != g.untyped_storage().data_ptr()
    total.mul_(torch.ones_like(total).requires_grad_())

    class Summed(torch.autograd.Function):
        @staticmethod
        def forward(_ctx, g):
            return call(g)

        @staticmethod
        def backward(_ctx, _):
            raise AssertionError

    Summed.apply(g.clone().requires_grad_()).mul_(2)
    weight = torch.nn.Parameter(torch.empty_like(total))
    weight.grad = call(g.clone().requires_grad_())
    torch.optim.SGD([weight]).zero_grad(set_to_none=False)
    assert not weight.grad.any()


def test_the_steps_of_a_sum_are_kept_no_longer_than_its_plan(torch):
    x = torch.ones(100, 1, 100, requires_grad=True)
    kept = sum_groups.cache_info().currsize
    result = tileops.tile(x, (2, *(1,) * 61, 10, 1, 10))
    result.backward(torch.ones_like(result))  # that of a sum, of strides 0, has one step
    assert x.grad.eq(200).all()
    assert sum_groups.cache_info().currsize == kept


def test_zero_repeats_give_zero_gradients(torch):
    x = torch.ones(3, requires_grad=True)
    tileops.tile(x, 0).sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_parameters_stay_differentiable(torch):
    weight = torch.nn.Parameter(torch.ones(2))
    result = tileops.tile(weight, 3)
    assert type(result) is torch.Tensor
    assert not result.is_leaf
    result.sum().backward()
    assert weight.grad.tolist() == [3, 3]
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    assert not tileops.tile(frozen, 3).requires_grad


def test_conjugate_and_negative_views_keep_their_values(torch):
    z = torch.randn(3, dtype=torch.complex64)
    for x in (z.conj(), z.conj().imag, torch._neg_view(z)):
        assert same(tileops.tile(x, (2, 2)), x.repeat(2, 2))
        assert same(tileops.expand(x, (2, 3)), x.expand(2, 3))
        out = torch.empty(6, dtype=x.dtype)
        assert same(tileops.tile(x, 2, out=out), x.repeat(2))
    assert same(tileops.tile(z, 2, out=torch.empty(6, dtype=z.dtype).conj()), z.repeat(2))


def test_meta_tensors_have_shapes_only(torch):
    x = torch.empty(2, 3, device="meta", dtype=torch.bfloat16)
    result = tileops.tile(x, (2, 1, 4))
    assert (result.device.type, result.dtype, result.shape) == ("meta", x.dtype, (2, 2, 12))
    assert tileops.expand(x, (5, 1, 3)).shape == (5, 2, 3)
    out = torch.empty(2, 6, device="meta", dtype=x.dtype)
    assert tileops.tile(x, 2, out=out) is out
    assert tileops.tile(x, 2**40).shape == (2, 3 * 2**40)
    with pytest.raises(TypeError, match="static"):
        tileops.tile(x, torch.ones(2, device="meta", dtype=torch.int64))


def test_narrow_integers_that_torch_cannot_repeat_are_repeated(torch):
    raw = torch.arange(6, dtype=torch.uint8).reshape(2, 3)
    x = raw.view(torch.uint4)
    with pytest.raises(NotImplementedError):
        x.repeat(2, 2)
    assert same(tileops.tile(x, (2, 2)).view(torch.uint8), raw.repeat(2, 2))
    out = torch.empty(4, 6, dtype=torch.uint4)
    assert same(tileops.tile(x, (2, 2), out=out).view(torch.uint8), raw.repeat(2, 2))


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantised_tensors_are_repeated_or_refused_with_a_remedy(torch):
    x = torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.5, 3, torch.qint8)
    result = tileops.tile(x, 2)
    assert (result.q_scale(), result.q_zero_point()) == (0.5, 3)
    assert result.int_repr().tolist() == [5, 7, 5, 7]
    scales, zeros = torch.tensor([0.1, 0.2]), torch.tensor([0, 0])
    x = torch.quantize_per_channel(torch.ones(2, 2), scales, zeros, 0, torch.qint8)
    with pytest.raises(TypeError, match=r"quantised along axis 0.*dequantize"):
        tileops.tile(x, 2)
    packed = torch._empty_affine_quantized([2, 4], scale=1.0, zero_point=0, dtype=torch.quint4x2)
    with pytest.raises(TypeError, match=r"several elements in a byte.*dequantize"):
        tileops.tile(packed, 2)


def test_a_parameter_without_a_shape_is_refused(torch):
    weight = torch.nn.parameter.UninitializedParameter()
    for call in (tileops.tile, tileops.expand, lambda x, n: tileops.tile_adjoint(x, 1, n)):
        with pytest.raises(tileops.ShapeError, match="UninitializedParameter, which has no shape"):
            call(weight, 2)


@pytest.mark.filterwarnings(
    "ignore:Sparse:UserWarning", "ignore:The PyTorch API of nested:UserWarning"
)
def test_layouts_without_strides_are_refused(torch):
    dense = torch.eye(2)
    for x in (dense.to_sparse(), dense.to_sparse_csr(), dense.to_mkldnn()):
        with pytest.raises(TypeError, match=r"layout torch\..*to_dense"):
            tileops.tile(x, 2)
        with pytest.raises(TypeError, match=r": g has layout torch\..*its to_dense"):
            tileops.tile_adjoint(x, (2, 1), 2)
        with pytest.raises(TypeError, match="dense tensors"):
            tileops.tile(dense, 1, out=x)
    for layout in (torch.strided, torch.jagged):
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)
        with pytest.raises(TypeError, match="nested tensor"):
            tileops.tile(nested, 2)
        with pytest.raises(TypeError, match="dense tensors"):
            tileops.tile(torch.ones(3), 2, out=nested)


def test_out_records_no_gradient(torch):
    x = torch.ones(2, requires_grad=True)
    out = torch.zeros(4)
    with pytest.raises(tileops.OutputError, match="records no gradient"):
        tileops.tile(x, 2, out=out)
    assert out.tolist() == [0] * 4
    with torch.no_grad():
        assert tileops.tile(x, 2, out=out).tolist() == [1] * 4
    with pytest.raises(tileops.OutputError, match="or out requires one"):
        tileops.tile(torch.zeros(2), 2, out=out.requires_grad_())
    assert out.tolist() == [1] * 4


def test_out_on_another_device_or_of_another_library_is_refused(torch):
    import numpy as np

    x = torch.ones(2)
    with pytest.raises(tileops.OutputError, match=r"device meta.*cpu.*; pass an out on cpu$"):
        tileops.tile(x, 2, out=torch.empty(4, device="meta"))
    with pytest.raises(TypeError, match=r"out is numpy\.ndarray.*torch\.Tensor"):
        tileops.tile(x, 2, out=np.zeros(4, np.float32))


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_a_view_of_the_same_shape_is_a_tensor_of_its_own(torch, shape):
    x = torch.ones(shape)
    tileops.expand(x, shape).unsqueeze_(0)
    assert x.shape == shape


def test_torch_sizes_and_tensors_are_accepted_as_counts(torch):
    x = torch.ones(2, 1)
    assert tileops.expand(x, torch.ones(5, 2, 4).shape).shape == (5, 2, 4)
    assert tileops.tile(x, torch.tensor(3, dtype=torch.uint8)).shape == (2, 3)


def test_compile_and_symbolic_sizes_make_one_graph(torch):
    from torch.fx.experimental.proxy_tensor import make_fx

    def f(x):
        return (
            tileops.tile(x, (1, x.shape[0])),
            tileops.expand(x[:, :1], (x.shape[0], 4)),
            tileops.expand(x, (1, *x.shape)),
        )

    graph = make_fx(f, tracing_mode="symbolic")(torch.ones(3, 2))
    for n in (3, 5):
        x = torch.randn(n, 2)
        expected = x.repeat(1, n), x[:, :1].expand(n, 4), x[None]
        for got, want in zip(graph(x), expected, strict=True):
            assert same(got, want)
    compiled = torch.compile(f, fullgraph=True, backend="eager")
    x = torch.randn(4, 2)
    assert same(compiled(x)[0], x.repeat(1, 4))


def test_an_error_about_counts_in_a_matrix_shows_its_shape_as_a_tuple(torch):
    with pytest.raises(tileops.RepeatsError, match=r"repeats has shape \(1, 2\); it must be"):
        tileops.tile(torch.ones(2), torch.tensor([[1, 2]]))


@pytest.mark.filterwarnings("ignore:`torch.jit.trace", "ignore:Converting a tensor to a Python")
def test_jit_trace_reads_a_vector_of_counts_and_a_count_for_another_library(torch):
    """Only a single count for a tensor is a symbol of the trace."""
    row, two = torch.arange(3).numpy(), torch.tensor(2, dtype=torch.int32)
    counts = torch.tensor([2, 3], dtype=torch.int32)

    def f(x):
        assert tileops.tile(row, two).tolist() == [0, 1, 2] * 2
        return tileops.tile(x, counts)

    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(torch.jit.trace(f, x)(x), x.repeat(2, 3))


@pytest.mark.filterwarnings("ignore:`torch.jit.trace", "ignore:Converting a tensor to a Python")
@pytest.mark.parametrize("repeats", [(2, 1), (1, 3), (2, 1, 2), (1, 1)])
def test_jit_trace_fixes_no_size_of_a_tile(torch, repeats):
    for n in (1, 2):
        traced = torch.jit.trace(lambda a: tileops.tile(a, repeats), torch.ones(n, 3))
        x = torch.randn(5, 3)
        assert torch.equal(traced(x), x.repeat(repeats))


@pytest.mark.filterwarnings("ignore:`torch.jit.trace", "ignore:Converting a tensor to a Python")
@pytest.mark.parametrize("axes", [slice(None), slice(1, None)], ids=["summed", "left out"])
def test_jit_trace_fixes_no_size_that_an_expand_adjoint_sums(torch, axes):
    def call(g):
        return tileops.expand_adjoint(g, (1, g.shape[1])[axes])

    traced = torch.jit.trace(call, torch.ones(3, 4))
    for rows, columns in ((5, 4), (2, 7)):
        expected = [[float(rows)] * columns]
        assert traced(torch.ones(rows, columns)).reshape(1, -1).tolist() == expected


@pytest.mark.filterwarnings("ignore:`torch.jit.trace", "ignore:Converting a tensor to a Python")
def test_jit_trace_refuses_a_single_count_where_a_vector_is_wanted(torch):
    for call in (tileops.onnx.tile_13, tileops.openvino.tile):
        with pytest.raises(tileops.RepeatsError, match="must be one-dimensional"):
            torch.jit.trace(lambda x, call=call: call(x.reshape(-1), x.size(0)), torch.ones(2, 3))


@pytest.mark.filterwarnings("ignore:`torch.jit.trace", "ignore:Converting a tensor to a Python")
def test_jit_trace_checks_max_bytes(torch):
    """Sizes are tensors in a trace, and could not be compared with a limit."""
    x = torch.ones(2, 3)
    traced = torch.jit.trace(lambda a: tileops.tile(a, (2, 1), max_bytes=48), x)
    assert torch.equal(traced(x), x.repeat(2, 1))
    with pytest.raises(tileops.OutputTooLargeError, match=r"more than max_bytes=47"):
        torch.jit.trace(lambda a: tileops.tile(a, (2, 1), max_bytes=47), x)


@pytest.mark.filterwarnings("ignore:`torch.jit.trace", "ignore:Converting a tensor to a Python")
@pytest.mark.parametrize("copy", [None, True])
def test_jit_trace_fixes_no_size_that_an_expand_keeps(torch, copy):
    def expand(x):
        return tileops.expand(x[:, None], (2, 1, 4, 1), copy=copy)

    traced = torch.jit.trace(expand, torch.ones(3, 2))
    for shape in ((5, 2), (3, 7)):
        x = torch.randn(shape)
        assert torch.equal(traced(x), x[:, None].expand(2, -1, 4, -1))


TRACED = {
    "class token": (
        lambda x: tileops.expand(x[:1, :1], (x.shape[0], 1, 1)),
        lambda x: x[:1, :1].repeat(len(x), 1, 1),
    ),
    "sizes": (
        lambda x: tileops.expand(x[:, None], (x.shape[0], 2, x.shape[1], x.shape[2])),
        lambda x: x[:, None].repeat(1, 2, 1, 1),
    ),
    "sizes, copied": (
        lambda x: tileops.expand(x[:, None], (x.shape[0], 2, *x.shape[1:]), copy=True),
        lambda x: x[:, None].repeat(1, 2, 1, 1),
    ),
    "count": (
        lambda x: tileops.tile(x, (x.shape[1], 1, 2)),
        lambda x: x.repeat(x.shape[1], 1, 2),
    ),
    "count alone": (
        lambda x: tileops.tile(x, x.shape[1]),
        lambda x: x.repeat(1, 1, x.shape[1]),
    ),
    "counts": (
        lambda x: tileops.tile(x, x.shape),
        lambda x: x.repeat(x.shape),
    ),
    "computed": (
        lambda x: tileops.tile(x, [2 * x.shape[0] - 1, 1, 1]),
        lambda x: x.repeat(2 * len(x) - 1, 1, 1),
    ),
    "onnx": (
        lambda x: tileops.onnx.tile(x, (1, x.shape[1], 2)),
        lambda x: x.repeat(1, x.shape[1], 2),
    ),
    "openvino": (
        lambda x: tileops.openvino.tile(x, (x.shape[1], 2)),
        lambda x: x.repeat(1, x.shape[1], 2),
    ),
    "directml": (
        lambda x: tileops.directml.tile(x, (1, x.shape[1], 2)),
        lambda x: x.repeat(1, x.shape[1], 2),
    ),
    "adjoint": (
        lambda x: tileops.tile_adjoint(x, (*x.shape[:2], 1), (1, 1, 4)),
        lambda x: x.sum(2, keepdim=True),
    ),
}
"""Programs, each with its equivalent in PyTorch's own operations."""


@pytest.mark.filterwarnings("ignore:`torch.jit.trace")
@pytest.mark.filterwarnings("ignore:Converting a tensor to a Python (?!boolean)")
@pytest.mark.parametrize("counts", [[2, 3], [2]])
def test_jit_trace_reads_the_counts_in_a_vector(torch, counts):
    vector, x = torch.tensor(counts), torch.arange(6.0).reshape(2, 3)
    traced = torch.jit.trace(lambda x: tileops.tile(x, vector), x)
    result = traced(x + 6)
    assert result.dtype == x.dtype
    assert torch.equal(result, torch.tile(x + 6, counts))


@pytest.mark.filterwarnings("ignore:`torch.jit.trace", "ignore:Converting a tensor to a Python")
@pytest.mark.parametrize("name", TRACED)
def test_jit_trace_fixes_no_count_that_is_a_size(torch, name):
    program, native = TRACED[name]
    traced = torch.jit.trace(program, torch.ones(3, 5, 4))
    for shape in ((3, 5, 4), (2, 5, 4), (6, 7, 4), (1, 1, 4)):
        x = torch.randn(shape)
        expected = native(x)
        assert traced(x).shape == expected.shape
        assert torch.equal(traced(x), expected)


@pytest.mark.filterwarnings("ignore:`torch.jit.trace", "ignore:Converting a tensor to a Python")
def test_jit_trace_expands_axes_of_size_1(torch):
    x = torch.ones(1, 4)
    traced = torch.jit.trace(lambda a: tileops.expand(a, (3, 4)), x)
    assert traced(x).shape == (3, 4)


def test_symbolic_sizes_that_need_not_fit_are_refused(torch):
    from torch.fx.experimental.proxy_tensor import make_fx

    with pytest.raises(tileops.ShapeError, match="must be equal, or one of them 1"):
        make_fx(lambda a: tileops.expand(a, (7,)), tracing_mode="symbolic")(torch.ones(5))
    with pytest.raises(tileops.OutputTooLargeError, match="not known while tracing"):
        make_fx(lambda a: tileops.tile(a, 2, max_bytes=1), tracing_mode="symbolic")(torch.ones(5))


def test_out_that_cannot_be_checked_is_refused(torch):
    x = torch.ones(3, 2)
    with pytest.raises(tileops.OutputError, match="without an address"):
        torch.vmap(lambda row: tileops.tile(row, 2, out=torch.empty_like(row).repeat(2)))(x)
    with torch.inference_mode():
        out = torch.zeros(4)
        assert tileops.tile(x[0], 2, out=out).tolist() == [1] * 4
    with pytest.raises(tileops.OutputError, match="inference tensor"):
        tileops.tile(x[0], 2, out=out)


def test_counts_without_values_are_refused(torch):
    x = torch.ones(2)
    for counts in (
        torch.ones(1, dtype=torch.int64).to_sparse(),
        torch.ones(1, device="meta", dtype=torch.int64),
    ):
        with pytest.raises(tileops.RepeatsTypeError, match="must be static"):
            tileops.tile(x, counts)
    for batch in ([1, 2], [[1], [2]]):
        with pytest.raises(tileops.RepeatsTypeError, match="must be static"):
            torch.vmap(lambda counts: tileops.tile(x, counts))(torch.tensor(batch))
    for counts in ([torch.tensor([True])], [torch.tensor([[2]])], [torch.tensor([2])]):
        with pytest.raises(tileops.RepeatsTypeError, match="must be integers"):
            tileops.tile(x, counts)


@pytest.mark.parametrize("rows", [1, 100_000])
def test_tensors_may_have_more_axes_than_numpy_allows(torch, rows):
    x = torch.rand((1,) * 70 + (rows, 3))
    expected = x.repeat((1,) * 71 + (4,))
    out = torch.zeros_like(expected)
    assert torch.equal(tileops.tile(x, 4), expected)
    assert torch.equal(tileops.tile(x, 4, out=out), expected)
    assert torch.equal(tileops.tile(x.requires_grad_(), 4), expected)
    with pytest.raises(tileops.OutputTooLargeError, match=r"elements of 4 bytes"):
        tileops.tile(x, 2**61 // rows)


@pytest.mark.parametrize(
    "dtype, shape, repeats, axes, threads, is_planned",
    [
        ("uint8", (512, 512, 1), (1, 1, 3), (0, 1, 2), 2, True),  # rows of one element, three times
        ("int16", (100, 3), (100, 100), (0, 1), 2, True),
        ("float32", (512, 512), (4, 1), (0, 1), 2, False),  # a single row
        ("float32", (512, 512), (4, 2), (0, 1), 2, False),  # long rows
        ("float32", (512, 512), (4, 2), (1, 0), 2, True),  # long rows of scattered elements
        ("float32", (300, 300, 1), (1, 1, 2), (0, 1, 2), 1, True),
        ("float32", (300, 300, 1), (1, 1, 2), (0, 1, 2), 8, False),  # shared by many threads
    ],
)
@pytest.mark.parametrize("has_out", [False, True])
def test_copies_that_take_torch_long_are_planned(
    torch, monkeypatch, dtype, shape, repeats, axes, threads, is_planned, has_out
):
    from tileops.execute import host

    planned, write = [], host.write

    def watched(*args):
        planned.append(args)
        write(*args)

    monkeypatch.setattr(host, "write", watched)
    x = torch.arange(prod(shape)).to(getattr(torch, dtype)).view(shape).permute(axes)
    expected = x.repeat(repeats)
    out = torch.empty_like(expected) if has_out else None
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        result = tileops.tile(x, repeats, out=out)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(result, expected)
    assert bool(planned) == is_planned


@pytest.mark.parametrize("repeats", [(1, 1), (2, 1), (1, 100)])
def test_a_tensor_whose_storage_was_cut_is_refused_as_by_torch(torch, repeats):
    x = torch.ones(2**20, 1)
    x.untyped_storage().resize_(16)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        tileops.tile(x, repeats)


def test_an_out_whose_storage_was_cut_is_refused(torch):
    for n, nbytes in ((2**20, 16), (8, 16), (8, 0)):
        out = torch.ones(n)
        out.untyped_storage().resize_(nbytes)
        with pytest.raises(tileops.OutputError, match="its storage was resized to fewer bytes"):
            tileops.tile(torch.ones(2), n // 2, out=out)


@pytest.mark.parametrize("repeats", [1, 2])
def test_an_input_whose_storage_was_cut_is_refused_with_an_out(torch, repeats):
    x, out = torch.ones(2**20, 1), torch.zeros(2**20, repeats)
    x.untyped_storage().resize_(16)
    with pytest.raises(
        tileops.OutputError, match=r"the input has .* its storage was resized to fewer bytes"
    ):
        tileops.tile(x, (1, repeats), out=out)
    assert not out.any()


@pytest.mark.parametrize(
    "shape, repeats, itemsize, step, is_moved",
    [
        # The library copies few rows, or long ones
        ((64, 1024), (1, 8), 1, 1, False),
        ((20_000, 1), (1, 3), 1, 1, False),
        # The library copies many short rows
        ((100_000, 3), (1, 4), 1, 1, True),
        # Repetitions cost less than a plan; an input with gaps is copied before them
        ((398, 41, 1), (1, 44, 3), 1, 1, True),
        ((398, 41, 1), (1, 44, 3), 1, 2, True),
        # Repetitions and their bytes cost slightly more than the library's rows
        ((7740, 1), (8, 17), 2, 1, False),
        # Both are shared by two threads
        ((77_358, 7), (1, 8), 2, 1, True),
        # The library's threads share only results of 32 Ki elements or more
        ((1324, 4), (2, 3), 8, 1, True),
        ((506, 4), (1, 31), 4, 1, False),
        # Repetitions would cost less, but take longer to begin than the library takes
        ((46, 36), (20, 9), 1, 1, False),
        # One copy would cost less, but takes longer to begin than it saves
        ((1559, 8), (3, 2), 8, 1, False),
        # Repetitions cost more into the result that PyTorch has made than into a new one
        ((3577, 1), (9, 13), 2, 1, False),
    ],
)
def test_a_plan_is_used_where_the_library_takes_longer(shape, repeats, itemsize, step, is_moved):
    plan = cached_plan(TILE, shape, repeats, itemsize)
    strides = tuple(step * stride for stride in contiguous(shape[:-1], shape[-1]))
    assert steps_cost_less(plan, (*strides, 1), None, 2) == is_moved


@pytest.mark.parametrize(
    "repeats, itemsize, order, into, is_moved",
    [
        ((8, 8), 1, "F", "C", True),
        ((8, 8), 2, "C", "F", True),
        # Elements lie side by side in both source and target
        ((8, 8), 1, "F", "F", False),
        # Wider elements cost the library less than their bytes cost a plan
        ((8, 8), 4, "C", "F", False),
        # Few elements are scattered for less time than a plan takes to begin
        ((2, 2), 1, "F", "C", False),
    ],
)
def test_a_plan_is_used_for_scattered_elements_where_torch_takes_longer(
    repeats, itemsize, order, into, is_moved
):
    plan = cached_plan(TILE, (16, 2048), repeats, itemsize)
    source, target = (
        contiguous(sizes, 1) if name == "C" else contiguous(sizes[::-1], 1)[::-1]
        for sizes, name in ((plan.padded, order), (plan.shape, into))
    )
    assert steps_cost_less(plan, source, target, 2) == is_moved


@pytest.mark.parametrize(
    "shape, repeats, itemsize, threads, is_moved",
    [
        ((1077, 4), (9, 1), 2, 1, False),
        ((5619, 15), (2, 1), 4, 2, False),
        ((1840, 10), (1, 3), 8, 1, False),
        ((1840, 10), (4, 6), 2, 1, True),
        ((64, 2048), (2, 4), 1, 2, True),
    ],
)
def test_the_cost_of_a_plan_includes_the_copy_of_a_transposed_input(
    shape, repeats, itemsize, threads, is_moved
):
    plan = cached_plan(TILE, shape, repeats, itemsize)
    assert steps_cost_less(plan, (1, shape[0]), None, threads) == is_moved


def test_a_plan_that_costs_less_only_with_two_threads_is_not_used_with_one():
    plan = cached_plan(TILE, (18_494, 26), (1, 16), 1)
    assert not steps_cost_less(plan, (26, 1), None, 1)


def test_adjoints_sum_over_64_axes_at_most(torch):
    total = tileops.tile_adjoint(torch.zeros((0,) * 64), (1,) * 64, (0,) * 64)
    assert total.tolist() == torch.zeros((1,) * 64).tolist()
    with pytest.raises(tileops.ShapeError, match="65 axes; PyTorch adds up over 64 at most"):
        tileops.tile_adjoint(torch.zeros((0,) * 65), (1,) * 65, (0,) * 65)


def test_out_with_more_axes_than_numpy_may_interleave_with_the_input(torch):
    memory = torch.arange(4.0)
    tileops.tile(memory[::2], (1,) * 65, out=memory[1::2].reshape((1,) * 64 + (2,)))
    assert memory.tolist() == [0, 0, 2, 2]


def test_an_empty_out_overlaps_nothing(torch):
    out = torch.empty(0, 1).expand(0, 6)
    assert tileops.tile(torch.ones(4, 6)[:, ::2], (0, 2), out=out) is out


def test_an_empty_out_needs_no_address(torch):
    """Tensors without memory have no address, and nothing is written to an empty one."""
    from torch.fx.experimental.proxy_tensor import make_fx

    def call(x):
        return tileops.tile(x, 2, out=x.new_empty(0))

    x = torch.empty(0)
    assert make_fx(call, tracing_mode="fake")(x)(x).shape == (0,)
    value, tangent = torch.func.jvp(call, (x,), (x,))
    assert value.shape == tangent.shape == (0,)
    gradient = torch.func.grad(lambda x: (call(x.detach()), x.sum())[1])(x)
    assert gradient.shape == (0,)


@pytest.mark.filterwarnings("error")
def test_out_is_refused_for_fake_tensors_even_where_warnings_are_errors(torch):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), pytest.raises(tileops.OutputError, match="without an address"):
        tileops.tile(torch.ones(200, 300), (3, 3), out=torch.ones(600, 900))


def test_a_torch_without_a_private_name_makes_all_copies_itself():
    """The private names tell what else observes an operation; a later version may lack them."""
    code = """
from importlib import reload
import torch, torch._dynamo, torch.func, torch.utils._device
from tileops.execute import executors, host, torch_bytes
from tileops.execute import torch as executor
import tileops
host.write = host.new = None
x = torch.arange(3 * 2**18).to(torch.uint8).reshape(-1, 3)
out = torch.empty(2**18, 12, dtype=torch.uint8)
for owner, name in (
    (torch._C, "_are_functorch_transforms_active"),
    (torch._C, "_dispatch_tls_is_dispatch_key_excluded"),
    (torch._C, "_is_torch_function_mode_enabled"),
    (torch._C, "_is_tracing"),
    (torch._C, "_len_torch_dispatch_stack"),
    (torch.autograd, "_profiler_enabled"),
    (torch.autograd.forward_ad, "_current_level"),
    (torch.overrides, "_get_current_function_mode_stack"),
):
    function = getattr(owner, name)
    delattr(owner, name)
    reload(torch_bytes)
    executors[torch.Tensor] = reload(executor).executor
    setattr(owner, name, function)
    assert tileops.tile(x, 4, out=out.zero_()) is out
    assert torch.equal(tileops.tile(x, 4), x.repeat(1, 4)) and torch.equal(out, x.repeat(1, 4))
del torch.utils._device.DeviceContext
reload(torch_bytes)
executors[torch.Tensor] = reload(executor).executor
try:
    tileops.tile(x, 4, out=out)
except TypeError:
    pass
else:
    raise AssertionError("with all names, the copy is planned")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_out_with_an_offset_whose_storage_was_cut_is_refused(torch):
    out = torch.ones(16)[8:]
    out.untyped_storage().resize_(32)
    with pytest.raises(tileops.OutputError, match="its storage was resized to fewer bytes"):
        tileops.tile(torch.ones(2), 4, out=out)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_a_quantised_out_is_refused(torch):
    x = torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.5, 3, torch.qint8)
    out = torch.quantize_per_tensor(torch.zeros(4), 0.25, 0, torch.qint8)
    for a, b in ((x, out), (x, torch.zeros(4)), (torch.ones(2), out)):
        with pytest.raises(tileops.DTypeError, match="dense tensors that are not quantised"):
            tileops.tile(a, 2, out=b)


def test_a_recorded_tile_of_a_tensor_with_strides_of_0_is_new(torch):
    x = torch.randint(9, (1, 1, 3)).float().requires_grad_()
    a = x.expand(32, 32, 3)
    result, expected = tileops.tile(a, (4, 4, 1)), a.repeat(4, 4, 1)
    assert result.is_contiguous()
    assert not result._is_view()
    result.detach().zero_()
    assert torch.equal(a.repeat(4, 4, 1), expected)


@pytest.mark.filterwarnings("ignore:`torch.jit.trace", "ignore:Converting a tensor to a Python")
def test_the_steps_of_a_traced_sum_are_not_kept(torch):
    def call(g):
        return tileops.tile_adjoint(g, (2, 3), (g.shape[0] // 2, g.shape[1] // 3))

    kept = sum_groups.cache_info().currsize
    traced = torch.jit.trace(call, torch.ones(4, 9), check_trace=False)
    assert sum_groups.cache_info().currsize == kept
    for sizes in ((4, 9), (2, 12), (8, 3), (6, 27)):
        g = torch.randint(9, sizes).float()
        assert torch.equal(traced(g), call(g))


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
def test_a_traced_adjoint_is_one_sum(torch, mode):
    from torch.fx.experimental.proxy_tensor import make_fx

    def call(g):
        return tileops.tile_adjoint(g, (2, 3), (2, 2))

    nodes = make_fx(call, tracing_mode=mode)(torch.ones(4, 6)).graph.nodes
    assert sum("sum" in str(node.target) for node in nodes) == 1


def test_an_error_of_a_mode_is_not_taken_for_one_of_torch(torch):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Refusing(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            raise RuntimeError("refused by a mode")

    g = torch.ones(4)
    with Refusing(), pytest.raises(RuntimeError, match=r"^refused by a mode$"):
        tileops.tile_adjoint(g, 2, 2)
