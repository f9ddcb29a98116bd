"""The published rules of each operator, one check each: what docs/specifications.md lists.

A rule names its source: a published text, by the file it is kept in, and a section.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

import reference
import tileops
import variants
from tileops.directml import TensorDesc, TileOperatorDesc

LEVELS = ("1.0", "2.1", "3.1", "4.1")


class Operator(NamedTuple):
    """An operator by the name that a table shows, and what calls it."""

    name: str
    call: Callable

    def __call__(self, *arguments):
        return self.call(*arguments)

    @property
    def level(self):
        """The feature level, of DirectML's."""
        return self.name.rpartition(" ")[2]


_CALLS = {
    "Tile-1": tileops.onnx.tile_1,
    "Tile-6": tileops.onnx.tile_6,
    "Tile-13": tileops.onnx.tile_13,
    "Expand-8": tileops.onnx.expand_8,
    "Expand-13": tileops.onnx.expand_13,
    "OpenVINO Tile-1": tileops.openvino.tile,
    **{
        f"DirectML Tile {level}": partial(tileops.directml.tile, feature_level=level)
        for level in LEVELS
    },
}
OPERATORS = {name: Operator(name, call) for name, call in _CALLS.items()}

TILE = ("Tile-6", "Tile-13")
EXPAND = ("Expand-8", "Expand-13")
OPENVINO = ("OpenVINO Tile-1",)
DIRECTML = tuple(f"DirectML Tile {level}" for level in LEVELS)

DML = "directml-tile-operator-desc.txt"

FLOATS = {"float16", "float32", "float64"}
INTEGERS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
ALL = FLOATS | INTEGERS | {"bool", "string", "complex64", "complex128"}
TYPES = {
    "Tile-1": FLOATS,
    **dict.fromkeys(("Tile-6", "Expand-8"), ALL),
    **dict.fromkeys(("Tile-13", "Expand-13"), ALL | {"bfloat16"}),
    "DirectML Tile 1.0": {"float32", "float16"},
    "DirectML Tile 2.1": {"float32", "float16"} | INTEGERS - {"int64", "uint64"},
    "DirectML Tile 3.1": {"float32", "float16"} | INTEGERS - {"int64", "uint64"},
    "DirectML Tile 4.1": {"float32", "float16"} | INTEGERS,
}
"""Each operator's types, written off the texts."""


class Rule(NamedTuple):
    """A sentence of a specification, and its check on the arrays of a library."""

    operator: str
    text: str
    source: str
    check: Callable

    def holds(self, xp):
        """Check on a variant's arrays; say so, or that the library lacks what it needs."""
        return self.check(xp, OPERATORS[self.operator]) or "holds"


RULES: list[Rule] = []


def rule(operators, source, text):
    """Register a check of some operators; `{}` in the source is the operator's version."""

    def register(check):
        for operator in operators:
            version = re.split(r"[- ]", operator)[-1]
            RULES.append(Rule(operator, text, source.format(version), check))
        return check

    return register


def make(xp, shape, dtype="float32"):
    """Make random bits and the library's array of them."""
    bits = variants.random_bits(np.random.default_rng(0), dtype, xp.dtypes[dtype], shape)
    return bits, xp.make(bits, dtype)


def holding(xp, values):
    """Make an array of numbers that a text prints."""
    return xp.plain(np.array(values, np.float32).view("V4"), "float32")


def refused(error, match):
    """Expect one of the package's own errors."""
    assert issubclass(error, tileops.TileOpsError)
    return pytest.raises(error, match=match)


def fits(name):
    """Return a shape that an operator takes: DirectML began with four dimensions."""
    return (2, 1, 2, 3) if name in DIRECTML else (2, 3)


def once(name):
    """Return the counts that leave an array of that shape as it is."""
    return (1, 0) if name == "Tile-1" else ((1,) * len(fits(name)),)


def canonical(xp, dtype):
    """Name a variant's dtype as the specifications' tables here do."""
    if xp.library not in ("numpy", "dask"):
        return dtype
    found = np.dtype(dtype)
    return "string" if found.kind == "U" else found.name


