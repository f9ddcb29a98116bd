"""ONNX's backend interface: models of Tile and Expand, run on the arrays of one library."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import onnx
from onnx.backend.base import Backend, BackendRep

from tileops import execute
from tileops._rules import TILE, known
from tileops._run import check_options, run
from tileops._texts import describe, show, type_name
from tileops.errors import DTypeError, ShapeError, TileOpsError, UnsupportedError
from tileops.execute.array_api import Executor
from tileops.onnx._carrying import check_plain, executor_for, to_host, to_library
from tileops.onnx._checks import (
    INLINE,
    check_graph,
    check_model,
    check_opset,
    check_single,
    opset_of,
    writing_out,
)
from tileops.onnx._models import dims_of, dtype_of, read_tensor
from tileops.onnx._nodes import check_node, run_node
from tileops.onnx._schemas import VERSIONS
from tileops.onnx._types import check_types

__all__ = ["for_library"]


def for_library(name: str) -> "type[_LibraryBackend]":
    """Return ONNX's backend interface for the arrays of a library.

    The class runs models of Tile and Expand nodes, in every version, and of the nodes
    that feed them: Constant, Identity, Shape and Concat. It has the methods of
    ``onnx.backend.base.Backend``: ``prepare``, ``run_model``, ``run_node``,
    ``supports_device`` and ``is_compatible``. For models that you do not trust, the
    first three take ``max_bytes=``, the most bytes that one node may write (the ``run`` of
    what ``prepare`` returns does not). A model of n nodes can still hold n times as much.

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
        If there is no such library. By ``prepare``: if there is no such device; if a node is
        of another kind, which the message names; if the opset is newer than the installed
        onnx, or older than an operator; if the model has functions, no opset or several, an
        ir_version below 3, an input that is no tensor, or an output twice; if a tensor is
        sparse, or its data lie outside of the model, from where they are never read; if the
        model has more than 2 GiB. Most malformed models are refused by ``onnx.checker``, with
        a ValidationError.
    ShapeError, DTypeError
        By ``run``: if an input is missing, is no array, or does not have the shape or type that
        the model declares, or if the library does not have that type. By ``prepare``: if an
        argument is not of its type, such as a path in place of a model; if an initializer for
        an input does not have the declared shape or type; if a node has a type that its opset
        lacks; if a value is declared with another type than it has.
    TileOpsError
        By ``run``: if an operator refuses its inputs; the message names the node.

    See Also
    --------
    tileops.onnx.reference.ops : Run whole models on ONNX's reference evaluator.

    Notes
    -----
    Types are checked before anything runs, except those of a Tile-1's counts; shapes and
    counts are checked when a node runs. ``run_node`` checks the types of a Tile and an
    Expand, and takes any type for the nodes that feed them. The declared shapes of
    outputs are not compared with the shapes of the results, and sizes for which an input
    declares the same symbol are not compared with each other.

    A device is named as in ONNX, "CPU", "CUDA" or "CUDA:1"; the default is the library's
    default device. Inputs are a list, or a dict by name, of arrays of NumPy or of the
    library. The outputs are arrays of the library if any input is, otherwise NumPy arrays.
    They share no memory with the inputs, the model or each other. Nodes other than Tile,
    Expand and Identity run in NumPy, so that a gradient ends at a Concat.

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
    return _backend_of(executor_for(name))


@cache
def _backend_of(executor: Executor) -> "type[_LibraryBackend]":
    return type(f"{executor.library}_backend", (_LibraryBackend,), {"executor": executor})


