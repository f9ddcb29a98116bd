"""What the copy kernels of PyTorch and CuPy are like, for tests without a GPU or the library."""

from tileops._moves import WORDS
from tileops._plan_device import Traits

TORCH = Traits(WORDS, repeats=(), moved=9, chunk=12 * 2**20, in_order=False, least=3 * 2**23)
CUPY = Traits(
    (16, 12, 8, 6, 5, 4, 3, 2, 1),
    (
        *((1, times) for times in (8, 7, 6, 5, 4, 3, 2)),
        *((2, times) for times in (4, 3, 2)),
        *((4, times) for times in (4, 3, 2)),
    ),
    moved=21,
    chunk=2 * 2**20,
    in_order=True,
    least=2**23,
)