# ONNX Tile


@rule(
    TILE, "onnx-tile.txt, Tile - {}, Summary", "the example with A = [[1, 2], [3, 4]], B = [1, 2]"
)
def _(xp, tile):
    x = holding(xp, [[1, 2], [3, 4]])
    assert np.array_equal(xp.host(tile(x, [1, 2])).view("f4"), [[1, 2, 1, 2], [3, 4, 3, 4]])


@rule(
    ("Tile-13",),
    "onnx-tile-with-examples.rst, Tile - 13, Examples, _tile",
    "four axes, counts 1 to 9",
)
def _(xp, tile):
    bits, x = make(xp, (2, 3, 4, 5))
    repeats = np.random.default_rng(1).integers(1, 10, 4)
    variants.assert_moved(xp, x, tile(x, repeats), np.tile(bits, repeats))


@rule(("Tile-13",), "onnx-tile-with-examples.rst, Tile - 13, Examples, _tile_precomputed", "[2, 2]")
def _(xp, tile):
    x = holding(xp, [[0, 1], [2, 3]])
    expected = [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]]
    assert np.array_equal(xp.host(tile(x, np.array([2, 2]))).view("f4"), expected)


@rule(TILE, "onnx-tile.txt, Tile - {}, Summary", "the values are those of numpy.tile")
def _(xp, tile):
    bits, x = make(xp, (2, 1, 3))
    variants.assert_moved(xp, x, tile(x, (2, 3, 2)), np.tile(bits, (2, 3, 2)))


@rule(TILE, "onnx-tile.txt, Tile - {}, Summary and Inputs", "no broadcast: one count for each axis")
def _(xp, tile):
    _, x = make(xp, (2, 3))
    for repeats in ((), (2,), (1, 2, 2)):
        with refused(
            tileops.RepeatsError, rf"^{tile.name}: repeats has {len(repeats)} entr.*rank 2"
        ):
            tile(x, repeats)


@rule(TILE, "onnx-tile.txt, Tile - {}, Inputs", "the input may have any shape")
def _(xp, tile):
    for shape in ((), (0,), (3,), (2, 0, 3), (1, 2, 1, 2), (2, 1, 1, 2, 1, 2)):
        bits, x = make(xp, shape)
        repeats = (2, 0, 3, 1, 2, 1)[: len(shape)]
        variants.assert_moved(xp, x, tile(x, repeats), reference.tiled(bits, repeats))


@rule(TILE, "onnx-tile.txt, Tile - {}, Inputs", "repeats is one-dimensional")
def _(xp, tile):
    _, x = make(xp, (2,))
    for repeats in (2, xp.numbers(2)[0], np.array(2), np.array([[2]])):
        with refused(tileops.RepeatsError, rf"^{tile.name}: repeats .*one-dimensional"):
            tile(x, repeats)


@rule(TILE, "onnx-tile.txt, Tile - {}, Inputs and T1", "an array of repeats is int64")
def _(xp, tile):
    bits, x = make(xp, (2, 3))
    for repeats in (xp.numbers(2, 1), np.array([2, 1]), (2, 1), [2, np.int64(1)]):
        variants.assert_moved(xp, x, tile(x, repeats), np.tile(bits, (2, 1)))
    for dtype in ("int8", "int32", "uint64", "float32", "float64", "bool"):
        for repeats in (
            np.array([2, 1], dtype),
            xp.plain(np.zeros(2, f"V{xp.dtypes[dtype]}"), dtype),
        ):
            with refused(tileops.RepeatsTypeError, rf"^{tile.name}: repeats .*{dtype}"):
                tile(x, repeats)


@rule(
    TILE,
    "onnx-tile.txt, Tile - {}, Inputs; silent on 0 and on negative counts",
    "a count is a number of copies: 0 or more",
)
def _(xp, tile):
    for shape in ((2, 3), (0, 3)):
        bits, x = make(xp, shape)
        variants.assert_moved(xp, x, tile(x, (2, 0)), reference.tiled(bits, (2, 0)))
        with refused(tileops.RepeatsError, rf"^{tile.name}: axis 1: repeats\[1\] is -1 .*negative"):
            tile(x, (2, -1))


