"""Copies in the memory of the CPU, for every library whose arrays lie there."""

from typing import Any

import numpy as np

from tileops import _threads
from tileops._moves import cut, host_words, make_nest, plan_host
from tileops._plan import Plan
from tileops.execute._memory import Memory, as_array, word_dtype
from tileops.execute.moving import carry_out

LEAST = 64 * 1024
"""The bytes of a result from which on planning its copy takes less time than it saves."""

_SHARED = 8 * 2**20
"""The bytes of a result from which on a second thread saves more time than it takes to wake."""


def repeat(
    plan: Plan,
    x: Any,
    source: Memory,
    out: Any,
    target: Memory,
    *,
    is_fresh: bool,
    most_threads: int | None = None,
) -> None:
    """Write the repetition of `source`, the memory of `x`, into `target`, that of `out`.

    Fresh memory is what nobody has written to yet.
    """
    nest = host_words(
        make_nest(plan, source.strides, target.strides, target.itemsize),
        (source.address | target.address) % 16 or 16,
    )
    word = nest.word
    read = as_array(Memory(source.address, nest.sizes, nest.source, word), x)
    written = as_array(Memory(target.address, nest.sizes, nest.target, word), out, writable=True)
    dtype = word_dtype(word)

    def run(part: tuple[Any, ...]) -> None:
        scratch: dict[tuple[int, ...], Any] = {}

        def empty(sizes: tuple[int, ...]) -> Any:
            if sizes not in scratch:
                scratch[sizes] = np.empty(sizes, dtype)
            return scratch[sizes]

        there = written[part]
        move = plan_host(nest._replace(sizes=there.shape), is_fresh)
        carry_out(move, there, read[part], np.copyto, empty)

    threads = _threads.available(most_threads) if nest.nbytes >= _SHARED else 1
    axis, step = cut(nest, threads)
    if threads == 1:
        run((...,))
    else:
        ahead = (slice(None),) * axis
        parts = [(*ahead, slice(i, i + step)) for i in range(0, nest.sizes[axis], step)]
        _threads.share(run, parts, threads)
