"""PyTorch models exported to ONNX, and their results in other runtimes."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import tileops
import tileops.onnx.backend

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

pytestmark = [
    pytest.mark.library("torch"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec"),  # from PyTorch's exporter
]


def export(torch, model, *inputs, dynamic):
    program = torch.onnx.export(
        model.eval(), inputs, dynamo=True, dynamic_shapes=dynamic, verbose=False
    )
    onnx.checker.check_model(program.model_proto, full_check=True)
    return program.model_proto


def test_an_exported_model_has_standard_operators_and_serves_other_sizes():
    import onnxruntime
    import torch

    class Model(torch.nn.Module):
        def forward(self, x, y):
            n, width, _ = x.shape
            return (
                tileops.tile(x, (2, 1, 3)),
                tileops.tile(x, (1, n, 1)),
                tileops.tile(x, 2),
                tileops.expand(x[:1], (n, width, 1), copy=True),
                tileops.expand(y, (n, 5, y.shape[-1])),
                tileops.onnx.tile(x, (1, 2, 1)),
                tileops.onnx.expand(x, (3, 1, 1, 1)),
                tileops.openvino.tile(x, (2, 1)),
            )

    model, size = Model(), torch.export.Dim.DYNAMIC
    example = torch.randn(2, 3, 4), torch.randn(5, 3)
    proto = export(torch, model, *example, dynamic=({0: size, 1: size}, {1: size}))
    used = {node.op_type for node in proto.graph.node}
    assert {node.domain for node in proto.graph.node} == {""}
    assert {"Tile", "Expand"} <= used <= {"Tile", "Expand", "Shape", "Concat", "Identity", "Slice"}
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    names = [value.name for value in session.get_inputs()]
    for n, m, k in ((2, 3, 3), (5, 2, 4), (7, 6, 1)):
        inputs = torch.randn(n, m, 4), torch.randn(5, k)
        results = session.run(None, dict(zip(names, (x.numpy() for x in inputs), strict=True)))
        for result, value in zip(results, model(*inputs), strict=True):
            assert result.shape == value.shape
            assert result.tobytes() == value.contiguous().numpy().tobytes()


@pytest.mark.parametrize(
    "kind, call",
    [
        ("Tile", lambda x: tileops.tile(x, (1, 2, 1))),
        ("Expand", lambda x: tileops.expand(x, (4, 1, 1, 1))),
        ("Expand", lambda x: tileops.expand(x, (x.shape[0], 5, 4))),
    ],
)
def test_a_call_is_exported_as_one_node(kind, call):
    import torch

    class Model(torch.nn.Module):
        def forward(self, x):
            return call(x)

    for dynamic in (None, ({0: torch.export.Dim.DYNAMIC},)):
        proto = export(torch, Model(), torch.randn(2, 1, 4), dynamic=dynamic)
        assert [node.op_type for node in proto.graph.node] == [kind]


@pytest.mark.parametrize("is_copied", [None, True])
def test_sizes_of_an_expand_may_be_data(is_copied):
    """In the exported model, the input's axis stays, whether its size or 1 is asked for."""
    import onnxruntime
    import torch

    class Model(torch.nn.Module):
        def forward(self, x, sizes):
            return tileops.expand(x, sizes.tolist(), copy=is_copied) + 1

    x, model = torch.arange(3.0).reshape(1, 3), Model()
    proto = export(torch, model, x, torch.tensor([4, 3]), dynamic=None)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    names = [given.name for given in session.get_inputs()]
    for sizes in (4, 3), (2, 1), (0, 3), (1, 1):
        values = x.numpy(), np.array(sizes)
        (result,) = session.run(None, dict(zip(names, values, strict=True)))
        assert np.array_equal(result, model(x, torch.tensor(sizes)).numpy())


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Converting a tensor to a Python")
def test_a_traced_model_serves_other_sizes(tmp_path):
    """The exporter without TorchDynamo and OpenVINO's converter trace models in this way."""
    import onnxruntime
    import torch

    class Tokens(torch.nn.Module):
        def forward(self, x):
            token = tileops.expand(torch.ones(1, 1, 4), (x.shape[0], 1, 1))
            x = tileops.tile(torch.cat([token, x], 1), (1, x.shape[1], 2))
            return x + tileops.expand(x[:1], x.shape)

    def native(x):
        x = torch.cat([torch.ones(len(x), 1, 4), x], 1).repeat(1, x.shape[1], 2)
        return x + x[:1]

    model = Tokens().eval()
    torch.onnx.export(
        model,
        (torch.randn(2, 3, 4),),
        path := tmp_path / "model.onnx",
        dynamo=False,
        input_names=["x"],
        dynamic_axes={"x": {0: "batch", 1: "tokens"}},
    )
    session = onnxruntime.InferenceSession(path)
    for sizes in (2, 3), (5, 2), (1, 1):
        x = torch.randn(*sizes, 4)
        (found,) = session.run(None, {"x": x.numpy()})
        assert found.tobytes() == native(x).numpy().tobytes()
        assert found.shape == native(x).shape