@rule(TILE, "onnx-tile.txt, Tile - {}, Outputs", "each size is the input's times its count")
def _(xp, tile):
    _, x = make(xp, (2, 3, 1))
    assert tuple(tile(x, (4, 1, 7)).shape) == (8, 3, 7)


# ONNX Tile-1


@rule(("Tile-1",), "onnx-tile.txt, Tile - 1, Summary", "the elements are repeated along one axis")
def _(xp, tile):
    bits, x = make(xp, (2, 3))
    variants.assert_moved(xp, x, tile(x, 2, 0), reference.tiled(bits, (2, 1)))
    variants.assert_moved(xp, x, tile(x, 0, 1), reference.tiled(bits, (1, 0)))


@rule(
    ("Tile-1",),
    "onnx-tile.txt, Tile - 1, Inputs",
    "the input may have any shape, except that a scalar has no axis to repeat",
)
def _(xp, tile):
    for shape, axis in (((0,), 0), ((3,), 0), ((2, 0, 3), 2), ((2, 1, 1, 2, 1, 2), -3)):
        bits, x = make(xp, shape)
        repeats = [1] * len(shape)
        repeats[axis] = 2
        variants.assert_moved(xp, x, tile(x, 2, axis), reference.tiled(bits, repeats))
    _, x = make(xp, ())
    for axis in (0, -1):
        with refused(tileops.ShapeError, r"^Tile-1: axis is .* for rank 0 .*none to repeat"):
            tile(x, 1, axis)


@rule(
    ("Tile-1",),
    "onnx-tile.txt, Tile - 1, Outputs",
    "the output has the repeated shape, although the text says that it has the input's",
)
def _(xp, tile):
    _, x = make(xp, (2, 3))
    assert [tuple(tile(x, n, 1).shape) for n in (0, 1, 4)] == [(2, 0), (2, 3), (2, 12)]


@rule(
    ("Tile-1",),
    "onnx-tile.txt, Tile - 1, Inputs",
    "tiles and axis are of the input's type T: the letter",
)
def _(xp, tile):
    for dtype in sorted(FLOATS & set(xp.dtypes)):
        bits, x = make(xp, (2, 3), dtype)
        for scalar in (np.array(2, dtype), np.array([2], dtype), np.dtype(dtype).type(2), 2.0):
            variants.assert_moved(
                xp, x, tile(x, scalar, np.array(1, dtype)), reference.tiled(bits, (1, 2))
            )
        own = xp.plain(np.array([3, 0], dtype).view(f"V{xp.dtypes[dtype]}"), dtype)
        variants.assert_moved(xp, x, tile(x, own[0], own[1]), reference.tiled(bits, (3, 1)))
    _, x = make(xp, (2, 3))
    with refused(tileops.RepeatsTypeError, r"^Tile-1: tiles is of float64; .*float32 or int64"):
        tile(x, np.float64(2), 0)


@rule(("Tile-1",), "onnx-tile.txt, Tile - 1, T1", "tiles and axis are int64: the intent")
def _(xp, tile):
    bits, x = make(xp, (2, 3))
    for two in (2, np.int64(2), np.array([2]), np.array([[2]]), xp.numbers(2), xp.numbers(2)[0]):
        variants.assert_moved(xp, x, tile(x, two, np.int64(0)), reference.tiled(bits, (2, 1)))
    for wrong in (np.int32(1), True, np.True_, "1", None, np.array([1], np.uint64)):
        with refused(tileops.RepeatsTypeError, r"^Tile-1: tiles is "):
            tile(x, wrong, 0)
        with refused(tileops.ShapeTypeError, r"^Tile-1: axis is "):
            tile(x, 1, wrong)


