"""Large copies in PyTorch, made behind its back: nothing that observes PyTorch may notice."""

import threading

import numpy as np
import pytest

import tileops

pytestmark = [pytest.mark.library("torch"), pytest.mark.usefixtures("thresholds")]


@pytest.fixture
def torch():
    import torch

    return torch


@pytest.fixture
def x(torch):
    return torch.randn(3, 1, 4, dtype=torch.float64)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.numpy().tobytes() == b.numpy().tobytes()


def dispatched(call):
    """Return the result of a call, and the operations that a mode sees in it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **kwargs or {})

    with Watch():
        return call(), seen


def is_view(x):
    return x._is_view()


CALLS = pytest.mark.parametrize(
    "call, native",
    [
        (lambda x: tileops.tile(x, (2, 3, 2)), lambda x: x.repeat(2, 3, 2)),
        (lambda x: tileops.tile(x, 1), lambda x: x.repeat(1, 1, 1)),
        (lambda x: tileops.tile(x, (2, 1, 1, 1)), lambda x: x.repeat(2, 1, 1, 1)),
        (lambda x: tileops.expand(x, (2, 3, 5, 4), copy=True), lambda x: x.repeat(2, 1, 5, 1)),
        (lambda x: tileops.tile(x, (0, 2, 1)), lambda x: x.repeat(0, 2, 1)),
    ],
)


@CALLS
def test_gradients_of_first_and_second_order_are_right(torch, call, native):
    for dtype in (torch.float64, torch.complex128):
        a = torch.randn(3, 1, 4, dtype=dtype, requires_grad=True)
        assert torch.autograd.gradcheck(call, a)
        assert torch.autograd.gradgradcheck(call, a)
        g = torch.randn(native(a).shape, dtype=dtype)
        ours, theirs = (torch.autograd.grad(f(a), a, g)[0] for f in (call, native))
        torch.testing.assert_close(ours, theirs)  # the order of sums is free


@CALLS
def test_gradients_of_inputs_with_gaps_are_those_of_torch(torch, call, native):
    base = torch.randn(4, 2, 3, 2, dtype=torch.float64, requires_grad=True)
    a = base[..., 0].permute(2, 1, 0)[:, :1]
    assert same(call(a).detach(), native(a).detach())
    g = torch.randn(native(a).shape, dtype=torch.float64)
    ours, theirs = (torch.autograd.grad(f(a), base, g)[0] for f in (call, native))
    torch.testing.assert_close(ours, theirs)


@CALLS
def test_torch_func_and_forward_gradients_give_the_results_of_torch(torch, x, call, native):
    for transform in (torch.func.vmap, torch.func.jacrev, torch.func.jacfwd):
        a = torch.randn(2, 3, 1, 4) if transform is torch.func.vmap else x
        assert same(transform(call)(a), transform(native)(a))
    tangent = torch.randn_like(x)
    (value, pushed), (_, expected) = (torch.func.jvp(f, (x,), (tangent,)) for f in (call, native))
    assert same(value, native(x))
    assert same(pushed, expected)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, tangent)
        assert same(torch.autograd.forward_ad.unpack_dual(call(dual)).tangent, native(tangent))


@CALLS
def test_conjugates_negatives_and_tensors_of_zeros_are_resolved(torch, call, native):
    z = torch.randn(3, 1, 4, dtype=torch.complex64)
    for a in (z.conj(), z.conj().imag, torch._efficientzerotensor((3, 1, 4))):
        result = call(a)
        assert not result.is_conj()
        assert not result.is_neg()
        assert torch.equal(result, native(a.resolve_conj().resolve_neg().clone()))


@CALLS
def test_meta_and_fake_tensors_get_the_right_shape(x, call, native):
    from torch._subclasses import FakeTensorMode

    assert call(x.to("meta")).shape == native(x).shape
    with FakeTensorMode() as mode:
        fake = call(mode.from_tensor(x))
    assert type(fake).__name__ == "FakeTensor"
    assert fake.shape == native(x).shape


@CALLS
def test_modes_and_subclasses_see_an_operation(torch, x, call, native):
    result, seen = dispatched(lambda: call(x))
    assert seen
    assert same(result, native(x))

    class Own(torch.Tensor):
        pass

    assert type(call(x.as_subclass(Own))) is Own
    parameter = torch.nn.Parameter(x)
    assert type(call(parameter)) is torch.Tensor
    assert call(parameter).requires_grad


def test_a_default_device_does_not_prevent_large_copies(torch, x, monkeypatch):
    from tileops.execute import torch as executor

    made = []
    monkeypatch.setattr(executor, "_new", lambda *args, new=executor._new: made.append(new(*args)))
    monkeypatch.setattr(executor, "HUGE", 1)
    monkeypatch.setattr(executor.host, "LEAST", 1)

    with torch.device("meta"):
        tileops.tile(x, (2, 3, 2))
        assert same(made.pop(), x.repeat(2, 3, 2))
        with torch.overrides.BaseTorchFunctionMode():
            assert same(tileops.tile(x, (2, 3, 2)), x.repeat(2, 3, 2))
    assert made == []


def test_nothing_is_saved_for_the_gradient(torch, x):
    saved = []
    a = x.requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(saved.append, lambda _: None):
        result = tileops.tile(a, (2, 3, 2))
    result.sum().backward()
    assert a.grad.eq(12).all()
    assert saved == []


def test_half_precision_gradients_are_those_of_the_library(torch):
    for dtype in (torch.float16, torch.bfloat16):
        a = torch.randn(3, 1, 4).to(dtype).requires_grad_()
        g = torch.randn(600, 1, 4).to(dtype)
        grads = (torch.autograd.grad(f(a), a, g)[0] for f in (tiled, repeated))
        ours, theirs = (grad.view(torch.int16) for grad in grads)
        assert same(ours, theirs)


def tiled(x):
    return tileops.tile(x, (200, 1, 1))


def repeated(x):
    return x.repeat(200, 1, 1)


def test_a_write_to_out_is_noticed_by_autograd(torch, x):
    out = torch.zeros(3, 2, 4, dtype=torch.float64)
    weight = torch.ones(3, 2, 4, dtype=torch.float64, requires_grad=True)
    kept = weight * out
    version = out._version
    tileops.tile(x, (1, 2, 1), out=out)
    assert out._version > version
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept.sum().backward()


def test_an_interrupted_write_to_out_is_noticed_by_autograd(torch, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tileops.execute.torch.move", interrupted)
    x, out = torch.ones(100_000, 3), torch.zeros(100_000, 12)
    version = out._version
    with pytest.raises(KeyboardInterrupt):
        tileops.tile(x, (1, 4), out=out)
    assert out._version > version


def test_results_in_inference_mode_are_inference_tensors(torch, x):
    with torch.inference_mode():
        result = tileops.tile(x, (1, 2, 1))
        assert result.is_inference()
        tileops.tile(x, (1, 2, 1), out=result)
    assert same(result.clone(), x.repeat(1, 2, 1))


def test_the_result_has_the_memory_of_torchs_own(x):
    result = tileops.tile(x, (2, 1, 1))
    assert result.is_contiguous()
    assert not result.is_pinned()
    assert not result.is_shared()
    assert result.untyped_storage().resizable()
    assert result.storage_offset() == 0
    assert result.untyped_storage().nbytes() == result.nbytes


def test_odd_offsets_and_steps_are_copied_correctly(torch):
    raw = torch.randint(0, 256, (3000,), dtype=torch.uint8)
    for offset in range(17):
        a = raw[offset : offset + 60].view(20, 3)
        assert same(tileops.tile(a, (3, 5)), a.repeat(3, 5))
        b = raw[offset:].as_strided((5, 7), (11, 2))
        assert same(tileops.tile(b, (3, 5)), b.repeat(3, 5))
        target = torch.zeros(500, dtype=torch.uint8)[offset : offset + 300].view(60, 5)
        tileops.expand(a[:, :1].repeat(3, 1), (60, 5), out=target)
        assert same(target.contiguous(), a[:, :1].repeat(3, 5))


def test_an_expanded_input_gives_a_copy(torch):
    a = torch.randn(1, 3).expand(4, 3)
    result = tileops.tile(a, (2, 2))
    assert result.untyped_storage().data_ptr() != a.untyped_storage().data_ptr()
    assert same(result, a.repeat(2, 2))
    scalar = torch.tensor(2.0).expand(4)
    assert tileops.tile(scalar, 2).untyped_storage().nbytes() == 32

    assert not is_view(result)


@CALLS
def test_transforms_see_tensors_that_they_close_over(torch, call, native):
    weight = torch.randn(3, 1, 4, requires_grad=True)
    for f in (call, native):
        f.grads = torch.func.vmap(torch.func.grad(lambda a, f=f: (f(weight) * a).sum()))(
            torch.arange(2.0)
        )
    torch.testing.assert_close(call.grads, native.grads)


@CALLS
def test_a_gradient_that_nobody_computed_stays_none(torch, x, call, native):
    """An optimizer leaves a parameter without a gradient as it is, but not one with zeros."""

    class OfTheSecond(torch.autograd.Function):
        @staticmethod
        def forward(_, a, b):
            return a.sum() + b.sum()

        @staticmethod
        def backward(_, g):
            return None, g.expand(1)

    b = torch.ones(1, dtype=x.dtype, requires_grad=True)
    for repeat in (call, native):
        a = x.clone().requires_grad_()
        OfTheSecond.apply(repeat(a), b).backward()
        assert a.grad is None


def test_a_gradient_shares_no_memory_with_another(torch, x):
    a = x.requires_grad_()
    g = torch.randn_like(x)
    tileops.tile(a, (1, 1, 1)).backward(g)
    assert a.grad.untyped_storage().data_ptr() != g.untyped_storage().data_ptr()
    assert same(a.grad, g)


def test_inference_mode_records_nothing_even_where_gradients_are_enabled(torch):
    x = torch.randn(3, 77, requires_grad=True)
    for repeats in ((2, 4), (3000, 4)):
        with torch.inference_mode(), torch.enable_grad():
            result = tileops.tile(x, repeats)
            written = tileops.tile(x, repeats, out=torch.empty_like(result))
        assert result.is_inference()
        assert not result.requires_grad
        assert result.numpy().tobytes() == x.detach().repeat(repeats).numpy().tobytes()
        assert torch.equal(written, result)


def test_a_parameter_made_in_inference_mode_records_nothing(torch):
    with torch.inference_mode():
        p = torch.nn.Parameter(torch.ones(3))
    assert not tileops.tile(p, 2).requires_grad
    assert not p.repeat(2).requires_grad


def test_functional_tensors_are_left_to_the_library(torch):
    x = torch.randn(4, 3)
    functional = torch._to_functional_tensor(x)
    torch._enable_functionalization(reapply_views=True)
    try:
        result = torch._from_functional_tensor(tileops.tile(functional, (2, 2)))
    finally:
        torch._disable_functionalization()
    assert same(result, x.repeat(2, 2))


def test_eight_threads_may_copy_at_once(torch):
    arrays = [torch.full((5, 3), i, dtype=torch.int32) for i in range(8)]
    results = [None] * len(arrays)

    def work(i):
        for _ in range(50):
            results[i] = tileops.tile(arrays[i], (7, 9))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(arrays))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same(r, a.repeat(7, 9)) for r, a in zip(results, arrays, strict=True))


def test_a_large_result_equals_that_of_numpy(torch):
    bits = np.random.default_rng(0).integers(0, 256, (7, 1, 50_021, 3), dtype=np.uint8)
    for threads in (1, 2):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            result = tileops.tile(torch.from_numpy(bits), (3, 4, 1))
        finally:
            torch.set_num_threads(before)
        assert np.array_equal(result.numpy(), np.tile(bits, (3, 4, 1)))


def test_a_profiler_sees_a_large_copy(torch):
    x = torch.ones(300_000, 3)
    with torch.profiler.profile(acc_events=True) as profile:
        out = tileops.tile(x, (1, 4))
        tileops.tile(x, (1, 4), out=out)
    seen = {event.key: event.count for event in profile.key_averages()}
    assert seen["tileops::repeat"] == 2


def test_out_receives_the_values_of_conjugates_and_negatives(torch):
    z = torch.randn(3, 1, 4, dtype=torch.complex64)
    for a in (z.conj(), z.conj().imag):
        out = torch.empty(6, 3, 8, dtype=a.dtype)
        tileops.tile(a, (2, 3, 2), out=out)
        assert torch.equal(out, a.repeat(2, 3, 2))


def test_a_mode_sees_what_is_written_to_out(torch, x):
    out = torch.empty(6, 3, 8, dtype=x.dtype)
    _, seen = dispatched(lambda: tileops.tile(x, (2, 3, 2), out=out))
    assert torch.ops.aten.copy_.default in seen
    assert same(out, x.repeat(2, 3, 2))


def test_a_forward_gradient_reaches_out(torch, x):
    tangent = torch.randn_like(x)
    with torch.autograd.forward_ad.dual_level():
        out = torch.empty(6, 3, 8, dtype=x.dtype)
        tileops.tile(torch.autograd.forward_ad.make_dual(x, tangent), (2, 3, 2), out=out)
        value, pushed = torch.autograd.forward_ad.unpack_dual(out)
        assert same(value, x.repeat(2, 3, 2))
        assert same(pushed, tangent.repeat(2, 3, 2))


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantised_tensors_keep_their_scale(torch):
    a = torch.quantize_per_tensor(torch.arange(3.0), 0.5, 3, torch.qint8)
    result = tileops.tile(a, 2)
    assert (result.q_scale(), result.q_zero_point()) == (0.5, 3)
    assert result.int_repr().tolist() == [3, 5, 7] * 2


def test_out_may_be_a_conjugate_or_negative_view(torch):
    z = torch.randn(3, 1, 4, dtype=torch.complex64)
    for a, out in (
        (z, torch.empty(6, 3, 8, dtype=z.dtype).conj()),
        (z.real, torch._neg_view(torch.empty(6, 3, 8))),
    ):
        tileops.tile(a, (2, 3, 2), out=out)
        assert torch.equal(out, a.repeat(2, 3, 2))


@pytest.mark.filterwarnings("ignore:`torch.jit.trace", "ignore:Converting a tensor to a Python")
def test_a_trace_sees_the_large_tile_of_a_scalar(torch):
    def call(x):
        return tileops.tile(x, 2**21), tileops.tile(x, 2**21, out=torch.empty(2**21))

    for result in torch.jit.trace(call, torch.tensor(1.0))(torch.tensor(2.0)):
        assert result.eq(2).all()
