"""The workloads that every benchmark measures, in a size for CPUs and a size for GPUs."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np


@dataclasses.dataclass(frozen=True)
class Workload:
    """An array, and how often it is repeated along each axis.

    Attributes
    ----------
    name : str
        A short, unique name.
    operator : str
        ``"tile"``, or ``"expand"`` where every repeated axis has size 1.
    shape : tuple of int
        The input's shape at the size for CPUs.
    dtype : str
        The name of the input's dtype, as NumPy (with ml_dtypes) and the other libraries spell it.
    repeats : tuple of int
        How often each axis is repeated. An expand's target shape is the property ``target``.
    full_shape, full_repeats : tuple of int
        The same at the size for GPUs.
    source : str
        Where the operation is used.
    """

    name: str
    operator: str
    shape: tuple[int, ...]
    dtype: str
    repeats: tuple[int, ...]
    full_shape: tuple[int, ...]
    full_repeats: tuple[int, ...]
    source: str

    @property
    def target(self) -> tuple[int, ...]:
        """The shape of the result, which is the second argument of expand."""
        return tuple(n * r for n, r in zip(self.shape, self.repeats, strict=True))

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return numpy_dtype(self.dtype).itemsize

    @property
    def result_bytes(self) -> int:
        """The bytes of the result, which every figure in GB/s counts."""
        return math.prod(self.target) * self.itemsize

    def full(self) -> "Workload":
        """Return the same workload at the size for GPUs."""
        return dataclasses.replace(self, shape=self.full_shape, repeats=self.full_repeats)


WORKLOADS = (
    Workload(
        "repeat_kv",
        "expand",
        shape=(2, 8, 1, 2048, 128),
        dtype="bfloat16",
        repeats=(1, 1, 4, 1, 1),
        full_shape=(8, 8, 1, 8192, 128),
        full_repeats=(1, 1, 4, 1, 1),
        source="keys and values for four query heads each: transformers, repeat_kv",
    ),
    Workload(
        "beam",
        "expand",
        shape=(2, 1, 1500, 1280),
        dtype="float16",
        repeats=(1, 5, 1, 1),
        full_shape=(32, 1, 1500, 1280),
        full_repeats=(1, 5, 1, 1),
        source="an encoder's states for five beams: transformers, _expand_to_num_beams",
    ),
    Workload(
        "mask",
        "expand",
        shape=(2, 1, 1, 4096),
        dtype="bool",
        repeats=(1, 1, 4096, 1),
        full_shape=(4, 1, 1, 8192),
        full_repeats=(1, 1, 8192, 1),
        source="a padding mask for every query: transformers, AttentionMaskConverter._expand_mask",
    ),
    Workload(
        "positional",
        "expand",
        shape=(1, 256, 64, 64),
        dtype="float32",
        repeats=(8, 1, 1, 1),
        full_shape=(1, 256, 64, 64),
        full_repeats=(64, 1, 1, 1),
        source="position embeddings for a batch: transformers, DetrLearnedPositionEmbedding",
    ),
    Workload(
        "gather",
        "expand",
        shape=(32, 900, 1),
        dtype="int64",
        repeats=(1, 1, 256),
        full_shape=(32, 900, 1),
        full_repeats=(1, 1, 256),
        source="an index of rows for every channel, as gather wants it",
    ),
    Workload(
        "grid_t",
        "expand",
        shape=(16, 1, 1, 256),
        dtype="float32",
        repeats=(1, 44, 80, 1),
        full_shape=(16, 1, 1, 4096),
        full_repeats=(1, 44, 80, 1),
        source="a video's embedding of frames, over rows and columns",
    ),
    Workload(
        "grid_h",
        "expand",
        shape=(1, 44, 1, 256),
        dtype="float32",
        repeats=(16, 1, 80, 1),
        full_shape=(1, 44, 1, 4096),
        full_repeats=(16, 1, 80, 1),
        source="a video's embedding of rows, over frames and columns",
    ),
    Workload(
        "grid_w",
        "expand",
        shape=(1, 1, 80, 256),
        dtype="float32",
        repeats=(16, 44, 1, 1),
        full_shape=(1, 1, 80, 4096),
        full_repeats=(16, 44, 1, 1),
        source="a video's embedding of columns, over frames and rows",
    ),
    Workload(
        "channels",
        "tile",
        shape=(1, 32, 17, 64, 96),
        dtype="bfloat16",
        repeats=(1, 4, 1, 1, 1),
        full_shape=(1, 128, 17, 64, 96),
        full_repeats=(1, 4, 1, 1, 1),
        source="the channels of a video's latent: diffusers, autoencoder_kl_ltx.py, the upsampler",
    ),
    Workload(
        "images_512",
        "tile",
        shape=(4, 512, 512, 3),
        dtype="uint8",
        repeats=(1, 4, 4, 1),
        full_shape=(64, 512, 512, 3),
        full_repeats=(1, 4, 4, 1),
        source="a wall of four by four times the same RGB image",
    ),
    Workload(
        "images_500",
        "tile",
        shape=(4, 500, 500, 3),
        dtype="uint8",
        repeats=(1, 4, 4, 1),
        full_shape=(64, 500, 500, 3),
        full_repeats=(1, 4, 4, 1),
        source="the same, with rows that are no power of two",
    ),
    Workload(
        "images_333",
        "tile",
        shape=(8, 333, 333, 3),
        dtype="uint8",
        repeats=(1, 4, 4, 1),
        full_shape=(64, 333, 333, 3),
        full_repeats=(1, 4, 4, 1),
        source="the same, with rows of an odd number of bytes",
    ),
    Workload(
        "gray_to_rgb",
        "expand",
        shape=(4096, 4096, 1),
        dtype="uint8",
        repeats=(1, 1, 3),
        full_shape=(16384, 16384, 1),
        full_repeats=(1, 1, 3),
        source="a gray image as RGB",
    ),
    Workload(
        "rows_of_3",
        "tile",
        shape=(1_000_000, 3),
        dtype="uint8",
        repeats=(1, 5),
        full_shape=(1_000_000, 3),
        full_repeats=(1, 5),
        source="short rows, five times",
    ),
)


def numpy_dtype(name: str) -> np.dtype:
    """Return the dtype of a name, from ml_dtypes if NumPy has none of that name."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def random_array(shape: Sequence[int], dtype: str) -> np.ndarray:
    """Make the input: random values, none of which is zero except False.

    Floating-point values lie between 1 and 1000 and integers fit 32 bits, so that they survive
    libraries that flush subnormal numbers, quiet NaNs or narrow 64-bit integers.
    """
    generator = np.random.default_rng(0)
    wanted = numpy_dtype(dtype)
    if wanted.kind == "b":
        return generator.integers(0, 2, shape, dtype=np.uint8).view(wanted)
    if wanted.kind in "iu":
        largest = min(np.iinfo(wanted).max, 2**31 - 1)
        return generator.integers(1, largest, shape, dtype=wanted, endpoint=True)
    return (generator.random(shape, dtype=np.float32) * 999 + 1).astype(wanted)