@rule(
    ("Tile-1",),
    "onnx-tile.txt, Tile - 1, Inputs; silent on 0 and on negative counts",
    "tiles is a number of copies: whole, 0 or more",
)
def _(xp, tile):
    for shape in ((2, 3), (0, 3)):
        _, x = make(xp, shape)
        for tiles in (2.5, np.float32("nan"), float("inf"), np.array([-0.5], np.float32)):
            with refused(tileops.RepeatsError, r"^Tile-1: tiles is .*whole"):
                tile(x, tiles, 0)
        for tiles in (-1, -2.0, np.float32(-1)):
            with refused(tileops.RepeatsError, r"^Tile-1: axis 1: tiles is -\d; .*negative"):
                tile(x, tiles, 1)


@rule(
    ("Tile-1",),
    "onnx-tile.txt, Tile - 1, Inputs; silent on their shapes",
    "tiles and axis have one element each, in any number of dimensions",
)
def _(xp, tile):
    bits, x = make(xp, (2, 3))
    for rank in range(4):
        two, zero = (np.full((1,) * rank, value, np.float32) for value in (2, 0))
        variants.assert_moved(xp, x, tile(x, two, zero), reference.tiled(bits, (2, 1)))
    for wrong in (np.array([1, 2]), np.zeros((0,), np.int64), np.ones((1, 2), np.float32)):
        with refused(tileops.RepeatsError, r"^Tile-1: tiles has shape \(.*one element"):
            tile(x, wrong, 0)
        with refused(tileops.ShapeError, r"^Tile-1: axis has shape \(.*one element"):
            tile(x, 1, wrong)


@rule(
    ("Tile-1",),
    "onnx-tile.txt, Tile - 1, Inputs; silent on a negative axis",
    "axis is one of the input's axes; -1 is the last",
)
def _(xp, tile):
    bits, x = make(xp, (2, 3))
    variants.assert_moved(xp, x, tile(x, 2, -1), reference.tiled(bits, (1, 2)))
    variants.assert_moved(xp, x, tile(x, 2, np.float32(-2)), reference.tiled(bits, (2, 1)))
    for axis in (2, -3, 2**70, 7.0):
        with refused(tileops.ShapeError, r"^Tile-1: axis is .* for rank 2.*from -2 to 1"):
            tile(x, 2, axis)
    for axis in (0.5, float("nan")):
        with refused(tileops.ShapeError, r"^Tile-1: axis is .*whole"):
            tile(x, 2, axis)
    with refused(tileops.ShapeError, r"^Tile-1: axis is 0 for rank 0"):
        tile(make(xp, ())[1], 2, 0)


# ONNX Expand


@rule(EXPAND, "onnx-expand.txt, Expand - {}, Summary", "sizes are aligned on the right")
def _(xp, expand):
    bits, x = make(xp, (3, 1))
    variants.assert_moved(xp, x, expand(x, (2, 1, 6)), reference.expanded(bits, (2, 1, 6)))


@rule(EXPAND, "onnx-expand.txt, Expand - {}, Summary", "two sizes are equal, or one of them is 1")
def _(xp, expand):
    for shape in ((3, 4), (1, 4), (3, 1), (1, 1), (0, 1), (1, 0)):
        bits, x = make(xp, shape)
        for target in ((3, 4), (1, 4), (3, 1), (1, 1), (0, 1), (1, 0)):
            pairs = list(zip(shape, target, strict=True))
            if all(n == m or 1 in (n, m) for n, m in pairs):
                expected = reference.expanded(bits, target)
                assert expected.shape == (np.ones(shape) * np.ones(target)).shape
                variants.assert_moved(xp, x, expand(x, target), expected)
            else:
                axis = next(i for i, (n, m) in enumerate(pairs) if n != m and 1 not in (n, m))
                with refused(
                    tileops.ShapeError, rf"^{expand.name}: axis {axis}: the input has size"
                ):
                    expand(x, target)


@rule(EXPAND, "onnx-expand.txt, Expand - {}, Summary", "shape may be shorter than the input's rank")
def _(xp, expand):
    bits, x = make(xp, (2, 1, 3))
    for target in ((), (3,), (4, 1)):
        variants.assert_moved(xp, x, expand(x, target), reference.expanded(bits, target))


