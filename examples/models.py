"""What models repeat, a few lines each, from one source for every array library.

Arrays are of any library. Nothing here names one. The functions are to be imported or copied; a
run of this file does nothing. Under ``torch.compile`` TorchDynamo warns that ``array_namespace``
has a cache, and traces through it: the result is the same.
"""

from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace

import tileops


def repeat_kv(x: Any, groups: int) -> Any:
    """Give each of `groups` query heads the keys, or values, of the head that they share.

    From (batch, heads, length, width) to (batch, heads * groups, length, width).
    """
    batch, heads, length, width = x.shape
    wide = tileops.expand(x[:, :, None, ...], (batch, heads, groups, length, width))
    return array_namespace(x).reshape(wide, (batch, heads * groups, length, width))


def attention(q: Any, k: Any, v: Any, softmax: Callable[[Any], Any]) -> Any:
    """Attend, with fewer heads of keys and values than of queries.

    `q` is (batch, heads, length, width); `k` and `v` have as many heads or a divisor of them;
    `softmax` is the library's, along the last axis.
    """
    groups = q.shape[1] // k.shape[1]
    keys = array_namespace(k).matrix_transpose(repeat_kv(k, groups))
    scores = q @ keys * q.shape[-1] ** -0.5
    return softmax(scores) @ repeat_kv(v, groups)


def to_beams(states: Any, beams: int) -> Any:
    """Repeat each state of an encoder for the beams of a search.

    From (batch, length, width) to (batch * beams, length, width), a state's beams together.
    """
    batch, length, width = states.shape
    wide = tileops.expand(states[:, None, ...], (batch, beams, length, width))
    return array_namespace(states).reshape(wide, (batch * beams, length, width))


def class_tokens(token: Any, batch: int) -> Any:
    """Give each image of a batch the one class token, (1, 1, width), of a vision transformer."""
    return tileops.expand(token, (batch, 1, 1))


def positional_grid(rows: Any, columns: Any) -> tuple[Any, Any]:
    """Lay embeddings of rows and of columns over a grid.

    From (height, a) and (width, b) to (height, width, a) and (height, width, b), to be joined
    along the last axis.
    """
    height, width = rows.shape[0], columns.shape[0]
    return (
        tileops.expand(rows[:, None, :], (height, width, rows.shape[1])),
        tileops.expand(columns[None, ...], (height, width, columns.shape[1])),
    )


def mosaic(image: Any, down: int, across: int) -> Any:
    """Repeat an image (height, width, channels) as on a wall."""
    return tileops.tile(image, (down, across, 1))
