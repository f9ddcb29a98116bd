"""Checks of results that are compared with NumPy's on the host."""

import itertools
import math
from functools import partial

import numpy as np

import tileops
from benchmarks.gpu.assertions import is_repeated, require, require_bytes, require_result
from benchmarks.gpu.bits import BITS, POISON, as_bytes, random_bits
from benchmarks.gpu.correctness.checks import Checks, outcome
from benchmarks.gpu.correctness.layouts import EXPANDED, LAYOUTS, PLAIN, Layout, layouts_of
from benchmarks.gpu.patterns import PATTERNS, SMALL, Pattern

EMPTY = (
    Pattern((0,), (3,)),
    Pattern((2, 0, 3), (2, 2, 1)),
    Pattern((2, 3), (0, 2)),
    Pattern((0, 3), (0, 4)),
    Pattern((1, 0), (5, 1)),
    Pattern((1, 1, 1), (3, 0, 2)),
)


def check_the_checks(checks: Checks) -> None:
    """Change one byte of a correct result, which both comparisons must notice."""
    library = checks.library
    bits = random_bits("uint8", 1, (101, 3))
    x = library.from_bits(bits, "uint8")
    expected = np.tile(bits, (1, 5))
    for place in (0, 700, expected.size - 1):
        changed = as_bytes(expected).copy()
        changed[place] ^= 16
        wrong = library.from_bits(changed.view("V1").reshape(expected.shape), "uint8")
        with checks.case(f"byte {place} changed"):
            found = outcome(partial(require_result, library, x, wrong, expected))
            require("1 of 1515 bytes differ" in found, f"on the host: {found}")
            require(not is_repeated(x, wrong, (1, 5)), "not seen on the device")
            require(is_repeated(x, library.tile(x, (1, 5)), (1, 5)), "seen where nothing changed")


def check_dtypes(checks: Checks) -> None:
    """Check every dtype, on small arrays and on larger ones."""
    library = checks.library
    small, sizes = [*SMALL], [PATTERNS[3], PATTERNS[8], PATTERNS[10]]
    if library.name == "jax":  # JAX compiles a program for each
        small, sizes = small[2:4], sizes[1:2]
    for dtype, itemsize in library.dtypes().items():
        if not checks.has_time(dtype):
            return
        for pattern in small:
            check_pattern(checks, dtype, pattern, PLAIN)
        for pattern in sizes:
            check_pattern(checks, dtype, pattern.sized(checks.elements(itemsize, 1 / 4)), PLAIN)


def check_empty(checks: Checks) -> None:
    """Check results without elements, from empty inputs and from repeats of 0."""
    for dtype, pattern in itertools.product(BITS.values(), EMPTY):
        check_pattern(checks, dtype, pattern, PLAIN)
    with checks.case("a negative repeat on an empty array is refused"):
        x = checks.library.from_bits(random_bits("uint8", 1, (0, 3)), "uint8")
        found = outcome(lambda: tileops.tile(x, (1, -1)))
        require(found.startswith("RepeatsError"), found)


def check_ranks(checks: Checks) -> None:
    """Check random shapes of ranks 0 to 8 and repeats of other lengths, in random layouts."""
    random = np.random.default_rng(8)
    dtypes, layouts = list(BITS.values()), layouts_of(checks.library)
    for rank, number in itertools.product(range(9), range(checks.library.kinds)):
        if number == 0 and not checks.has_time(f"rank {rank}"):
            return
        length = max(0, rank + int(random.integers(-1, 2)))
        shape = tuple(random.integers(1, 6 if rank < 5 else 4, rank).tolist())
        repeats = tuple(random.integers(1, 4 if rank < 5 else 3, length).tolist())
        layout = layouts[int(random.integers(len(layouts)))] if rank else PLAIN
        dtype = dtypes[int(random.integers(len(dtypes)))]
        check_pattern(checks, dtype, Pattern(shape, repeats), layout, seed=number)


def check_patterns(checks: Checks) -> None:
    """Check results of a few MB of each width, from inputs in every layout."""
    layouts = layouts_of(checks.library)
    for layout in layouts:
        if not checks.has_time(layout.name):
            return
        cases = itertools.product(BITS.items(), PATTERNS, (1, 16) if layouts[1:] else (1,))
        for (itemsize, dtype), pattern, multiple in cases:
            check_pattern(checks, dtype, pattern.sized(checks.elements(itemsize), multiple), layout)


def check_outs(checks: Checks) -> None:
    """Check `out=` in every layout that owns its elements, from inputs in a few layouts."""
    places = [layout for layout in layouts_of(checks.library) if layout is not EXPANDED]
    for place, layout in itertools.product(places, (LAYOUTS[0], LAYOUTS[1], LAYOUTS[5])):
        if not checks.has_time(f"out= into {place.name}"):
            return
        for itemsize, dtype in BITS.items():
            check_out(checks, dtype, SMALL[2], layout, place)
            for pattern in (PATTERNS[3], PATTERNS[5], PATTERNS[7], PATTERNS[8], PATTERNS[9]):
                elements = checks.elements(itemsize, 1 / 4)
                check_out(checks, dtype, pattern.sized(elements, 16), layout, place)


def check_pattern(
    checks: Checks, dtype: str, pattern: Pattern, layout: Layout, seed: int = 0
) -> None:
    """Compare tile with NumPy, and also expand where the pattern is one."""
    library, (shape, repeats) = checks.library, pattern
    bits = random_bits(dtype, library.dtypes()[dtype], layout.base(shape), seed)
    expected = np.tile(layout.take(np, bits, shape), repeats)
    x = layout.take(library.xp, library.from_bits(bits, dtype), shape)
    name = f"{dtype} {shape} x {repeats}, {layout.name}"
    with checks.case(
        f"tile {name}", lambda: require_result(library, x, library.tile(x, repeats), expected)
    ):
        library.poison(expected.nbytes)
        require_result(library, x, tileops.tile(x, repeats), expected)
    if len(shape) == len(repeats) and pattern.is_expand:
        with checks.case(f"expand {name}"):
            library.poison(expected.nbytes)
            require_result(library, x, tileops.expand(x, expected.shape, copy=True), expected)
        with checks.case(f"expand to a view {name}"):
            require_bytes(library.bits(tileops.expand(x, expected.shape)), as_bytes(expected))


def check_out(checks: Checks, dtype: str, pattern: Pattern, layout: Layout, place: Layout) -> None:
    """Write into part of a larger array, and compare all of it, so that no other byte changes."""
    library, (shape, repeats) = checks.library, pattern
    itemsize = library.dtypes()[dtype]
    bits = random_bits(dtype, itemsize, layout.base(shape))
    x = layout.take(library.xp, library.from_bits(bits, dtype), shape)
    tiled = np.tile(layout.take(np, bits, shape), repeats)
    around = np.full(math.prod(place.base(tiled.shape)) * itemsize, POISON, np.uint8)
    around = around.view(f"V{itemsize}").reshape(place.base(tiled.shape))
    base = library.from_bits(around, dtype)
    out = place.take(library.xp, base, tiled.shape)
    place.take(np, around, tiled.shape)[...] = tiled
    with checks.case(f"out= {dtype} {shape} x {repeats}, {layout.name} into {place.name}"):
        require(tileops.tile(x, repeats, out=out) is out, "what was returned is not out")
        require_bytes(library.bits(base), as_bytes(around))
