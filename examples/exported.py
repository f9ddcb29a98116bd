"""A PyTorch model with both operators, exported to ONNX and run by onnxruntime.

This needs PyTorch with onnxscript, and onnxruntime::

    python examples/exported.py
"""

import numpy as np
import onnx
import onnxruntime
import torch

import tileops


class PositionalGrid(torch.nn.Module):
    """Add learned rows and columns to images, and repeat the batch for two augmentations."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.row = torch.nn.Parameter(torch.randn(1, width, 1, 1))
        self.column = torch.nn.Parameter(torch.randn(1, width, 1, 1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """From (batch, width, rows, columns) to (2 * batch, width, rows, columns)."""
        batch, width, rows, columns = images.shape
        grid = tileops.expand(self.row, (batch, width, rows, 1))
        grid = grid + tileops.tile(self.column, (batch, 1, 1, columns))
        return tileops.tile(images + grid, (2, 1, 1, 1))


def export(model: torch.nn.Module, image: torch.Tensor) -> onnx.ModelProto:
    """Export a model of images for any number of images of any size."""
    dynamic = torch.export.Dim.DYNAMIC
    shapes = ({0: dynamic, 2: dynamic, 3: dynamic},)
    program = torch.onnx.export(
        model.eval(), (image,), dynamo=True, dynamic_shapes=shapes, verbose=False
    )
    proto: onnx.ModelProto = program.model_proto
    onnx.checker.check_model(proto, full_check=True)
    return proto


def main() -> None:
    """Export a model, and compare onnxruntime's results with PyTorch's for other sizes."""
    model = PositionalGrid(8)
    proto = export(model, torch.randn(2, 8, 3, 4))
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for shape in ((1, 8, 2, 5), (3, 8, 7, 2)):
        images = torch.randn(shape)
        expected = model(images).numpy(force=True)
        (result,) = session.run(None, {session.get_inputs()[0].name: images.numpy()})
        assert np.array_equal(result, expected)  # noqa: S101 (an example shows what holds)
        print(shape, "->", result.shape)
    print(*sorted({node.op_type for node in proto.graph.node}))


if __name__ == "__main__":
    main()
