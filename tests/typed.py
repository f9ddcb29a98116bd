"""What type checkers must see: each ignore here would be one too many if its line passed."""

# ruff: noqa: B018

from typing import assert_type

import numpy as np
import numpy.typing as npt

import tileops

tileops.onnx.backend.for_library("numpy")
tileops.onnx.upgrade.upgrade
tileops.onnx.reference.ops()
tileops.tile(np.ones(3), 2, max_bytes=100).shape


def wall(x: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Give what is given: the class of an array is that of the result."""
    assert_type(tileops.expand_adjoint(x, 1), npt.NDArray[np.uint8])
    assert_type(tileops.directml.tile(x, (1, 1)), npt.NDArray[np.uint8])
    return tileops.tile(tileops.onnx.expand(x, (4, 6, 1)), 2)


tileops.tyle  # type: ignore[attr-defined]
tileops.RepeatError  # type: ignore[attr-defined]
tileops.onnx.tile13  # type: ignore[attr-defined]
tileops.tile(np.ones(3), 2, owt=None)  # type: ignore[call-arg]
