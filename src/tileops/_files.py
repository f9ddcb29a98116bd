"""The files that the command line reads and writes: .npy arrays and images."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

IMAGES: dict[str, dict[str, Any]] = {
    ".png": {},
    ".jpg": {"quality": 95},
    ".jpeg": {"quality": 95},
    ".webp": {"lossless": True},
}
"""Suffixes of images, with the options that they are saved with."""

_MODES = {2: "LA", 3: "RGB", 4: "RGBA"}
"""Pillow's name for each number of channels above one."""


class FileFormatError(ValueError):
    """A file that cannot be read as an array, or an array that cannot be saved so."""


def read(path: Path) -> np.ndarray[Any, Any]:
    """Read an array: .npy memory-mapped, an image as (height, width, channels)."""
    if path.suffix.lower() == ".npy":
        try:
            return np.lib.format.open_memmap(path, mode="c")
        except ValueError as error:
            raise FileFormatError(f"{path}: {error}") from error
    _check_suffix(path)
    with Image.open(path) as image:
        upright = ImageOps.exif_transpose(image)
        if upright.mode == "P":
            upright = upright.convert("RGBA" if "transparency" in upright.info else "RGB")
        pixels = np.asarray(upright)
    return pixels if pixels.ndim > 2 else pixels[:, :, np.newaxis]  # noqa: PLR2004


def write(
    path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], fill: Callable[[Any], None]
) -> None:
    """Let `fill` write an array of this shape and dtype, and put it at `path` when it is done.

    The file is written beside `path` and then renamed, so `path` holds either
    what it held before or the whole new array.
    """
    _check_suffix(path)
    if path.suffix.lower() == ".npy":
        with _beside(path) as temporary:
            _check_space(temporary, prod(shape) * dtype.itemsize)
            out = np.lib.format.open_memmap(temporary, mode="w+", dtype=dtype, shape=shape)
            _reserve(temporary)
            fill(out)
            out.flush()
        return
    _check_pixels(path, shape, dtype)
    pixels = np.empty(shape, dtype)
    fill(pixels)
    with _beside(path) as temporary:
        _image(pixels).save(temporary, **IMAGES[path.suffix.lower()])


def _check_space(path: Path, nbytes: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if nbytes > free:
        raise FileFormatError(
            f"{path.parent}: the result takes {nbytes} bytes and {free} are free; "
            f"use smaller counts or another disk"
        )


def _reserve(path: Path) -> None:
    """Take the blocks of a mapped file now: a disk that fills up later would kill the process."""
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


def _check_suffix(path: Path) -> None:
    if path.suffix.lower() not in (".npy", *IMAGES):
        raise FileFormatError(
            f"{path}: suffix {path.suffix!r} is none of .npy, {', '.join(IMAGES)}; "
            f"convert the file or name it so"
        )


def _check_pixels(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    channels = shape[2] if len(shape) == 3 else 1  # noqa: PLR2004
    if len(shape) not in (2, 3) or channels not in (1, *_MODES):
        raise FileFormatError(
            f"{path}: the result has shape {shape}, and an image is (height, width, channels) "
            f"with 1 to 4 channels; for an image give a count for each of the three axes, "
            f"such as 4 6 1, or save as .npy"
        )
    if 0 in shape:
        raise FileFormatError(f"{path}: the result of shape {shape} has no pixels; save as .npy")
    if dtype != np.uint8 and not (channels == 1 and dtype in (np.dtype(bool), np.dtype(np.uint16))):
        raise FileFormatError(
            f"{path}: pixels of {dtype} with {channels} channels cannot be saved as an image; "
            f"an image takes uint8, or bool and uint16 with one channel; save as .npy"
        )


def _image(pixels: np.ndarray[Any, Any]) -> Image.Image:
    if pixels.ndim == 3 and pixels.shape[2] == 1:  # noqa: PLR2004
        pixels = pixels[:, :, 0]
    return Image.fromarray(pixels)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Give a name beside `path` to write to; rename it to `path` if all went well."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
