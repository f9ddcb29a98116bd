"""Common repetitions in models, a few lines each, written once for every array library.

The functions take arrays of any library, and name none. Where a result is reshaped, they use
`tile`, whose copy is the fast one; if they used `expand`, the reshape of its view would make the
copy. They are meant to be imported or copied; running this file does nothing. Under
``torch.compile``, TorchDynamo warns that ``array_namespace`` has a cache, and traces through it;
the result is the same.
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
    wide = tileops.tile(x[:, :, None, ...], (groups, 1, 1))
    return array_namespace(x).reshape(wide, (batch, heads * groups, length, width))


def attention(q: Any, k: Any, v: Any, softmax: Callable[[Any], Any]) -> Any:
    """Compute attention with fewer heads of keys and values than of queries.

    `q` is (batch, heads, length, width). The number of heads of `k` and `v` is that of `q` or a
    divisor of it. `softmax` is the library's own function, applied along the last axis.
    """
    groups = q.shape[1] // k.shape[1]
    keys = array_namespace(k).matrix_transpose(repeat_kv(k, groups))
    scores = q @ keys * q.shape[-1] ** -0.5
    return softmax(scores) @ repeat_kv(v, groups)


def to_beams(states: Any, beams: int) -> Any:
    """Repeat each state of an encoder for the beams of a search.

    From (batch, length, width) to (batch * beams, length, width), with a state's beams adjacent.
    """
    batch, length, width = states.shape
    wide = tileops.tile(states[:, None, ...], (beams, 1, 1))
    return array_namespace(states).reshape(wide, (batch * beams, length, width))


def class_tokens(token: Any, batch: int) -> Any:
    """Repeat the class token of a vision transformer, (1, 1, width), for each image of a batch."""
    return tileops.expand(token, (batch, 1, 1))


def positional_grid(rows: Any, columns: Any) -> tuple[Any, Any]:
    """Spread embeddings of rows and of columns over a grid.

    From (height, a) and (width, b) to (height, width, a) and (height, width, b), to be joined
    along the last axis.
    """
    height, width = rows.shape[0], columns.shape[0]
    return (
        tileops.expand(rows[:, None, :], (height, width, rows.shape[1])),
        tileops.expand(columns[None, ...], (height, width, columns.shape[1])),
    )


def mosaic(image: Any, down: int, across: int) -> Any:
    """Repeat an image (height, width, channels) like tiles on a wall."""
    return tileops.tile(image, (down, across, 1))
