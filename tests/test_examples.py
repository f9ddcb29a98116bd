"""The examples give in every library, from one source, what NumPy's own functions give."""

import sys
from pathlib import Path

import numpy as np
import pytest
from array_api_compat import array_namespace

import variants

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

import models

CASES = {
    "repeat_kv": (
        (2, 3, 5, 4),
        lambda x: models.repeat_kv(x, 3),
        lambda x: np.repeat(x, 3, axis=1),
    ),
    "beams": ((2, 5, 4), lambda x: models.to_beams(x, 3), lambda x: np.repeat(x, 3, axis=0)),
    "class token": (
        (1, 1, 4),
        lambda x: models.class_tokens(x, 6),
        lambda x: np.concatenate([x] * 6),
    ),
    "rows of a grid": (
        (3, 4),
        lambda x: models.positional_grid(x, x)[0],
        lambda x: np.stack([x] * 3, axis=1),
    ),
    "columns of a grid": (
        (3, 4),
        lambda x: models.positional_grid(x, x)[1],
        lambda x: np.stack([x] * 3),
    ),
    "mosaic": ((2, 4, 3), lambda x: models.mosaic(x, 2, 3), lambda x: np.tile(x, (2, 3, 1))),
}


@pytest.mark.parametrize("name", CASES)
def test_each_example_gives_the_result_of_numpy(xp, rng, name):
    shape, ours, numpys = CASES[name]
    bits = variants.random_bits(rng, "float32", 4, shape)
    x = xp.make(bits, "float32")
    variants.assert_moved(xp, x, ours(x), numpys(bits))


def qkv():
    rng = np.random.default_rng(1)
    return [rng.standard_normal((2, heads, 5, 4)).astype(np.float32) for heads in (6, 2, 2)]


@pytest.mark.library("numpy", "array_api_strict")
def test_attention_in_libraries_of_the_standard(xp):
    def softmax(scores):
        shares = array_namespace(scores).exp(scores)
        return shares / array_namespace(scores).sum(shares, axis=-1, keepdims=True)

    q, k, v = qkv()
    shares = np.exp(q @ np.repeat(k, 3, axis=1).swapaxes(2, 3) / 2)
    expected = shares / shares.sum(-1, keepdims=True) @ np.repeat(v, 3, axis=1)
    result = models.attention(*(xp.make(a, "float32") for a in (q, k, v)), softmax)
    assert xp.is_own(result)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.library("torch")
# `array_api_compat` raises this warning.
@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.parametrize("is_compiled", [False, True])
def test_attention_in_torch(is_compiled):
    import torch

    def softmax(scores):
        return torch.softmax(scores, dim=-1)

    def original(q, k, v):
        k, v = (a.repeat_interleave(3, dim=1) for a in (k, v))
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    def ours(q, k, v):
        return models.attention(q, k, v, softmax)

    if is_compiled:
        ours = torch.compile(ours, fullgraph=True, backend="aot_eager")
    results = []
    for f in (ours, original):
        leaves = [torch.from_numpy(a).requires_grad_() for a in qkv()]
        y = f(*leaves)
        (y * torch.arange(4.0)).sum().backward()
        results.append([y, *(leaf.grad for leaf in leaves)])
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got, expected)


@pytest.mark.library("jax")
@pytest.mark.parametrize("is_jitted", [False, True])
def test_attention_in_jax(is_jitted):
    import jax
    import jax.numpy as jnp

    def original(q, k, v):
        k, v = (jnp.repeat(a, 3, axis=1) for a in (k, v))
        q, k, v = (a.swapaxes(1, 2) for a in (q, k, v))
        return jax.nn.dot_product_attention(q, k, v).swapaxes(1, 2)

    def ours(q, k, v):
        return models.attention(q, k, v, jax.nn.softmax)

    arrays = [jnp.asarray(a) for a in qkv()]
    results = []
    for f in (ours, original):
        both = jax.value_and_grad(lambda *a, f=f: (f(*a) * jnp.arange(4.0)).sum(), (0, 1, 2))
        both = jax.jit(both) if is_jitted else both
        value, gradients = both(*arrays)
        results.append([f(*arrays), value, *gradients])
    for got, expected in zip(*results, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