class _LibraryBackend(Backend):
    """The backend interface, for the library whose executor a subclass sets."""

    executor: ClassVar[Executor]

    @classmethod
    def is_compatible(cls, model: Any, device: str | None = None, **_kwargs: Any) -> bool:
        """Whether `prepare` accepts a model."""
        try:
            cls.prepare(model, device)
        except (TileOpsError, onnx.checker.ValidationError):
            return False
        return True

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the library has this device here, such as "CPU", "CUDA" or "CUDA:1"."""
        try:
            return cls.executor.find_device(device) is not None
        except Exception:  # noqa: BLE001 (a missing driver raises errors of many types)
            return False

    @classmethod
    def prepare(  # type: ignore[override]
        cls, model: Any, device: str | None = None, *, max_bytes: int | None = None
    ) -> BackendRep:
        """Check a model and read its constants.

        Parameters
        ----------
        model : onnx.ModelProto
            A model of the nodes that `for_library` names.
        device : str, optional
            Such as "CPU" or "CUDA:1"; the library's default device if omitted.
        max_bytes : int, optional
            The most bytes that each node, and each output that is copied, may write.

        Returns
        -------
        BackendRep
            Its ``run(inputs)`` runs the model, and returns a tuple of arrays.

        Raises
        ------
        UnsupportedError, ShapeError, DTypeError
            Where `for_library` says "By ``prepare``".
        onnx.checker.ValidationError
            If the model is malformed in another way.
        """
        device = cls._device(device)
        check_options("ONNX backend", max_bytes=max_bytes)
        opset = opset_of(model)
        graph = model.graph
        if model.functions:
            raise UnsupportedError(f"the model has functions; inline them by {INLINE}")
        check_graph(graph)
        for value in graph.input:
            _check_is_tensor(value)
        for node in graph.node:
            check_node(node, opset)
        check_model(model)
        constants = {
            tensor.name: read_tensor(f"initializer {tensor.name!r}", tensor)
            for tensor in graph.initializer
        }
        inputs = {value.name: value.type.tensor_type for value in graph.input}
        for name in set(inputs) & set(constants):
            _check_input(name, constants[name], inputs[name])
        check_types(graph, opset)
        outputs = [value.name for value in graph.output]
        if len(set(outputs)) < len(outputs):
            raise UnsupportedError(
                "the graph lists an output twice; list it once, or a copy by Identity"
            )
        nodes = []
        for node in graph.node:
            if node.op_type == "Constant":
                constants[node.output[0]] = run_node(node, opset, [], cls.executor)
            else:
                nodes.append(node)
        nodes, inputs = deepcopy((nodes, inputs))  # the caller may change the model
        return _Prepared(nodes, inputs, outputs, constants, opset, cls.executor, device, max_bytes)

    @classmethod
    def run_model(  # type: ignore[override]
        cls,
        model: Any,
        inputs: Any,
        device: str | None = None,
        *,
        max_bytes: int | None = None,
    ) -> tuple[Any, ...]:
        """Prepare a model and run it once.

        Parameters
        ----------
        model, device, max_bytes
            As in `prepare`.
        inputs : list of array, or dict of str to array
            Arrays of NumPy or of the library, in the order of the model's inputs or by name.

        Returns
        -------
        tuple of array
            The outputs: arrays of the library if any input is, otherwise NumPy arrays.

        Raises
        ------
        TileOpsError
            Where `for_library` says "By ``prepare``" or "By ``run``".
        onnx.checker.ValidationError
            If the model is malformed in another way.
        """
        return cls.prepare(model, device, max_bytes=max_bytes).run(inputs)

    @classmethod
    def run_node(  # type: ignore[override]
        cls,
        node: Any,
        inputs: Any,
        device: str | None = None,
        outputs_info: Any = None,  # noqa: ARG003 (part of the interface)
        *,
        opset_version: int | None = None,
        max_bytes: int | None = None,
    ) -> tuple[Any, ...]:
        """Run a single node.

        Parameters
        ----------
        node : onnx.NodeProto
            A Tile, Expand, Constant, Identity, Shape or Concat.
        inputs, device, max_bytes
            As in `run_model`; by name, the names are those in the node.
        outputs_info
            Not used; ONNX's interface has it.
        opset_version : int, optional
            The opset whose version of the operator is run; the installed onnx's latest if omitted.

        Returns
        -------
        tuple of array
            The output: an array of the library if any input is, otherwise a NumPy array.

        Raises
        ------
        TileOpsError
            Where `for_library` says so, and if `opset_version` is not an int.
        onnx.checker.ValidationError
            If the node is malformed in another way.
        """
        device = cls._device(device)
        check_options("ONNX backend", max_bytes=max_bytes)
        opset = onnx.defs.onnx_opset_version() if opset_version is None else opset_version
        if not isinstance(node, onnx.NodeProto):
            raise DTypeError(f"the node is {type_name(type(node))}; pass an onnx.NodeProto")
        if not isinstance(opset, int) or isinstance(opset, bool):
            raise DTypeError(f"opset_version is {describe(opset)}; pass an int")
        check_opset("opset_version", opset)
        check_single(node)
        check_node(node, opset)
        with writing_out("node"):
            super().run_node(node, inputs, opset_version=opset)  # type: ignore[arg-type]
        alone = deepcopy(node)
        if not isinstance(inputs, Mapping) and len(set(node.input)) < len(node.input):
            # Two inputs have the same name, but may have different values.
            alone.input[:] = [f"{name} (input {i})" for i, name in enumerate(node.input)]
        undeclared = dict.fromkeys(alone.input, onnx.TypeProto.Tensor())
        prepared = _Prepared(
            [alone], undeclared, list(node.output), {}, opset, cls.executor, device, max_bytes
        )
        return prepared.run(inputs)

    @classmethod
    def _device(cls, device: str | None) -> str | None:
        """Name a device as the library's executor does; None for the library's default."""
        if device is None:
            return None
        found = cls.executor.find_device(device)
        if found is not None:
            return found
        raise UnsupportedError(
            f"the device is {describe(device).removeprefix('str ')}; {cls.executor.library} has "
            f"{', '.join(cls.executor.devices())} here"
        )


@dataclass(eq=False)
class _Prepared(BackendRep):
    """A checked graph, whose nodes run in the order in which it lists them."""

    nodes: Sequence[Any]
    inputs: Mapping[str, Any]
    outputs: Sequence[str]
    constants: Mapping[str, Any]
    opset: int
    executor: Executor
    device: str | None
    max_bytes: int | None

    def __post_init__(self) -> None:
        made = {node.output[0] for node in self.nodes if node.op_type in VERSIONS}
        # The operators that copy those outputs which no Tile or Expand makes.
        self._copies = {
            name: TILE.derive(f"output {name!r}", name="inputs")
            for name in self.outputs
            if name not in made
        }

    def run(self, inputs: Any) -> tuple[Any, ...]:  # type: ignore[override]
        """Run the graph on arrays, in the order of its inputs or by name."""
        given = self._bind(inputs)
        is_of_library = any(
            execute.find_executor(value) is self.executor for value in given.values()
        )
        values = {**self.constants, **given}
        last_use = {name: i for i, node in enumerate(self.nodes) for name in node.input}
        last_use |= dict.fromkeys(self.outputs, -1)  # kept to the end
        for i, node in enumerate(self.nodes):
            arguments = [values[name] for name in node.input]
            values[node.output[0]] = run_node(
                node, self.opset, arguments, self.executor, self.device, self.max_bytes
            )
            for name in set(node.input):
                if last_use[name] == i:
                    del values[name]
        results = []
        for name in self.outputs:
            value, owner = values[name], f"output {name!r}"
            if name in self._copies:
                value = run(self._copies[name], value, (), max_bytes=self.max_bytes)
            if is_of_library:
                results.append(to_library(owner, value, self.executor, self.device))
            else:
                results.append(to_host(owner, value))
        return tuple(results)

    def _bind(self, inputs: Any) -> dict[str, Any]:
        """Assign names to the given inputs, and refuse inputs that the graph does not take."""
        required = [name for name in self.inputs if name not in self.constants]
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        elif isinstance(inputs, list | tuple):
            names = list(self.inputs) if len(inputs) == len(self.inputs) else required
            if len(inputs) != len(names):
                raise ShapeError(f"the number of inputs is {len(inputs)}; {_wanted(required)}")
            given = dict(zip(names, inputs, strict=True))
        else:
            raise DTypeError(
                f"the inputs are {type_name(type(inputs))}; pass a list of arrays, or a dict by "
                f"name"
            )
        if not set(required) <= set(given) <= set(self.inputs):
            found = (name if isinstance(name, str) else describe(name) for name in given)
            named = ", ".join(found) or "none"
            raise ShapeError(f"the inputs are named {named}; {_wanted(required)}")
        return {name: self._array(name, value) for name, value in given.items()}

    def _array(self, name: str, value: Any) -> Any:
        """Return the array that an input is or stands for, or refuse the input."""
        taken = {"numpy": execute.executor_named("numpy"), self.executor.library: self.executor}
        executor = execute.find_executor(value)
        if executor is None or executor not in taken.values():
            raise DTypeError(
                f"input {name!r} is {type_name(type(value))}; pass an array of {' or '.join(taken)}"
            )
        check_plain(f"input {name!r} is", value)
        array = executor.array(value)
        _check_input(name, array, self.inputs[name])
        return array


def _wanted(required: list[str]) -> str:
    return f"pass {len(required)}: {', '.join(required) or 'none'}"


def _check_is_tensor(value: Any) -> None:
    kind = value.type.WhichOneof("value") or "nothing"
    if not value.type.tensor_type.elem_type:  # only tensors have an element type
        found = "a tensor of no type" if kind == "tensor_type" else kind
        raise UnsupportedError(
            f"input {value.name!r} is declared as {found}, not as a tensor of some type; only "
            f"tensors are run"
        )


def _check_input(name: str, value: Any, declared: Any) -> None:
    """Refuse an array that does not have the type or the shape that a model declares."""
    executor = execute.executor_of(f"input {name!r}", value)
    expected = dtype_of(declared)
    if expected is not None and executor.dtype(value) != expected:
        raise DTypeError(
            f"input {name!r} has dtype {executor.dtype(value)}; the model declares {expected}; "
            f"convert it, or pass a NumPy array of that dtype"
        )
    dims = dims_of(declared)
    if dims is not None:
        shape = executor.shape(f"input {name!r}", value)
        if len(shape) != len(dims) or any(
            known(dim) and dim != n for dim, n in zip(dims, shape, strict=True)
        ):
            raise ShapeError(
                f"input {name!r} has shape {shape}; the model declares {show(dims)}; pass an "
                f"array of that shape"
            )
