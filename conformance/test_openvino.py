"""OpenVINO on the CPU: Tile-1, with counts that are a constant or an input."""

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import openvino
import pytest
from openvino import opset13

import cases
import tileops
from cases import INTEGERS, Case
from oracle import REPORT, Deviation, compare

PEER = f"OpenVINO {openvino.__version__.partition('-')[0]}"
CORE = openvino.Core()
TYPES = {
    "bool": "boolean",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
    "float8_e8m0fnu": "f8e8m0",
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
}


@dataclass(frozen=True)
class TileCase(Case):
    """A Tile-1; unless `is_wide`, 32 bits can hold the values of its 64-bit elements."""

    is_wide: bool = False

    def arrays(self):
        x, counts = super().arrays()
        narrow = {"int64": "int32", "uint64": "uint8", "float64": "float32"}.get(self.dtype)
        if narrow and not self.is_wide:
            values = np.random.default_rng(self.seed).integers(0, 200, self.shape)
            x = values.astype(narrow).astype(self.dtype)
        return x, counts

    def ours(self):
        return tileops.openvino.tile(*self.arrays())

    def __str__(self):
        return (
            f"\nimport sys; sys.path[:0] = ['conformance', 'tests']  # in a checkout\n"
            f"from test_openvino import TileCase, theirs\n"
            f"case = {self!r}\n"
            f"print(case.ours(), theirs(case))\n"
        )


def element_type(dtype):
    return getattr(openvino.Type, TYPES[dtype])


def node(case):
    """Make the operator and its parameters, which have a rank but no sizes."""
    x, counts = case.arrays()
    parameters = [opset13.parameter(openvino.PartialShape([-1] * x.ndim), element_type(case.dtype))]
    if case.is_constant:
        given = opset13.constant(counts)
    else:
        given = opset13.parameter(list(counts.shape), element_type(case.counts_dtype))
        parameters.append(given)
    return opset13.tile(parameters[0], given), parameters


def theirs(case):
    x, counts = case.arrays()
    tile, parameters = node(case)
    compiled = CORE.compile_model(openvino.Model([tile], parameters, "case"), "CPU")
    tensor = openvino.Tensor(element_type(case.dtype), openvino.Shape(x.shape))
    if x.size:
        raw = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
        tensor.data.reshape(-1).view(np.uint8)[:] = raw
    result = np.array(compiled([tensor] if case.is_constant else [tensor, counts])[0])
    return result.view(x.dtype)  # NumPy has no bfloat16 and no 8-bit floats of its own


def draw(rng):
    """Draw shape and counts of independent lengths; a few counts are not integers."""
    room, sizes = cases.MOST_ELEMENTS, []
    for choices in ([0, 1, 1, 2, 3, 4], [0, 1, 1, 2, 3]):
        found = [int(n) for n in rng.choice(choices, int(rng.integers(0, 7)))]
        for i, n in enumerate(found):
            found[i] = 1 if n > room else n
            room //= max(found[i], 1)
        sizes.append(tuple(found))
    wrong = rng.integers(0, 25) == 0
    return TileCase(
        op_type="Tile",
        opset=1,
        dtype=str(rng.choice(list(TYPES))),
        shape=sizes[0],
        counts=sizes[1],
        counts_dtype=str(rng.choice(["float32", "float64", "bool"] if wrong else INTEGERS)),
        is_constant=bool(rng.integers(0, 4) == 0),
        seed=int(rng.integers(0, 2**31)),
    )


def case_of(dtype, shape, counts, counts_dtype="int64", *, is_wide=False):
    return TileCase(
        "Tile", 1, dtype, shape, counts, counts_dtype, is_constant=False, seed=0, is_wide=is_wide
    )


def repeats_three_inner_axes(case):
    """Return whether at least three axes besides the first are repeated."""
    x, counts = case.arrays()
    rank = max(x.ndim, len(counts))
    padded = (1,) * (rank - len(counts)) + tuple(counts)
    return sum(count > 1 for count in padded[1:]) >= 3


