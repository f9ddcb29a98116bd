"""ONNX's backend interface: models of Tile and Expand, run on the arrays of one library."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.base import Backend, BackendRep
from onnx.external_data_helper import uses_external_data

from tileops import execute
from tileops._rules import TILE
from tileops._run import run
from tileops.errors import (
    DTypeError,
    OutputTooLargeError,
    ShapeError,
    TileOpsError,
    UnsupportedError,
)
from tileops.execute.array_api import Executor
from tileops.onnx._nodes import library, run_node, to_host
from tileops.onnx._schemas import VERSIONS

__all__ = ["for_library"]


@cache
def for_library(name: str) -> type[Backend]:
    """Give ONNX's backend interface over the arrays of a library.

    The class runs models of Tile and Expand nodes, in every version, and of the nodes
    that feed them: Constant, Identity, Shape and Concat. It has the methods of
    ``onnx.backend.base.Backend``: ``prepare``, ``run_model``, ``run_node``,
    ``supports_device`` and ``is_compatible``. Each of the first three takes
    ``max_bytes=``, the most bytes that one node may write, for models that you do not
    trust.

    Parameters
    ----------
    name : str
        "numpy", "torch", "jax", "cupy", "dask", or the name of a library of the Array
        API standard, such as "array_api_strict". It is imported.

    Returns
    -------
    type
        A subclass of ``onnx.backend.base.Backend``.

    Raises
    ------
    UnsupportedError
        If there is no such library. By ``prepare``: if a node is of another kind, which
        the text names; if a tensor is sparse or its data lie outside of the model,
        which is never followed.
    DTypeError
        By ``run``: if an input is not of the type that the model declares, or if the
        library does not have that type.
    TileOpsError
        By ``run``: what the operators refuse, with the name of the node.

    See Also
    --------
    tileops.onnx.reference.ops : Whole models, on ONNX's reference evaluator.

    Notes
    -----
    A device is named as in ONNX, "CPU", "CUDA" or "CUDA:1"; without one it is the library's
    default. Inputs are a list, or a dict by name, of arrays of NumPy or of the library. The
    outputs are arrays of the library if an input was, else NumPy arrays. They share
    no memory with the inputs, the model or each other.

    Examples
    --------
    >>> import numpy as np
    >>> import onnx
    >>> import tileops
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 13]>
    ...     two_rows (float[n] x) => (float[2, n] y) {
    ...         shape = Constant <value_ints = [2, 1]> ()
    ...         y = Expand (x, shape)
    ...     }
    ... ''')
    >>> backend = tileops.onnx.backend.for_library("numpy")
    >>> backend.run_model(model, [np.array([1, 2], np.float32)])
    (array([[1., 2.],
           [1., 2.]], dtype=float32),)
    """
    return type(f"{name}_backend", (_LibraryBackend,), {"executor": library(name)})


class _LibraryBackend(Backend):
    """The interface, for the library whose executor a subclass names."""

    executor: ClassVar[Executor]

    @classmethod
    def is_compatible(cls, model: Any, device: str | None = None, **_kwargs: Any) -> bool:
        """Whether every node and tensor of a model is supported."""
        try:
            _check_supported(model)
        except UnsupportedError:
            return False
        return device is None or cls.supports_device(device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the library has a device here, such as "CPU", "CUDA" or "CUDA:1"."""
        return cls.executor.has_device(device.lower())

    @classmethod
    def prepare(  # type: ignore[override]
        cls, model: Any, device: str | None = None, *, max_bytes: int | None = None
    ) -> BackendRep:
        """Check a model and read its constants."""
        device = cls._device(device)
        _check_supported(model)
        onnx.checker.check_model(model)
        graph = model.graph
        return _Prepared(
            nodes=graph.node,
            inputs={value.name: value.type for value in graph.input},
            outputs=[value.name for value in graph.output],
            constants={tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer},
            opset=_opset(model),
            executor=cls.executor,
            device=device,
            max_bytes=max_bytes,
        )

    @classmethod
    def run_model(  # type: ignore[override]
        cls,
        model: Any,
        inputs: Any,
        device: str | None = None,
        *,
        max_bytes: int | None = None,
    ) -> tuple[Any, ...]:
        """Prepare a model and run it once."""
        return tuple(cls.prepare(model, device, max_bytes=max_bytes).run(inputs))

    @classmethod
    def run_node(  # type: ignore[override]
        cls,
        node: Any,
        inputs: Any,
        device: str | None = None,
        outputs_info: Any = None,  # noqa: ARG003 (the interface has it)
        *,
        opset_version: int | None = None,
        max_bytes: int | None = None,
    ) -> tuple[Any, ...]:
        """Run a single node, by the latest opset if none is given."""
        device = cls._device(device)
        opset = onnx.defs.onnx_opset_version() if opset_version is None else opset_version
        _check_node(node, opset)
        super().run_node(node, inputs, opset_version=opset)  # type: ignore[arg-type]
        prepared = _Prepared(
            nodes=[node],
            inputs=dict.fromkeys(node.input),
            outputs=list(node.output),
            constants={},
            opset=opset,
            executor=cls.executor,
            device=device,
            max_bytes=max_bytes,
        )
        return prepared.run(inputs)

    @classmethod
    def _device(cls, device: str | None) -> str | None:
        """Name a device as the library's executor does; None for the library's default."""
        if device is None or cls.supports_device(device):
            return device and device.lower()
        raise UnsupportedError(
            f"device is {device!r}; this library has {', '.join(cls.executor.devices())} here"
        )


class _Prepared(BackendRep):
    """A checked graph, whose nodes run in their order."""

    def __init__(
        self,
        nodes: Sequence[Any],
        inputs: Mapping[str, Any],
        outputs: Sequence[str],
        constants: Mapping[str, Any],
        opset: int,
        executor: Executor,
        device: str | None,
        max_bytes: int | None,
    ) -> None:
        self.executor, self.device = executor, device
        self.opset, self.max_bytes = opset, max_bytes
        self._nodes, self._inputs, self._outputs = nodes, inputs, outputs
        self._constants = constants
        last_use = {name: i for i, node in enumerate(nodes) for name in node.input}
        self._unused_after: list[list[str]] = [[] for _ in nodes]
        for name, i in last_use.items():
            if name not in outputs:
                self._unused_after[i].append(name)

    def run(self, inputs: Any, **_kwargs: Any) -> tuple[Any, ...]:
        """Run the graph on arrays, in the order of its inputs or by name."""
        given = self._bind(inputs)
        values = {**self._constants, **given}
        own: set[str] = set()
        for node, unused in zip(self._nodes, self._unused_after, strict=True):
            values[node.output[0]] = self._run_node(node, [values[name] for name in node.input])
            if node.op_type in VERSIONS:
                own.add(node.output[0])
            for name in unused:
                del values[name]
        is_of_library = any(execute.find(value) is self.executor for value in given.values())
        results = []
        for name in self._outputs:
            value = values[name] if name in own else run(TILE, values[name], ())
            own.discard(name)
            results.append(value if is_of_library else to_host(value))
        return tuple(results)

    def _run_node(self, node: Any, inputs: list[Any]) -> Any:
        try:
            match node.op_type:
                case "Constant":
                    return _constant(node)
                case "Identity":
                    return inputs[0]
                case "Shape":
                    return _shape(node, inputs[0])
                case "Concat":
                    return _concat(node, inputs, self.max_bytes)
                case _:
                    how = self.executor, self.device, self.max_bytes
                    return run_node(node.op_type, self.opset, inputs, *how)
        except TileOpsError as error:
            raise type(error)(f"{_name(node)}: {error}") from error

    def _bind(self, inputs: Any) -> dict[str, Any]:
        required = [name for name in self._inputs if name not in self._constants]
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        elif isinstance(inputs, list | tuple):
            names = list(self._inputs) if len(inputs) == len(self._inputs) else required
            if len(inputs) != len(names):
                raise ShapeError(
                    f"there are {len(inputs)} inputs; the model takes {len(required)}: "
                    f"{', '.join(required)}"
                )
            given = dict(zip(names, inputs, strict=True))
        else:
            raise DTypeError(
                f"the inputs are {type(inputs).__name__}; pass a list of arrays, or a dict by name"
            )
        if not set(required) <= set(given) <= set(self._inputs):
            raise ShapeError(
                f"the inputs are named {', '.join(map(str, given)) or '(none)'}; the model takes "
                f"{', '.join(required) or '(none)'}"
            )
        for name, value in given.items():
            if execute.find(value) not in {self.executor, execute.library("numpy")}:
                raise DTypeError(
                    f"input {name!r} is {type(value).__module__}.{type(value).__name__}; pass an "
                    f"array of NumPy or of the library that runs the model"
                )
            if self._inputs[name] is not None:
                _check_input(name, value, self._inputs[name].tensor_type)
        return given


def _check_input(name: str, value: Any, tensor: Any) -> None:
    expected = helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    expected = "string" if tensor.elem_type == onnx.TensorProto.STRING else expected
    found = execute.executor_of(f"input {name!r}", value).dtype(value)
    if found != expected:
        raise DTypeError(f"input {name!r} has dtype {found}; the model declares {expected}")
    if not tensor.HasField("shape"):
        return
    shape = tuple(value.shape)
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    if len(shape) != len(sizes) or any(
        wanted not in {None, size} for wanted, size in zip(sizes, shape, strict=True)
    ):
        declared_shape = ", ".join("?" if size is None else str(size) for size in sizes)
        raise ShapeError(f"input {name!r} has shape {shape}; the model declares ({declared_shape})")


def _check_supported(model: Any) -> None:
    """Name the first thing in a model that is not run here, before anything is read."""
    graph = model.graph
    for value in graph.input:
        if value.type.WhichOneof("value") != "tensor_type":
            raise UnsupportedError(
                f"input {value.name!r} is a {value.type.WhichOneof('value')}; only tensors are run"
            )
    if graph.sparse_initializer:
        name = graph.sparse_initializer[0].values.name
        raise UnsupportedError(f"initializer {name!r} is sparse; only dense tensors are run")
    for tensor in graph.initializer:
        _check_data(f"initializer {tensor.name!r}", tensor)
    opset = _opset(model)
    for node in graph.node:
        _check_node(node, opset)


def _check_node(node: Any, opset: int) -> None:
    if node.domain not in _DEFAULT_DOMAIN or node.op_type not in _SUPPORTED:
        operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        raise UnsupportedError(
            f"{_name(node)}: {operator} in opset {opset} is not run here; this backend runs "
            f"{', '.join(_SUPPORTED)}; tileops.onnx.reference runs whole models"
        )
    for attribute in node.attribute:
        if attribute.HasField("sparse_tensor"):
            raise UnsupportedError(
                f"{_name(node)}: its value is sparse; only dense tensors are run"
            )
        if attribute.HasField("t"):
            _check_data(_name(node), attribute.t)


def _check_data(owner: str, tensor: Any) -> None:
    if uses_external_data(tensor):
        raise UnsupportedError(
            f"{owner}: its data lie outside of the model, and are not followed; load them with "
            f"onnx.load_external_data_for_model first, if you trust the model"
        )


_DEFAULT_DOMAIN = ("", "ai.onnx")

_SUPPORTED = (*VERSIONS, "Constant", "Identity", "Shape", "Concat")
"""Tile and Expand, and the nodes that feed them; those run on NumPy, where counts are read."""


def _opset(model: Any) -> int:
    versions = [o.version for o in model.opset_import if o.domain in _DEFAULT_DOMAIN]
    if not versions:
        raise UnsupportedError("the model imports no opset of ONNX's own domain")
    return int(versions[0])


def _name(node: Any) -> str:
    return f"node {node.name or '->'.join(node.output)!r} ({node.op_type})"


def _constant(node: Any) -> Any:
    (attribute,) = node.attribute
    value = helper.get_attribute_value(attribute)
    match attribute.name:
        case "value":
            return numpy_helper.to_array(value)
        case "value_int" | "value_ints":
            return np.array(value, np.int64)
        case "value_float" | "value_floats":
            return np.array(value, np.float32)
        case _:  # value_string, value_strings
            return np.vectorize(bytes.decode, otypes=[object])(np.array(value, object))


def _shape(node: Any, value: Any) -> Any:
    ends = {attribute.name: attribute.i for attribute in node.attribute}
    return np.array(value.shape[ends.get("start") : ends.get("end")], np.int64)


def _concat(node: Any, inputs: list[Any], max_bytes: int | None) -> Any:
    parts = list(map(to_host, inputs))
    dtypes = sorted({str(part.dtype) for part in parts})
    if len(dtypes) > 1:
        raise DTypeError(f"the inputs have dtypes {', '.join(dtypes)}; they must be the same")
    nbytes = sum(part.nbytes for part in parts)
    if max_bytes is not None and nbytes > max_bytes:
        raise OutputTooLargeError(
            f"the result takes {nbytes} bytes, more than max_bytes={max_bytes}; raise max_bytes"
        )
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 1)
    try:
        return np.concatenate(parts, axis)
    except ValueError as error:
        shapes = ", ".join(str(part.shape) for part in parts)
        raise ShapeError(f"the inputs have shapes {shapes} on axis {axis}: {error}") from error
