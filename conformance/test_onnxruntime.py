"""onnxruntime on the CPU: single nodes, whole graphs, and upgraded models."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import cases
import graphs
import tileops
import tileops.onnx.upgrade
from cases import Case
from oracle import (
    REPORT,
    Deviation,
    compare,
    difference,
    outcome_here,
    outcome_there,
    still_deviates,
)

PEER = f"onnxruntime {onnxruntime.__version__}"
onnxruntime.set_default_logger_severity(4)
NO_KERNEL = ("bfloat16", "complex64", "complex128")
OPSETS = {
    ("Tile", 6): (6, 13),
    ("Tile", 13): (13, 22),
    ("Expand", 8): (8, 13),
    ("Expand", 13): (13, 22),
}


def theirs(case):
    return run(case.model(), case.feeds())[0]


def run(model, feeds):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)


DEVIATIONS = [
    Deviation(
        "it has no kernels of Tile and Expand for bfloat16 and complex numbers on the CPU",
        lambda case: case.dtype in NO_KERNEL,
        Case("Tile", 13, "bfloat16", (2,), (2,), "int64", is_constant=False, seed=0),
    ),
    Deviation(
        "it runs Tile of float16 through float32, where a NaN becomes a quiet one, or another",
        lambda case: case.op_type == "Tile" and case.has_half_nan(),
        Case("Tile", 13, "float16", (4_000,), (1,), "int64", is_constant=False, seed=0),
    ),
    Deviation(
        "in Expand of strings it takes a negative size for 1",
        lambda case: (
            (case.op_type, case.dtype) == ("Expand", "string") and min(case.counts, default=0) < 0
        ),
        Case("Expand", 13, "string", (2, 1), (1, -1), "int64", is_constant=False, seed=0),
    ),
]


@pytest.mark.parametrize("op_type, version", OPSETS)
def test_random_nodes_give_the_same_bits_or_are_refused_by_both(rng, count, op_type, version):
    low, high = OPSETS[op_type, version]
    drawn = (cases.draw(rng, op_type, int(rng.integers(low, high))) for _ in range(-(-count // 4)))
    seen = compare(f"{PEER}: {op_type}-{version}", drawn, Case.ours, theirs, DEVIATIONS)
    assert seen["refused by both"] > count // 100


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=lambda deviation: deviation.reason)
def test_the_deviation_still_exists(deviation):
    still_deviates(deviation, Case.ours, theirs)


def test_random_graphs_give_the_same_bits(rng, count):
    backend = tileops.onnx.backend.for_library("numpy")
    drawn = [graphs.draw(rng) for _ in range(-(-count // 8))]
    for model, feeds in drawn:
        onnx.checker.check_model(model, full_check=True)
        expected = run(model, feeds)
        results = backend.run_model(model, feeds)
        for here, there in zip(results, expected, strict=True):
            found = difference(here, there)
            assert found is None, f"{found}\n{onnx.printer.to_text(model)}\ninputs: {feeds}"
    nodes = sum(len(model.graph.node) for model, _ in drawn)
    REPORT.append(f"{PEER}: {len(drawn)} graphs of {nodes} nodes: the same bits; 0 differences")


class Upgraded:
    """A model of opset 1 to 5 with a Tile-1 among other nodes, and its inputs."""

    def __init__(self, rng):
        self.opset = int(rng.integers(1, 6))
        self.dtype = str(rng.choice(["float16", "float32", "float64"]))
        self.shape = tuple(int(n) for n in rng.choice([0, 1, 2, 3], int(rng.integers(0, 4))))
        rank = len(self.shape)
        kinds = [self.dtype, "int64"]
        self.tiles = self._number(rng, kinds, [*range(4)] * 6 + [-1, 1.5, np.nan, np.inf])
        self.axis = self._number(rng, kinds, [*range(-rank, rank)] * 6 + [-rank - 1, rank, 0.5])
        self.is_constant = [bool(rng.integers(0, 2)) for _ in "ab"]
        self.is_rank_known = self.opset < 5 or bool(rng.integers(0, 2))
        self.seed = int(rng.integers(0, 2**31))

    @staticmethod
    def _number(rng, kinds, values):
        value, kind = rng.choice(np.array(values)), str(rng.choice(kinds))
        if kind == "int64":
            value = np.trunc(np.nan_to_num(value, posinf=2))
        return np.array(value, kind).reshape([(), (1,)][int(rng.integers(0, 2))])

    def arrays(self):
        values = np.random.default_rng(self.seed).standard_normal(self.shape)
        return values.astype(self.dtype), self.tiles, self.axis

    def model(self):
        kind = cases.tensor_type(self.dtype)
        inputs = [helper.make_tensor_value_info("x", kind, self.shape)]
        nodes = [helper.make_node("Identity", ["x"], ["same"])]
        if not self.is_rank_known:
            inputs.append(helper.make_tensor_value_info("shape", TensorProto.INT64, [None]))
            nodes = [helper.make_node("Reshape", ["x", "shape"], ["same"])]
        numbers = {"tiles": self.tiles, "axis": self.axis}
        for (name, value), is_constant in zip(numbers.items(), self.is_constant, strict=True):
            if is_constant:
                tensor = numpy_helper.from_array(value)
                nodes.append(helper.make_node("Constant", [], [name], value=tensor))
            else:
                number = cases.tensor_type(str(value.dtype))
                inputs.append(helper.make_tensor_value_info(name, number, value.shape))
        nodes += [
            helper.make_node("Tile", ["same", "tiles", "axis"], ["tiled"]),
            helper.make_node("Identity", ["tiled"], ["y"]),
        ]
        output = helper.make_tensor_value_info("y", kind, [None] * len(self.shape))
        graph = helper.make_graph(nodes, "old", inputs, [output])
        imports = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=3)

    def feeds(self):
        named = dict(zip(("x", "tiles", "axis"), self.arrays(), strict=True))
        if not self.is_rank_known:
            named["shape"] = np.array(self.shape, np.int64)
        left_out = {n for n, c in zip(("tiles", "axis"), self.is_constant, strict=True) if c}
        return {name: value for name, value in named.items() if name not in left_out}

    def __str__(self):
        return f"{onnx.printer.to_text(self.model())}\ninputs: {self.feeds()}"


def upgraded(case):
    """Upgrade a model, or return this package's refusal; any other error is a fault."""
    model = outcome_here(lambda: tileops.onnx.upgrade.upgrade(case.model()))
    if not isinstance(model, Exception):
        onnx.checker.check_model(model, full_check=True)
        assert [o.version for o in model.opset_import] == [13]
    return model


def run_upgraded(case):
    if isinstance(case.upgraded, Exception):
        raise case.upgraded
    return run(case.upgraded, case.feeds())[0]


def test_upgraded_models_keep_their_meaning(rng, count):
    drawn = [Upgraded(rng) for _ in range(-(-count // 4))]
    for case in drawn:
        case.upgraded = upgraded(case)
    seen = compare(
        f"{PEER}: upgraded Tile-1",
        drawn,
        lambda case: tileops.onnx.tile_1(*case.arrays()),
        run_upgraded,
    )
    assert seen["refused by both"] > count // 100


def test_the_official_converter_still_has_no_adapter(rng):
    model = Upgraded(rng).model()
    error = outcome_there(lambda: onnx.version_converter.convert_version(model, 13))
    assert "No Adapter" in str(error)