@rule(EXPAND, "onnx-expand.txt, Expand - {}, Summary", "the result's shape may differ from shape")
def _(xp, expand):
    _, x = make(xp, (2, 3))
    assert tuple(expand(x, (1, 3)).shape) == (2, 3)
    assert tuple(expand(x, (3,)).shape) == (2, 3)


@rule(EXPAND, "onnx-expand.txt, Expand - {}, Inputs", "shape is one-dimensional and int64")
def _(xp, expand):
    bits, x = make(xp, (2, 1))
    for shape in (xp.numbers(2, 3), np.array([2, 3]), (2, 3)):
        variants.assert_moved(xp, x, expand(x, shape), reference.expanded(bits, (2, 3)))
    for shape in (2, np.array(2), np.array([[2]])):
        with refused(tileops.ShapeError, rf"^{expand.name}: shape .*one-dimensional"):
            expand(x, shape)
    for dtype in ("int8", "int32", "uint64", "float32", "bool"):
        with refused(tileops.ShapeTypeError, rf"^{expand.name}: shape .*{dtype}"):
            expand(x, np.array([2, 1], dtype))


@rule(
    EXPAND,
    "onnx-expand.txt, Expand - {}, Inputs; silent on negative sizes",
    "shape holds sizes: none is negative, not even -1",
)
def _(xp, expand):
    for shape in ((2, 1), (0, 1)):
        _, x = make(xp, shape)
        with refused(
            tileops.ShapeError, rf"^{expand.name}: axis 1: shape\[1\] is -1 .*1 keeps an axis"
        ):
            expand(x, (2, -1))


# Types, of every operator that lists them


@rule(
    ("Tile-1", *TILE),
    "onnx-tile.txt, Tile - {}, Type Constraints, T",
    "each listed type is accepted, and the output has it",
)
@rule(
    EXPAND,
    "onnx-expand.txt, Expand - {}, Type Constraints, T",
    "each listed type is accepted, and the output has it",
)
@rule(
    DIRECTML, f"{DML}, Tensor support, {{}}", "each listed type is accepted, and the output has it"
)
def _(xp, operator):
    found = [dtype for dtype in xp.dtypes if canonical(xp, dtype) in TYPES[operator.name]]
    assert found
    for dtype in found:
        bits, x = make(xp, fits(operator.name), dtype)
        variants.assert_moved(xp, x, operator(x, *once(operator.name)), bits)


@rule(
    ("Tile-1", *TILE), "onnx-tile.txt, Tile - {}, Type Constraints, T", "no other type is accepted"
)
@rule(EXPAND, "onnx-expand.txt, Expand - {}, Type Constraints, T", "no other type is accepted")
@rule(DIRECTML, f"{DML}, Tensor support, {{}}", "no other type is accepted")
def _(xp, operator):
    found = [dtype for dtype in xp.dtypes if canonical(xp, dtype) not in TYPES[operator.name]]
    for dtype in found:
        _, x = make(xp, fits(operator.name), dtype)
        with refused(
            tileops.DTypeError,
            rf"^{operator.name.removesuffix(' ' + operator.level)}.*: the input has dtype",
        ):
            operator(x, *once(operator.name))
    return None if found else "no such type"


@rule(
    ("Tile-1", *TILE),
    "onnx-tile.txt, Tile - {}, Outputs; silent on shared memory",
    "the output is a tensor of its own",
)
@rule(
    EXPAND,
    "onnx-expand.txt, Expand - {}, Outputs; silent on shared memory",
    "the output is a tensor of its own",
)
def _(xp, operator):
    _, x = make(xp, (2, 1))
    for counts in ((1, 0), (4, 1)) if operator.name == "Tile-1" else ([(1, 1)], [(1, 4)]):
        result = operator(x, *counts)
        assert not xp.shares(result, x)
        assert xp.is_contiguous(result)


# OpenVINO Tile-1


