"""Random nodes, each one Tile or Expand, to compare with other runtimes; failures print them."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

import tileops

FIXED = ("bool", "float16", "float32", "float64", "complex64", "complex128", "bfloat16")
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
DTYPES = (*FIXED, *INTEGERS, "string")
MOST_ELEMENTS = 5_000


@dataclass(frozen=True)
class Case:
    """A node, its inputs, and whether its counts are a constant of the model."""

    op_type: str
    opset: int
    dtype: str
    shape: tuple
    counts: tuple
    counts_dtype: str
    is_constant: bool
    seed: int

    def arrays(self):
        """Make the input and the counts."""
        return bits(self.dtype, self.shape, self.seed), np.array(self.counts, self.counts_dtype)

    def ours(self):
        """Run the node with this package."""
        return getattr(tileops.onnx, f"{self.op_type.lower()}_{self.version}")(*self.arrays())

    def has_signalling_nan(self):
        """Return whether a float16 input has a NaN that arithmetic would make quiet."""
        if self.dtype != "float16":
            return False
        raw = self.arrays()[0].view(np.uint16)
        return bool(np.any((raw & 0x7E00 == 0x7C00) & (raw & 0x01FF != 0)))

    def has_half_nan(self):
        """Return whether a float16 input has a NaN, whose bits arithmetic may change."""
        return self.dtype == "float16" and bool(np.isnan(self.arrays()[0]).any())

    def model(self):
        """Make a model of the node that declares no shapes."""
        counts = np.array(self.counts, self.counts_dtype)
        kind = tensor_type(self.dtype)
        inputs = [helper.make_tensor_value_info("x", kind, None)]
        constants = []
        if self.is_constant:
            constants = [numpy_helper.from_array(counts, "counts")]
        else:
            counts_kind = tensor_type(self.counts_dtype)
            inputs += [helper.make_tensor_value_info("counts", counts_kind, None)]
        node = helper.make_node(self.op_type, ["x", "counts"], ["y"])
        output = helper.make_tensor_value_info("y", kind, None)
        graph = helper.make_graph([node], "case", inputs, [output], constants)
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8
        )

    def feeds(self):
        """Return the inputs by their names in the model."""
        x, counts = self.arrays()
        return {"x": x} if self.is_constant else {"x": x, "counts": counts}

    def __str__(self):
        """Return a script that reproduces the case, for the message of a failure."""
        return (
            f"\nimport sys; sys.path[:0] = ['conformance']  # in a checkout\n"
            f"from cases import Case\n"
            f"case = {self!r}\n"
            f"open('case.onnx', 'wb').write(case.model().SerializeToString())  # for the peer\n"
            f"print(case.ours())\n"
        )

    @property
    def version(self):
        """The version of the operator in the opset."""
        first = {"Tile": 6, "Expand": 8}[self.op_type]
        return 13 if self.opset >= 13 else first


def tensor_type(dtype):
    """Return ONNX's number of a dtype."""
    if dtype == "string":
        return TensorProto.STRING
    return helper.np_dtype_to_tensor_dtype(numpy_dtype(dtype))


def numpy_dtype(dtype):
    """Return NumPy's dtype of that name."""
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def bits(dtype, shape, seed):
    """Make an array of random bits, or of random text."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape, dtype=np.int64))
    if dtype == "string":
        words = np.array(["", "a", "tile", "azulejo", "\u00e9\u4e2d\U0001f600"], object)
        return words[rng.integers(0, len(words), size)].reshape(shape)
    raw = rng.integers(0, 256, size * numpy_dtype(dtype).itemsize, np.uint8)
    if dtype == "bool":
        raw &= 1
    return raw.view(numpy_dtype(dtype)).reshape(shape)


def draw(rng, op_type, opset):
    """Draw a case: most cases are legal, the others break one rule."""
    shape, counts = {"Tile": _tile, "Expand": _expand}[op_type](rng)
    counts_dtype = "int64"
    match int(rng.integers(0, 20)):
        case 0:
            counts = (*counts, 1)
        case 1:
            counts = counts[1:]
        case 2 | 3 if counts:
            counts = _replaced(rng, counts, -int(rng.integers(1, 4)))
        case 4 if counts:
            counts = _replaced(rng, counts, int(rng.integers(0, 5)))
        case 5:
            counts_dtype = str(rng.choice(["int32", "uint8", "float32", "bool"]))
            counts = tuple(min(count, 1) for count in counts)
    return Case(
        op_type=op_type,
        opset=opset,
        dtype=str(rng.choice(DTYPES)),
        shape=shape,
        counts=counts,
        counts_dtype=counts_dtype,
        is_constant=bool(rng.integers(0, 4) == 0),
        seed=int(rng.integers(0, 2**31)),
    )


def _tile(rng):
    shape, counts, room = [], [], MOST_ELEMENTS
    for _ in range(int(rng.integers(0, 7))):
        n, r = int(rng.choice([0, 1, 1, 2, 3, 4, 5])), int(rng.choice([0, 1, 1, 2, 3, 4]))
        if n * r > room:
            n = r = 1
        room //= max(n * r, 1)
        shape.append(n)
        counts.append(r)
    return tuple(shape), tuple(counts)


def _expand(rng):
    shape, counts, room = [], [], MOST_ELEMENTS
    for _ in range(int(rng.integers(0, 7))):
        size = int(rng.choice([0, 1, 2, 3, 4, 5]))
        size = 1 if size > room else size
        room //= max(size, 1)
        pair = [(size, size), (1, size), (size, 1)][int(rng.integers(0, 3))]
        shape.append(pair[0])
        counts.append(pair[1])
    dropped = int(rng.integers(0, 3))
    if rng.integers(0, 2):
        return tuple(shape[dropped:]), tuple(counts)
    return tuple(shape), tuple(counts[dropped:])


def _replaced(rng, counts, value):
    i = int(rng.integers(0, len(counts)))
    return (*counts[:i], value, *counts[i + 1 :])