@pytest.mark.parametrize("strict", [True, False])
def test_an_expand_that_changes_nothing_exports_no_node(strict):
    import torch

    class Masked(torch.nn.Module):
        def forward(self, mask, x):
            return x + tileops.expand(mask, (x.shape[0], 1, x.shape[2], x.shape[2]))

    size = torch.export.Dim("n")
    sizes = {0: torch.export.Dim("batch"), 2: size, 3: size}
    inputs = (torch.randn(2, 1, 5, 5), torch.randn(2, 4, 5, 5))
    program = torch.export.export(Masked(), inputs, dynamic_shapes=(sizes, sizes), strict=strict)
    proto = torch.onnx.export(program, verbose=False).model_proto
    assert [node.op_type for node in proto.graph.node] == ["Add"]


@pytest.mark.parametrize("strict", [True, False])
def test_a_named_size_is_exported_without_a_bound(strict):
    """The limit on the size of a result must not bound the sizes that a program is exported for."""
    import torch

    class Model(torch.nn.Module):
        def forward(self, x):
            return (
                tileops.tile(x, (2, 1)),
                tileops.tile(x, (x.shape[0], 1)),
                tileops.expand(x, (3, *x.shape)),
                tileops.onnx.tile(x, (x.shape[0], 1)),
                tileops.onnx.expand(x, (3, x.shape[0], 1)),
                tileops.tile_adjoint(x, (x.shape[0], 2), (1, 2)),
                tileops.expand_adjoint(x, (x.shape[0], 1)),
            )

    sizes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(
        Model(), (torch.ones(3, 4),), dynamic_shapes=sizes, strict=strict
    ).module()
    for n in (2, 3, 7):
        x = torch.randint(-9, 9, (n, 4)).float()  # their sums are exact in any order
        expected = (
            x.repeat(2, 1),
            x.repeat(n, 1),
            x.repeat(3, 1, 1),
            x.repeat(n, 1),
            x.repeat(3, 1, 1),
            x[:, :2] + x[:, 2:],
            x.sum(1, keepdim=True),
        )
        for result, native in zip(program(x), expected, strict=True):
            assert torch.equal(result, native)


def test_this_backend_runs_an_exported_model():
    import torch

    class Model(torch.nn.Module):
        def forward(self, x, y):
            return (
                tileops.tile(x, (2, 1, 3)),
                tileops.tile(x, (1, x.shape[0], 1)),
                tileops.expand(y, (x.shape[0], 5, y.shape[-1])),
                tileops.onnx.tile(x, (1, 2, 1)),
            )

    model, size = Model(), torch.export.Dim.DYNAMIC
    example = torch.randn(2, 3, 4), torch.randn(5, 3)
    proto = export(torch, model, *example, dynamic=({0: size, 1: size}, {1: size}))
    for library in ("numpy", "torch"):
        prepared = tileops.onnx.backend.for_library(library).prepare(proto)
        for n, m, k in ((2, 3, 3), (5, 2, 4), (7, 6, 1)):
            inputs = [torch.randn(n, m, 4), torch.randn(5, k)]
            expected = model(*inputs)
            if library == "numpy":
                inputs = [x.numpy() for x in inputs]
            for result, value in zip(prepared.run(inputs), expected, strict=True):
                assert type(result) is type(inputs[0])
                assert result.shape == value.shape
                assert np.asarray(result).tobytes() == value.contiguous().numpy().tobytes()


def test_the_example_exports_and_compares(capsys):
    import exported

    exported.main()
    assert capsys.readouterr().out.splitlines()[-1] == "Add Concat Expand Shape Tile"