@rule(
    OPENVINO, "openvino-tile-1.txt, Short description", "more repeats than axes: axes are prepended"
)
def _(xp, tile):
    bits, x = make(xp, (2, 3))
    variants.assert_moved(xp, x, tile(x, [2, 2, 2]), reference.tiled(bits, (2, 2, 2)))
    assert tuple(tile(x, [2, 2, 2]).shape) == (2, 4, 6)


@rule(
    OPENVINO,
    "openvino-tile-1.txt, Short description",
    "fewer repeats than axes: ones are prepended",
)
def _(xp, tile):
    bits, x = make(xp, (4, 2, 3))
    variants.assert_moved(xp, x, tile(x, [2, 2]), reference.tiled(bits, (2, 2)))
    assert tuple(tile(x, [2, 2]).shape) == (4, 4, 6)


@rule(OPENVINO, "openvino-tile-1.txt, Inputs", "a count of 88 gives 88 copies")
def _(xp, tile):
    bits, x = make(xp, (1, 2))
    variants.assert_moved(xp, x, tile(x, [88, 1]), np.concatenate([bits] * 88))


@rule(OPENVINO, "openvino-tile-1.txt, Outputs", "the rank is the larger of the two lengths")
def _(xp, tile):
    for rank in range(5):
        _, x = make(xp, (2,) * rank)
        for length in range(5):
            assert len(tile(x, (1,) * length).shape) == max(rank, length)


@rule(OPENVINO, "openvino-tile-1.txt, Types, T1", "any type that OpenVINO has, and no other")
def _(xp, tile):
    small = {"uint1", "uint2", "uint3", "int4", "uint4", "uint6", "float4_e2m1fn"}
    eights = {"float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"}
    types = (ALL - {"complex64", "complex128"}) | {"bfloat16"} | small | eights
    for dtype in xp.dtypes:
        bits, x = make(xp, (2, 3), dtype)
        if canonical(xp, dtype) in types:
            variants.assert_moved(xp, x, tile(x, [2]), reference.tiled(bits, (2,)))
        else:
            with refused(tileops.DTypeError, r"^OpenVINO Tile-1: the input has dtype"):
                tile(x, [2])


@rule(OPENVINO, "openvino-tile-1.txt, Types, T2", "repeats of any integer type")
def _(xp, tile):
    bits, x = make(xp, (2, 3))
    for dtype in sorted(INTEGERS):
        for repeats in (np.array([2, 1], dtype), [np.dtype(dtype).type(2), 1]):
            variants.assert_moved(xp, x, tile(x, repeats), reference.tiled(bits, (2, 1)))
        if dtype in xp.dtypes:
            own = np.array([3], dtype).view(f"V{xp.dtypes[dtype]}")
            variants.assert_moved(xp, x, tile(x, xp.plain(own, dtype)), reference.tiled(bits, (3,)))
    for repeats in (np.array([2.0]), [2.0], np.array([True]), [True], "2"):
        with refused(tileops.RepeatsTypeError, r"^OpenVINO Tile-1: repeats"):
            tile(x, repeats)


@rule(
    OPENVINO,
    "the text is silent; OpenVINO 2026.4 refuses any other on the CPU",
    "repeats have one dimension",
)
def _(xp, tile):
    _, x = make(xp, (2, 3))
    for repeats in (2, np.array(2), np.array([[2]])):
        with refused(tileops.RepeatsError, r"^OpenVINO Tile-1: repeats .*one-dimensional"):
            tile(x, repeats)


@rule(
    OPENVINO,
    "openvino-tile-1.txt, Detailed description",
    "element i of an axis is element i modulo its size",
)
def _(xp, tile):
    bits, x = make(xp, (3,))
    variants.assert_moved(xp, x, tile(x, [4]), bits[np.arange(12) % 3])


@rule(OPENVINO, "openvino-tile-1.txt, Example 1", "(2, 3, 4) by [1, 2, 3]")
def _(xp, tile):
    assert tuple(tile(make(xp, (2, 3, 4))[1], [1, 2, 3]).shape) == (2, 6, 12)


