"""Checks of what only PyTorch's tensors have: conjugation, negation and gradients."""

import itertools
import math

import numpy as np

import tileops
from benchmarks.gpu.assertions import WrongError, require, require_bytes, require_result
from benchmarks.gpu.correctness.checks import Checks
from benchmarks.gpu.libraries.base import Library
from benchmarks.gpu.patterns import PATTERNS, SMALL, N, Pattern


def check_conj_neg(checks: Checks) -> None:
    """Check tensors that PyTorch conjugates or negates only when they are read."""
    torch, library = checks.library.xp, checks.library
    random = np.random.default_rng(3)
    for dtype, pattern in itertools.product(("complex64", "complex128"), (*SMALL[1:], *PATTERNS)):
        sized = pattern.sized(2**18) if N in pattern.shape + pattern.repeats else pattern
        parts = random.standard_normal((2, *sized.shape))
        values = (parts[0] + 1j * parts[1]).astype(dtype)
        x = library.from_numpy(values)
        views = {"conj": (x.conj(), values.conj()), "neg": (x.conj().imag, values.conj().imag)}
        for name, (view, array) in views.items():
            expected = np.tile(array, sized.repeats)
            with checks.case(f"{name} {dtype} {sized.shape} x {sized.repeats}"):
                require(view.is_conj() or view.is_neg(), f"{name}: no such view")
                require_result(library, view, tileops.tile(view, sized.repeats), expected)
            with checks.case(f"{name} {dtype} {sized.shape} x {sized.repeats}, out="):
                out = torch.empty(expected.shape, dtype=view.dtype, device=view.device)
                tileops.tile(view, sized.repeats, out=out)
                require_result(library, view, out, expected)


def check_gradients(checks: Checks) -> None:
    """Compare values, gradients and second gradients with those of torch.tile."""
    for dtype in ("float16", "bfloat16", "float32", "float64", "complex64"):
        for pattern in (*SMALL[1:], *(p.sized(2**18, 16) for p in PATTERNS if p != PATTERNS[2])):
            with checks.case(f"gradient {dtype} {pattern.shape} x {pattern.repeats}"):
                require_gradients(checks.library, dtype, pattern)


def require_gradients(library: Library, dtype: str, pattern: Pattern) -> None:
    """Compare bits: all values are small integers, whose sums are exact in any order.

    An axis that is repeated very often is an exception, as a narrow dtype cannot hold its sums, so
    most of its weights are zero.
    """
    torch, (shape, repeats) = library.xp, pattern
    random = np.random.default_rng(4)
    numbers = library.from_numpy(random.integers(-3, 4, shape)).to(getattr(torch, dtype))
    size = tuple(n * r for n, r in zip(shape, repeats, strict=True))
    few = math.prod(repeats) > 64
    weights = random.integers(0, 2, size) * (random.random(size) < 1e-4 if few else 1)
    weights = library.from_numpy(weights).to(getattr(torch, dtype))
    found = []
    for tile in (tileops.tile, torch.tile):
        x = numbers.clone().requires_grad_()
        y = tile(x, repeats)
        (first,) = torch.autograd.grad((weights * y * y).sum().abs(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.abs().sum(), x)
        # A sum that is zero may have either sign.
        found.append([library.bits(t) for t in (y, first + 0, second + 0)])
    for name, ours, theirs in zip(("value", "gradient", "second gradient"), *found, strict=True):
        try:
            require_bytes(ours, theirs)
        except WrongError as error:
            raise WrongError(f"{name}: {error}") from None
