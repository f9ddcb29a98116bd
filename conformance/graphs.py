"""Random graphs of Tile and Expand, with nodes that compute their inputs."""

import numpy as np
from onnx import helper, numpy_helper

from cases import INTEGERS, bits, tensor_type

DTYPES = ("bool", "float32", "float64", "string", *INTEGERS)
MOST_ELEMENTS = 20_000


def draw(rng):
    """Draw a legal model, and its inputs."""
    return _Drawing(rng).model()


class _Drawing:
    def __init__(self, rng):
        self.rng = rng
        self.dtype = str(rng.choice(DTYPES))
        self.nodes, self.constants = [], []
        shapes = [tuple(map(int, rng.choice([0, 1, 2, 3], self.integer(0, 4)))) for _ in "ab"]
        self.feeds = {
            f"x{i}": bits(self.dtype, s, self.integer(0, 2**31)) for i, s in enumerate(shapes)
        }
        self.shapes = {name: value.shape for name, value in self.feeds.items()}

    def integer(self, low, high):
        return int(self.rng.integers(low, high))

    def add(self, op_type, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    def counts(self, values):
        """Return the name of counts: an initializer, a Constant, or an Identity of a Constant."""
        tensor = numpy_helper.from_array(np.array(values, np.int64))
        match self.integer(0, 4):
            case 0:
                tensor.name = f"c{len(self.constants)}"
                self.constants.append(tensor)
                return tensor.name
            case 1 if values:
                return self.add("Constant", [], value_ints=list(map(int, values)))
            case 2:
                return self.add("Identity", [self.add("Constant", [], value=tensor)])
            case _:
                return self.add("Constant", [], value=tensor)

    def tile(self, name):
        shape = self.shapes[name]
        repeats = [self.integer(0, 4) if n * 3 < 64 else 1 for n in shape]
        result = self.add("Tile", [name, self.counts(repeats)])
        self.shapes[result] = tuple(n * r for n, r in zip(shape, repeats, strict=True))

    def expand(self, name):
        """Expand by counts in front of the input's own shape, of which some sizes may be 1."""
        shape = self.shapes[name]
        front = [self.integer(0, 4) for _ in range(self.integer(0, 3))]
        start = self.integer(0, len(shape) + 1)
        own = self.add("Shape", [name], start=start)
        kept = self.counts([1] * start)
        target = self.add("Concat", [self.counts(front), kept, own], axis=0)
        result = self.add("Expand", [name, target])
        self.shapes[result] = (*front, *shape)

    def declared(self, name, kind):
        """Declare a value's type and rank."""
        return helper.make_tensor_value_info(name, kind, [None] * len(self.shapes[name]))

    def model(self):
        for _ in range(self.integer(1, 6)):
            name = str(self.rng.choice(sorted(self.shapes)))
            step = self.tile if self.integer(0, 2) else self.expand
            step(name)
            new = next(reversed(self.shapes))
            if (
                np.prod(self.shapes[new], dtype=np.int64) > MOST_ELEMENTS
                or len(self.shapes[new]) > 6
            ):
                break
        made = [name for name in self.shapes if name not in self.feeds]
        outputs = [n for n in made if self.integer(0, 2)] or made[-1:]
        kind = tensor_type(self.dtype)
        graph = helper.make_graph(
            self.nodes,
            "random",
            [self.declared(name, kind) for name in self.feeds],
            [self.declared(name, kind) for name in outputs],
            self.constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return model, self.feeds