@rule(OPENVINO, "openvino-tile-1.txt, Example 2", "(2, 3, 4) by [5, 1, 2, 3]")
def _(xp, tile):
    assert tuple(tile(make(xp, (2, 3, 4))[1], [5, 1, 2, 3]).shape) == (5, 2, 6, 12)


@rule(OPENVINO, "openvino-tile-1.txt, Example 3", "(5, 2, 3, 4) by [1, 2, 3]")
def _(xp, tile):
    assert tuple(tile(make(xp, (5, 2, 3, 4))[1], [1, 2, 3]).shape) == (5, 2, 6, 12)


@rule(OPENVINO, "the text is silent; OpenVINO 2026.4 does so on the CPU", "a negative count is 0")
def _(xp, tile):
    bits, x = make(xp, (2, 3))
    variants.assert_moved(xp, x, tile(x, [-1, 2]), reference.tiled(bits, (0, 2)))
    variants.assert_moved(xp, x, tile(x, np.array([-128], np.int8)), reference.tiled(bits, (0,)))


# DirectML Tile


@rule(DIRECTML, f"{DML}, Examples", "{1, 1, 2, 3} by {1, 1, 3, 3}")
def _(xp, tile):
    x = holding(xp, [[[[1, 2, 3], [4, 5, 6]]]])
    result = xp.host(tile(x, [1, 1, 3, 3])).view("f4")
    assert np.array_equal(result, np.tile(np.array([[[[1, 2, 3], [4, 5, 6]]]]), (1, 1, 3, 3)))


@rule(
    DIRECTML, f"{DML}, OutputTensor", "as many dimensions as the input, each size times its repeat"
)
def _(xp, tile):
    bits, x = make(xp, (2, 1, 2, 3))
    variants.assert_moved(xp, x, tile(x, (1, 3, 2, 1)), reference.tiled(bits, (1, 3, 2, 1)))
    source = TensorDesc("FLOAT32", (2, 1, 2, 3))
    TileOperatorDesc(source, TensorDesc("FLOAT32", (2, 3, 4, 3)), (1, 3, 2, 1)).check(tile.level)
    for sizes in ((2, 3, 4, 4), (2, 3, 12), (1, 2, 3, 4, 3)):
        with refused(
            tileops.ShapeError, rf"^DirectML Tile at .*{tile.level}: the output has sizes"
        ):
            TileOperatorDesc(source, TensorDesc("FLOAT32", sizes), (1, 3, 2, 1)).check(tile.level)


@rule(DIRECTML, f"{DML}, RepeatsCount", "as many repeats as dimensions")
def _(xp, tile):
    _, x = make(xp, (2, 1, 2, 3))
    for repeats in ((), (2,), (2, 2, 2), (1, 2, 2, 2, 2)):
        with refused(tileops.RepeatsError, rf"repeats has {len(repeats)} entr.* for rank 4"):
            tile(x, repeats)


@rule(DIRECTML, f"{DML}, Repeats", "each repeat is larger than 0")
def _(xp, tile):
    _, x = make(xp, (2, 1, 2, 3))
    for wrong in (0, -1):
        with refused(tileops.RepeatsError, rf"axis 2: repeats\[2\] is {wrong} .*less than 1"):
            tile(x, (1, 1, wrong, 1))


@rule(
    DIRECTML,
    f"{DML}, Syntax, UINT; DML_BUFFER_TENSOR_DESC, Sizes",
    "repeats and sizes fit 32 bits, unsigned",
)
def _(xp, tile):
    _, x = make(xp, (2, 1, 2, 3))
    with refused(tileops.RepeatsError, r"axis 1: repeats\[1\] is 4294967296 .*exceed 4294967295"):
        tile(x, (1, 2**32, 1, 1))
    with refused(tileops.OutputTooLargeError, r"axis 0: size 2 repeated 2147483648 times"):
        tile(x, (2**31, 1, 1, 1))
    for dtype in ("float32", "bool"):
        with refused(tileops.RepeatsTypeError, r"repeats.*integers"):
            tile(x, np.ones(4, dtype))


