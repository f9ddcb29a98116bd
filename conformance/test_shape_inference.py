"""Shape inference agrees with ONNX's: the same sizes, symbols, unknowns and refusals."""

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tileops
from oracle import REPORT, outcome_here

PEER = f"onnx.shape_inference of onnx {onnx.__version__}"
INFER = {"Tile": tileops.onnx.infer_tile_shape, "Expand": tileops.onnx.infer_expand_shape}


@dataclass(frozen=True)
class Partial:
    """A node whose input shape and counts are partly known."""

    op_type: str
    opset: int
    shape: tuple | None
    counts: tuple | None

    def model(self):
        """Make a model: known counts are a constant, others are the shape of another input."""
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)]
        nodes, constants = [], []
        if self.counts is None:
            inputs.append(helper.make_tensor_value_info("counts", TensorProto.INT64, None))
        elif all(isinstance(count, int) for count in self.counts):
            counts = np.array(self.counts, np.int64)
            constants.append(numpy_helper.from_array(counts, "counts"))
        else:
            inputs.append(helper.make_tensor_value_info("other", TensorProto.FLOAT, self.counts))
            nodes.append(helper.make_node("Shape", ["other"], ["counts"]))
        nodes.append(helper.make_node(self.op_type, ["x", "counts"], ["y"]))
        output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph(nodes, "partial", inputs, [output], constants)
        imports = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)

    def there(self, model=None):
        """Return the shape that ONNX infers, or the error by which it refuses."""
        try:
            inferred = onnx.shape_inference.infer_shapes(
                model or self.model(), strict_mode=True, data_prop=True
            )
        except onnx.shape_inference.InferenceError as error:
            return error
        result = inferred.graph.output[0].type.tensor_type
        if not result.HasField("shape"):
            return None
        return tuple(map(_read, result.shape.dim))

    def here(self):
        return outcome_here(lambda: INFER[self.op_type](self.shape, self.counts))


def _read(dim):
    """Read a size; ONNX's own symbols for unknown sizes begin with `unk__`, and become None."""
    if dim.HasField("dim_value"):
        return dim.dim_value
    return None if dim.dim_param.startswith("unk__") else dim.dim_param or None


def draw(rng, op_type):
    """Draw sizes, symbols and unknowns, which agree more often than not."""
    first = {"Tile": 6, "Expand": 8}[op_type]
    rank, length = (int(n) for n in rng.integers(0, 6, 2))
    length = rank if op_type == "Tile" and rng.integers(0, 8) else length
    sizes = [0, 1, 1, 2, 3, "n", "m", None]
    shape = [sizes[i] for i in rng.integers(0, len(sizes), rank)]
    counts = [sizes[i] for i in rng.integers(0, len(sizes), length)]
    for i in range(1, min(rank, length) + 1):
        if op_type == "Expand" and rng.integers(0, 3):
            counts[-i] = [shape[-i], 1][int(rng.integers(0, 2))]
    if rng.integers(0, 2):
        counts = [count if isinstance(count, int) else 2 for count in counts]
    if op_type == "Tile" and counts and not rng.integers(0, 10):
        counts[0] = -1
    if op_type == "Tile" and counts and shape and not rng.integers(0, 20):
        shape[0], counts[0] = 2**62, 2
    is_known = all(isinstance(count, int) for count in counts)
    return Partial(
        op_type,
        int(rng.integers(first if is_known else 13, 22)),  # Shape-13 propagates known sizes
        tuple(shape) if rng.integers(0, 12) else None,
        tuple(counts) if rng.integers(0, 12) else None,
    )


@pytest.mark.parametrize("op_type", INFER)
def test_random_partial_shapes_are_inferred_alike(rng, count, op_type):
    refused = unknown = partial = 0
    for _ in range(count // 2):
        case = draw(rng, op_type)
        here, there = case.here(), case.there()
        if isinstance(here, Exception) and isinstance(there, Exception):
            refused += 1
            continue
        assert here == there, f"{case}\nhere: {here}\nthere: {there}"
        unknown += here is None
        partial += here is not None and not all(isinstance(size, int) for size in here)
    REPORT.append(
        f"{PEER}: {op_type}: {count // 2} partial shapes: {refused} refused by both, {unknown} of "
        f"unknown rank, {partial} known in part; 0 differences"
    )
    assert min(refused, unknown, partial) > count // 200


def test_onnx_uses_counts_that_are_no_constant_for_expand_alone():
    """Data propagation finds the sizes of another tensor, which a Tile's inference ignores."""
    for op_type, shape, expected in (("Tile", (3,), (None,)), ("Expand", (1,), (2,))):
        case = Partial(op_type, 17, shape, (2,))
        model = case.model()
        del model.graph.initializer[:]
        model.graph.input.append(helper.make_tensor_value_info("other", TensorProto.FLOAT, (2,)))
        model.graph.node.insert(0, helper.make_node("Shape", ["other"], ["counts"]))
        assert case.there(model) == expected
        assert INFER[op_type](shape, (2,) if op_type == "Expand" else None) == expected


def test_the_deviation_still_exists():
    """ONNX accepts a negative entry of Expand's shape as a size, which the operator refuses."""
    case = Partial("Expand", 13, (1, 3), (-1, 3))
    assert case.there() == (-1, 3)
    assert isinstance(case.here(), tileops.ShapeError)
