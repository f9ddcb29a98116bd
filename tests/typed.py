"""Errors that type checkers must find: they report each ignore comment that is not needed."""

# ruff: noqa: B018

import numpy as np
import onnx

import tileops

node, model = onnx.NodeProto(), onnx.ModelProto()
backend = tileops.onnx.backend.for_library("numpy")
backend.run_node(node, [], opset_version=13, max_bytes=5)
backend.prepare(model, max_bytes=5).run([])
tileops.onnx.upgrade.upgrade(model).graph
tileops.onnx.reference.ops()
tileops.tile(np.ones(3), 2, max_bytes=100).shape
# A result may have another rank than its input, and NumPy's types include the rank.
tileops.expand(np.ones(3), (2, 3)).shape[1]

tileops.onnx.upgrade.upgrade("model.onnx")  # type: ignore[arg-type]
tileops.tyle  # type: ignore[attr-defined]
tileops.RepeatError  # type: ignore[attr-defined]
tileops.onnx.tile13  # type: ignore[attr-defined]
tileops.tile(np.ones(3), 2, owt=None)  # type: ignore[call-arg]