@rule(DIRECTML, f"{DML}, Tensor constraints", "input and output have the same data type")
def _(xp, tile):
    sizes = (1, 1, 2, 3)
    desc = TileOperatorDesc(TensorDesc("FLOAT32", sizes), TensorDesc("FLOAT16", sizes), (1,) * 4)
    with refused(tileops.DTypeError, r"FLOAT16 and the input FLOAT32; .* give the output the type"):
        desc.check(tile.level)
    result = tile(make(xp, sizes)[1], (1,) * 4)
    assert result.dtype == make(xp, sizes)[1].dtype


@rule(DIRECTML[:2], f"{DML}, Tensor support", "4 dimensions")
def _(xp, tile):
    check_ranks(xp, tile, [4])


@rule(DIRECTML[2:], f"{DML}, Tensor support", "1 to 8 dimensions")
def _(xp, tile):
    check_ranks(xp, tile, range(1, 9))


def check_ranks(xp, tile, taken):
    """Tile arrays of every rank up to 9, of which only some are taken."""
    for rank in range(10):
        bits, x = make(xp, (1,) * rank)
        if rank in taken:
            variants.assert_moved(xp, x, tile(x, (2,) * rank), reference.tiled(bits, (2,) * rank))
        else:
            with refused(tileops.ShapeError, rf"the input has {rank} dimensions? "):
                tile(x, (2,) * rank)


@rule(
    DIRECTML[:1],
    f"{DML}, Availability",
    "introduced in 1.0; a level that is not listed has the rules of the last listed one below it",
)
def _(xp, _tile):
    _, x = make(xp, (1, 1, 1, 1), "int32")
    _, flat = make(xp, (1,), "int64")
    for level in ("1.0", "2.0"):
        with refused(tileops.DTypeError, rf"at feature level {level}: .*FLOAT32, FLOAT16;"):
            tileops.directml.tile(x, (1,) * 4, feature_level=level)
    for level in ("2.1", "3.0", "3.1", "4.0"):
        tileops.directml.tile(x, (1,) * 4, feature_level=level)
        with refused(tileops.TileOpsError, "at feature level"):
            tileops.directml.tile(flat, (1,), feature_level=level)
    for level in ("4.1", "5.0", "5.1", "5.2", "6.0", "6.1", "6.2", "6.3", "6.4"):
        tileops.directml.tile(flat, (1,), feature_level=level)
    for level in ("0.9", "1.1", "2.9", "6.5", "7.0", "4", "", "latest", None):
        with refused(tileops.UnsupportedError, r"pass one of these as str: 1\.0, 2\.0, .* 6\.4$"):
            tileops.directml.tile(flat, (1,), feature_level=level)


@rule(
    DIRECTML,
    "DML_BUFFER_TENSOR_DESC, TotalTensorSizeInBytes",
    "no tensor has more than 2**32-1 elements",
)
def _(xp, tile):
    _, x = make(xp, (1, 1, 1, 1))
    with refused(
        tileops.OutputTooLargeError,
        r"input sizes \(1, 1, 1, 1\) times .* are 4294967296 elements; .* more than 4294967295",
    ):
        tile(x, (1, 1, 2**16, 2**16))
    source = TensorDesc("FLOAT16", (1, 1, 1, 1))
    repeats = (1, 1, 2**16 + 1, 2**16 - 1)  # 2**32-1 in all
    TileOperatorDesc(source, TensorDesc("FLOAT16", repeats), repeats).check(tile.level)
    large = TensorDesc("FLOAT16", (2**11,) * 4)
    with refused(tileops.OutputTooLargeError, "are 17592186044416 elements"):
        TileOperatorDesc(large, large, (1,) * 4).check(tile.level)


@rule(DIRECTML, "DML_BUFFER_TENSOR_DESC, Sizes", "no size is 0")
def _(xp, tile):
    _, x = make(xp, (2, 1, 0, 3))
    with refused(tileops.ShapeError, r"input sizes\[2\] is 0 .*no empty tensors"):
        tile(x, (1, 1, 1, 1))
