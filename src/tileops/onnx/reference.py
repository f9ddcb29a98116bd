"""Tile and Expand for ONNX's reference evaluator: strict, and bit for bit."""

from typing import Any, ClassVar

from onnx.reference.op_run import OpRun

from tileops.errors import TileOpsError
from tileops.execute.array_api import Executor
from tileops.execute.carrying import executor_for, to_host
from tileops.onnx._nodes import run_node

__all__ = ["ops"]


def ops(library: str = "numpy") -> list[type[OpRun]]:
    """Return implementations of Tile and Expand for ``onnx.reference.ReferenceEvaluator``.

    The evaluator's own pad repeats, let negative counts pass on empty tensors and
    multiply by ones, which changes NaN payloads and fails for strings. These follow the
    version of the model's opset.

    Parameters
    ----------
    library : str, default "numpy"
        Where the two operators run: a name that `tileops.onnx.backend.for_library`
        takes. All else runs on NumPy, and values are carried between the two.

    Returns
    -------
    list of type
        Two classes, for the evaluator's ``new_ops=``.

    Raises
    ------
    UnsupportedError
        If there is no such library.
    TileOpsError
        By the evaluator's ``run``: what the operators refuse, with the name of the node.
        Inside a subgraph the evaluator wraps those that are TypeErrors.

    See Also
    --------
    tileops.onnx.backend.for_library : Models of Tile and Expand alone.

    Notes
    -----
    The evaluator does not pass them on to the functions of a model, in which its own run:
    inline these first, with ``onnx.inliner.inline_local_functions(model, True)``.

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
    own = {"__module__": __name__, "executor": executor}
    return [type(name, (_RunOnLibrary,), own) for name in ("Tile", "Expand")]


class _RunOnLibrary(OpRun):
    """An operator whose name is the class's, in the version of the model's opset."""

    op_domain = ""
    executor: ClassVar[Executor]

    def _run(self, *inputs: Any) -> tuple[Any]:
        opset = self.run_params["opsets"][self.op_domain]
        result = run_node(self.onnx_node, opset, list(inputs), self.executor)
        return (to_host(self.op_type, result),)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run; what the operator refuses stays the error that says so."""
        try:
            return super().run(*args, **kwargs)  # type: ignore[no-untyped-call]
        except TypeError as error:
            if isinstance(error.__cause__, TileOpsError):
                raise error.__cause__ from None
            raise
