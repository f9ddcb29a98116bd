"""ONNX's reference evaluator: values only, because it checks little and multiplies by ones."""

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import cases
import tileops
from cases import Case
from oracle import Deviation, compare, still_deviates

PEER = f"ReferenceEvaluator of onnx {onnx.__version__}"
OPSETS = {("Tile", 6): 6, ("Tile", 13): 13, ("Expand", 8): 8, ("Expand", 13): 13}

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # its Expand multiplies NaNs


def theirs(case):
    return ReferenceEvaluator(case.model()).run(None, case.feeds())[0]


def strict(case):
    """Run the evaluator with this package's operators in place of its own."""
    new_ops = tileops.onnx.reference.ops()
    return ReferenceEvaluator(case.model(), new_ops=new_ops).run(None, case.feeds())[0]


def has_special_values(case):
    x = case.arrays()[0]
    return x.dtype.kind in "fcV" and not np.all(np.isfinite(x))


def node(op_type, dtype, shape, counts, counts_dtype="int64", opset=13):
    return Case(op_type, opset, dtype, shape, counts, counts_dtype, is_constant=False, seed=0)


DEVIATIONS = [
    Deviation(
        "it does not check types: bfloat16 passes in versions that lack it",
        lambda case: case.dtype == "bfloat16" and case.version < 13,
        node("Tile", "bfloat16", (2,), (2,), opset=6),
    ),
    Deviation(
        "it does not check the type of repeats and shape",
        lambda case: case.counts_dtype != "int64",
        node("Tile", "float32", (2,), (2,), "int32"),
    ),
    Deviation(
        "its Tile pads repeats, and the input, with ones",
        lambda case: case.op_type == "Tile" and len(case.counts) != len(case.shape),
        node("Tile", "float32", (2, 3), (2,)),
    ),
    Deviation(
        "its Tile lets negative counts pass where the input or the result is empty",
        lambda case: case.op_type == "Tile" and min(case.counts, default=0) < 0,
        node("Tile", "float32", (0, 3), (-1, 1)),
    ),
    Deviation(
        "its Expand multiplies by ones, which changes NaN payloads and infinite complex numbers",
        lambda case: case.op_type == "Expand" and has_special_values(case),
        node("Expand", "float16", (4_000,), (1,)),
    ),
    Deviation(
        "its Expand makes a Python str of a string of rank 0",
        lambda case: case.op_type == "Expand" and case.dtype == "string" and not case.shape,
        node("Expand", "string", (), ()),
    ),
]


@pytest.mark.parametrize("op_type, version", OPSETS)
def test_random_nodes_have_the_same_values(rng, count, op_type, version):
    opset = OPSETS[op_type, version]
    drawn = (cases.draw(rng, op_type, opset) for _ in range(-(-count // 4)))
    compare(f"{PEER}: {op_type}-{version}", drawn, Case.ours, theirs, DEVIATIONS)


@pytest.mark.parametrize("op_type, version", OPSETS)
def test_the_evaluator_with_new_ops_follows_every_rule(rng, count, op_type, version):
    opset = OPSETS[op_type, version]
    drawn = (cases.draw(rng, op_type, opset) for _ in range(-(-count // 8)))
    compare(f"{PEER} with new_ops: {op_type}-{version}", drawn, Case.ours, strict)


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=lambda deviation: deviation.reason)
def test_the_deviation_still_exists(deviation):
    still_deviates(deviation, Case.ours, theirs)
