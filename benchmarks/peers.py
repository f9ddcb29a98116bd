"""Other libraries that repeat arrays on a CPU: einops, onnxruntime and OpenVINO."""

import functools

import einops
import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import helper
from openvino import opset13

from benchmarks.libraries import THREADS, Sides, to_torch, used_memory
from benchmarks.timing import Call
from benchmarks.workloads import Workload


def einops_pattern(workload: Workload) -> tuple[str, dict[str, int]]:
    """Return a workload as a pattern of einops.repeat, with its lengths.

    >>> from benchmarks.workloads import WORKLOADS
    >>> einops_pattern(WORKLOADS[-1])
    ('n0 n1 -> n0 (r1 n1)', {'r1': 5})
    """
    lengths = {f"r{axis}": count for axis, count in enumerate(workload.repeats) if count != 1}
    before = " ".join(f"n{axis}" for axis in range(len(workload.shape)))
    after = " ".join(
        f"(r{axis} n{axis})" if f"r{axis}" in lengths else f"n{axis}"
        for axis in range(len(workload.shape))
    )
    return f"{before} -> {after}", lengths


def einops_numpy(workload: Workload, x: np.ndarray) -> Sides:
    """Repeat with einops on NumPy, and copy the result if it is a view."""
    pattern, lengths = einops_pattern(workload)
    return {"einops, NumPy": lambda: np.ascontiguousarray(einops.repeat(x, pattern, **lengths))}


def einops_torch(workload: Workload, x: np.ndarray) -> Sides:
    """Repeat with einops on PyTorch, and copy the result if it is a view."""
    pattern, lengths = einops_pattern(workload)
    tensor = to_torch(x)
    return {"einops, PyTorch": lambda: einops.repeat(tensor, pattern, **lengths).contiguous()}


def onnx_model(workload: Workload, dtype: np.dtype) -> onnx.ModelProto:
    """Make a model of one node, Tile or Expand, with constant counts."""
    counts = workload.repeats if workload.operator == "tile" else workload.target
    element = helper.np_dtype_to_tensor_dtype(dtype)
    graph = helper.make_graph(
        [helper.make_node(workload.operator.title(), ["x", "counts"], ["y"])],
        workload.name,
        [helper.make_tensor_value_info("x", element, workload.shape)],
        [helper.make_tensor_value_info("y", element, workload.target)],
        [onnx.numpy_helper.from_array(np.array(counts, np.int64), "counts")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def onnxruntime_session(
    model: onnx.ModelProto, *, keeps_memory: bool
) -> onnxruntime.InferenceSession:
    """Load a model with two threads that sleep as soon as they have nothing to do.

    By default they spin for a while after a call, which would slow down whatever runs next.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_cpu_mem_arena = keeps_memory
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def without_bfloat16(x: np.ndarray) -> np.ndarray:
    """View bfloat16 as 16-bit integers, because onnxruntime has no kernels for bfloat16."""
    return x.view(np.int16) if x.dtype.name == "bfloat16" else x


def onnxruntime_fresh(workload: Workload, x: np.ndarray) -> Sides:
    """Run in onnxruntime without its memory arena, so that each result is new memory."""
    x = without_bfloat16(x)
    session = onnxruntime_session(onnx_model(workload, x.dtype), keeps_memory=False)
    return {"onnxruntime": lambda: session.run(None, {"x": x})[0]}


def onnxruntime_reused(workload: Workload, x: np.ndarray) -> Sides:
    """Run in onnxruntime with its arena, which is the default, and also into a bound buffer."""
    x = without_bfloat16(x)
    session = onnxruntime_session(onnx_model(workload, x.dtype), keeps_memory=True)
    buffer = used_memory(workload).view(x.dtype)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, x.dtype, x.shape, x.ctypes.data)
    binding.bind_output("y", "cpu", 0, buffer.dtype, buffer.shape, buffer.ctypes.data)

    def run_bound() -> np.ndarray:
        session.run_with_iobinding(binding)
        return buffer

    return {
        "onnxruntime, arena": lambda: session.run(None, {"x": x})[0],
        "onnxruntime, bound": run_bound,
    }


@functools.cache
def openvino_core() -> openvino.Core:
    """Start OpenVINO, only once."""
    return openvino.Core()


def openvino_call(workload: Workload, x: np.ndarray, *, keeps_memory: bool) -> Call:
    """Compile a model of one node, Tile or Broadcast, with constant counts."""
    element = openvino.Type.bf16 if x.dtype.name == "bfloat16" else openvino.Type(x.dtype)
    parameter = opset13.parameter(list(workload.shape), element)
    counts = workload.repeats if workload.operator == "tile" else workload.target
    operation = opset13.tile if workload.operator == "tile" else opset13.broadcast
    node = operation(parameter, opset13.constant(np.array(counts, np.int64)))
    model = openvino.Model([node], [parameter])
    compiled = openvino_core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": THREADS})
    source = openvino.Tensor(element, openvino.Shape(workload.shape))
    source.data.view(np.uint8)[...] = x.view(np.uint8)
    request = compiled.create_infer_request()
    return lambda: request.infer({0: source}, share_outputs=keeps_memory)[0]


def openvino_fresh(workload: Workload, x: np.ndarray) -> Sides:
    """Run in OpenVINO, and copy the result out of its memory."""
    return {"OpenVINO": openvino_call(workload, x, keeps_memory=False)}


def openvino_reused(workload: Workload, x: np.ndarray) -> Sides:
    """Run in OpenVINO, and leave the result where the next call overwrites it."""
    return {"OpenVINO": openvino_call(workload, x, keeps_memory=True)}