def test_the_accepted_types_are_those_of_openvino():
    types = {
        name
        for name in dir(openvino.Type)
        if isinstance(getattr(openvino.Type, name), openvino.Type)
    }
    lacked = {"dynamic", "nf4"}  # not a type, and a type that no array library has
    assert set(tileops.openvino._DTYPES.values()) == types - lacked


@pytest.mark.parametrize("name", ["u1", "u3", "u6", "string"])
def test_the_cpu_plugin_still_has_no_tile_for(name):
    x = opset13.parameter([2], getattr(openvino.Type, name))
    model = openvino.Model([opset13.tile(x, np.array([2]))], [x], "case")
    with pytest.raises(RuntimeError, match="not support"):
        CORE.compile_model(model, "CPU")


DEVIATIONS = [
    Deviation(
        "its CPU plugin passes elements of 64 bits through 32",
        lambda case: case.is_wide and case.dtype in ("int64", "uint64", "float64"),
        case_of("int64", (100,), (1,), is_wide=True),
    ),
    Deviation(
        "its CPU plugin makes a quiet NaN of a signalling one of float16",
        Case.has_signalling_nan,
        case_of("float16", (4_000,), (2,)),
    ),
    Deviation(
        "its CPU plugin leaves the result unwritten where three axes after the first are repeated "
        "by counts that are an input",
        repeats_three_inner_axes,
        case_of("float32", (2, 2, 3, 3, 3), (1, 2, 2, 2, 1)),
        is_safe=False,
    ),
    Deviation(
        "its CPU plugin fails or crashes on empty counts",
        lambda case: not case.counts,
        case_of("float32", (2, 3), ()),
        is_safe=False,
    ),
    Deviation(
        "it takes counts of type boolean where they are an input, and reads past them",
        lambda case: case.counts_dtype == "bool" and not case.is_constant,
        case_of("float32", (2,), (1,), "bool"),
        is_safe=False,
    ),
    Deviation(
        "its CPU plugin crashes on some negative counts that are an input; it infers them as 0",
        lambda case: min(case.counts, default=0) < 0,
        case_of("uint16", (1,), (-1, 1)),
        is_safe=False,
    ),
]


def test_random_nodes_give_the_same_bits_or_are_refused_by_both(rng, count):
    drawn = (draw(rng) for _ in range(count * 5 // 4))  # a quarter is not safe to run in OpenVINO
    compare(f"{PEER}: Tile-1", drawn, TileCase.ours, theirs, DEVIATIONS)


@pytest.mark.parametrize("i", range(len(DEVIATIONS)), ids=lambda i: DEVIATIONS[i].reason)
def test_the_deviation_still_exists(i):
    """The peer runs in a process of its own, because it may crash."""
    code = (
        f"import oracle, test_openvino as t\n"
        f"oracle.still_deviates(t.DEVIATIONS[{i}], t.TileCase.ours, t.theirs)\n"
        f"print('still so')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    crashed = done.returncode < 0
    assert crashed or done.stdout == "still so\n", done.stderr
    assert not (crashed and DEVIATIONS[i].is_safe)


def test_negative_counts_give_the_sizes_that_openvino_infers(rng, count):
    """Shape inference takes them for 0; to run them is not safe, as one of the deviations shows."""
    total = count // 4
    for _ in range(total):
        case = draw(rng)
        counts = list(case.counts or (1,))
        counts[int(rng.integers(0, len(counts)))] = -int(rng.integers(1, 100))
        case = replace(case, counts=tuple(counts), counts_dtype="int8", is_constant=True)
        x, given = case.arrays()
        constant = opset13.tile(opset13.constant(np.zeros(x.shape, np.float32)), given)
        assert tuple(constant.output(0).get_shape()) == case.ours().shape, str(case)
    REPORT.append(f"{PEER}: Tile-1 with negative counts: {total} shapes; 0 differences")
