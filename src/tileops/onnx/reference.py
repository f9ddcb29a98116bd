"""Tile and Expand for ONNX's reference evaluator, strict and exact to the bit."""

from typing import Any, ClassVar

from onnx.reference.op_run import OpRun

from tileops.errors import TileOpsError
from tileops.execute.array_api import Executor
from tileops.onnx._carrying import check_gives_values, executor_for, to_host
from tileops.onnx._nodes import run_node

__all__ = ["ops"]


def ops(library: str = "numpy") -> list[type[OpRun]]:
    """Return implementations of Tile and Expand for ``onnx.reference.ReferenceEvaluator``.

    The evaluator's own implementations pad repeats, accept negative counts for empty
    tensors, and multiply by ones, which changes NaN payloads and fails for strings. Those
    returned here follow the version of the operator in the model's opset.

    Parameters
    ----------
    library : str, default "numpy"
        Where the two operators run: a name that `tileops.onnx.backend.for_library`
        takes. All other nodes run on NumPy, and values are carried between the two.

    Returns
    -------
    list of type
        Two classes, for the evaluator's ``new_ops=``.

    Raises
    ------
    UnsupportedError
        If there is no such library, or NumPy cannot read its arrays.
    TileOpsError
        By the evaluator's ``run``: if an operator refuses its inputs; the message names the
        node. Inside a subgraph the evaluator wraps those errors that are TypeErrors.

    See Also
    --------
    tileops.onnx.backend.for_library : Run models of Tile and Expand only.

    Notes
    -----
    Inside the functions of a model, the evaluator runs its own implementations. Inline the
    functions first, after ``import onnx.inliner``, with
    ``onnx.inliner.inline_local_functions(model, True)``.

    Examples
    --------
    >>> import numpy as np
    >>> import onnx
    >>> from onnx.reference import ReferenceEvaluator
    >>> import tileops
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 13]>
    ...     wall (float[h, w] x, int64[2] repeats) => (float[a, b] y) {
    ...         negative = Neg (x)
    ...         y = Tile (negative, repeats)
    ...     }
    ... ''')
    >>> evaluator = ReferenceEvaluator(model, new_ops=tileops.onnx.reference.ops())
    >>> evaluator.run(None, {"x": np.ones((1, 1), np.float32), "repeats": np.array([1, 2])})
    [array([[-1., -1.]], dtype=float32)]
    """
    executor = executor_for(library)
    check_gives_values(executor)
    own = {"__module__": __name__, "executor": executor}
    return [type(name, (_RunOnLibrary,), own) for name in ("Tile", "Expand")]


class _RunOnLibrary(OpRun):
    """The operator that a subclass is named after, in the version of the model's opset."""

    op_domain = ""
    executor: ClassVar[Executor]

    def _run(self, *inputs: Any) -> tuple[Any]:
        opset = self.run_params["opsets"][self.op_domain]
        result = run_node(self.onnx_node, opset, list(inputs), self.executor)
        return (to_host(self.op_type, result),)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator, and raise its own errors in place of the evaluator's TypeErrors."""
        try:
            return super().run(*args, **kwargs)  # type: ignore[no-untyped-call]
        except TypeError as error:
            if isinstance(error.__cause__, TileOpsError):
                raise error.__cause__ from None
            raise
