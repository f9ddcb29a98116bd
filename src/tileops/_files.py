"""The files that the command line reads and writes: .npy arrays and images."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageFile, ImageOps


class Format(NamedTuple):
    """An image format of Pillow, and the modes that it stores without loss of values."""

    name: str
    modes: frozenset[str]
    side: int
    """The most pixels along an axis."""
    options: dict[str, Any]


_JPEG = Format("JPEG", frozenset({"L", "RGB"}), 65_500, {"quality": 95})

_FORMATS = {
    ".png": Format("PNG", frozenset({"1", "L", "LA", "RGB", "RGBA", "I;16"}), 2**31 - 1, {}),
    ".jpg": _JPEG,
    ".jpeg": _JPEG,
    ".webp": Format(
        "WEBP", frozenset({"L", "RGB", "RGBA"}), 16_383, {"lossless": True, "exact": True}
    ),
}
"""Image formats by the suffix of a file."""

_MODES = {
    ("bool", 1): "1",
    ("uint16", 1): "I;16",
    ("uint8", 1): "L",
    ("uint8", 2): "LA",
    ("uint8", 3): "RGB",
    ("uint8", 4): "RGBA",
}
"""Pillow's modes of pixels, by their dtype and their number of channels."""

_BYTES = {mode: np.dtype(name).itemsize * channels for (name, channels), mode in _MODES.items()}
"""The bytes of a pixel in memory, by its mode."""

_WITH_ALPHA = {"1": "LA", "L": "LA", "P": "RGBA", "RGB": "RGBA"}
"""The modes to which images are converted if one of their values stands for transparency."""

_COLOURS = frozenset({"CMYK", "HSV", "LAB", "P", "YCbCr"})
"""Modes of colour images that are converted to RGB when they are read."""

_WIDENED = frozenset({"L;2", "L;4"})
"""Stored greys that Pillow widens to 8 bits without widening the value that means transparency."""

_DEEP = ";16B"
"""The end of Pillow's names for stored pixels whose channels have 16 bits."""

_HEADERS = {
    (1, 0): (2, np.lib.format.read_array_header_1_0),
    (2, 0): (4, np.lib.format.read_array_header_2_0),
    (3, 0): (4, np.lib.format.read_array_header_2_0),  # differs in the characters of field names
}
"""How many bytes tell the length of a .npy file's header, and what reads it, by the version of the
format."""

_LONGEST_HEADER = 10_000
"""The most bytes of a header that are read; NumPy's own limit is as many characters."""


class FileError(ValueError):
    """A file that cannot be read as an array, or an array that cannot be saved to a file."""


def is_image(path: Path) -> bool:
    """Whether a file's name is that of an image, with the axes height, width and channels."""
    return path.suffix.lower() in _FORMATS


def read(path: Path, max_bytes: int | None = None) -> np.ndarray[Any, Any]:
    """Read an array: .npy files memory-mapped, images as (height, width, channels).

    An image of more than `max_bytes` is refused before its pixels are decoded. If `max_bytes` is
    None, Pillow's own limit applies.
    """
    _check_path(path)
    try:
        return _read_pixels(path, max_bytes) if is_image(path) else _map(path)
    except (MemoryError, FileError):
        raise
    except Exception as error:  # parsers raise errors of many types for broken files
        if isinstance(error, OSError) and error.errno is not None:
            error.filename = error.filename or str(path)
            raise  # an error of the system says enough
        kind = "an image" if is_image(path) else "a .npy file of an array of numbers or text"
        raise FileError(f"{path}: cannot be read as {kind}: {error}") from error


def _map(path: Path) -> np.ndarray[Any, Any]:
    formats = np.lib.format
    with path.open("rb") as file:
        version = formats.read_magic(file)
        if version not in _HEADERS:
            raise FileError(f"{path}: its format has the version {version}, which is not known")
        # NumPy would read all of a header before it refuses one that is too long.
        start, (digits, read_header) = file.tell(), _HEADERS[version]
        length = int.from_bytes(file.read(digits), "little")
        if length > _LONGEST_HEADER:
            raise FileError(
                f"{path}: its header has {length} bytes, and at most {_LONGEST_HEADER} are read; "
                f"shorten the names of its fields"
            )
        file.seek(start)
        try:
            shape, _, _ = read_header(file)
        except MemoryError as error:  # by Python's parser, for brackets or signs in many levels
            raise FileError(f"{path}: its header cannot be parsed") from error
    # With elements of zero bytes, NumPy would divide by zero here, which ends the process.
    if any(size < 0 for size in shape):
        raise FileError(f"{path}: its shape is {shape}; no size may be negative")
    return formats.open_memmap(path, mode="r")


def _read_pixels(path: Path, max_bytes: int | None) -> np.ndarray[Any, Any]:
    with _open(path, is_limited=max_bytes is not None) as image:
        mode = _plain_mode(path, image)
        nbytes = prod(image.size) * _BYTES[mode]
        if max_bytes is not None and nbytes > max_bytes:
            raise FileError(
                f"{path}: its {image.height} by {image.width} pixels take {nbytes} bytes in "
                f"memory, more than --max-bytes {max_bytes}; raise it"
            )
        if _has_readable_exif(image):
            ImageOps.exif_transpose(image, in_place=True)
        image.load()
    pixels = np.asarray(image if image.mode == mode else image.convert(mode))
    return pixels if pixels.ndim > 2 else pixels[:, :, np.newaxis]  # noqa: PLR2004


def _has_readable_exif(image: ImageFile.ImageFile) -> bool:
    """Whether Pillow can read what an image says about its orientation, if it says anything."""
    try:
        image.getexif()
    except Exception:  # noqa: BLE001 (Pillow raises errors of many types)
        return False
    return True


def _plain_mode(path: Path, image: ImageFile.ImageFile) -> str:
    """Return the mode in `_MODES` to convert an image to: colours as RGB, transparency added.

    Images are refused whose values Pillow would not read as they are.
    """
    stored = {str(of[-1]) for of in image.tile}
    if image.mode != "I;16" and any(kind.endswith(_DEEP) for kind in stored):
        raise FileError(
            f"{path}: its channels have 16 bits, of which Pillow reads 8; convert it to 8 "
            f"bits, or to greyscale without transparency"
        )
    if "transparency" in image.info:
        refused = stored & _WIDENED or {image.mode} - _WITH_ALPHA.keys()
        if refused:
            raise FileError(
                f"{path}: images of mode {refused.pop()} with a transparent value are not read; "
                f"convert it to RGBA, or to greyscale without transparency"
            )
        return _WITH_ALPHA[image.mode]
    if image.mode in _COLOURS:
        return "RGB"
    if image.mode not in _MODES.values():
        raise FileError(
            f"{path}: images of mode {image.mode} are not read; convert it to RGB or greyscale"
        )
    return image.mode


def _open(path: Path, *, is_limited: bool) -> ImageFile.ImageFile:
    """Read an image's header; Pillow's limit on pixels applies if the caller has none."""
    kinds = {kind.name for kind in _FORMATS.values()}  # Pillow may run programs for others
    most = Image.MAX_IMAGE_PIXELS
    if is_limited:
        Image.MAX_IMAGE_PIXELS = None
    try:
        return Image.open(path, formats=tuple(kinds))
    except Image.DecompressionBombError as error:
        raise FileError(
            f"{path}: {error} If you trust it, pass --max-bytes, which replaces this limit"
        ) from error
    finally:
        Image.MAX_IMAGE_PIXELS = most


def write(
    path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], fill: Callable[[Any], None]
) -> None:
    """Let `fill` write an array of this shape and dtype, and put it at `path` when it is done.

    The file is written beside `path` and then renamed, so that `path` holds either its
    old content or the whole new array.
    """
    _check_path(path)
    if not path.parent.is_dir():
        raise FileError(f"{path}: there is no directory {path.parent}; make it first")
    if path.exists() and not os.access(path, os.W_OK):  # a rename would replace it all the same
        raise FileError(f"{path}: is read-only; make it writable, or name another file")
    if is_image(path):
        _write_pixels(path, shape, dtype, fill)
        return
    with _beside(path) as temporary:
        _check_space(temporary, prod(shape) * dtype.itemsize)
        out = np.lib.format.open_memmap(temporary, mode="w+", dtype=dtype, shape=shape)
        _reserve(temporary)
        fill(out)
        out.flush()
        del out


def _write_pixels(
    path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], fill: Callable[[Any], None]
) -> None:
    kind = _FORMATS[path.suffix.lower()]
    channels = 1 if len(shape) == 2 else shape[-1] if len(shape) == 3 else 0  # noqa: PLR2004
    mode = _MODES.get((dtype.name, channels))
    if mode not in kind.modes:
        taken: dict[str, list[str]] = {}
        for (name, number), its_mode in _MODES.items():
            if its_mode in kind.modes:
                taken.setdefault(name, []).append(str(number))
        kinds = " or ".join(f"{name} with {'/'.join(of)}" for name, of in taken.items())
        raise FileError(
            f"{path}: the result has shape {shape} of {dtype}; {kind.name} takes (height, width, "
            f"channels) of {kinds} channels; save as {_others(mode, shape)}"
        )
    if not _holds(kind, mode, shape):
        raise FileError(
            f"{path}: the result has {shape[0]} by {shape[1]} pixels; {kind.name} takes 1 to "
            f"{kind.side} along an axis; save as {_others(mode, shape)}"
        )
    try:
        pixels = np.empty(shape, dtype)
        fill(pixels)
        image = Image.fromarray(pixels.reshape(shape[:2]) if channels == 1 else pixels)
        with _beside(path) as temporary:
            image.save(temporary, format=kind.name, **kind.options)
    except MemoryError as error:  # Pillow, which may copy the pixels, says nothing more
        raise FileError(
            f"{path}: there is not enough memory for an image of {shape[0]} by {shape[1]} pixels; "
            f"use smaller counts, or save as .npy, which is written to disk"
        ) from error


def _holds(kind: Format, mode: str | None, shape: tuple[int, ...]) -> bool:
    """Whether a format can hold pixels of this mode, and this many of them along both axes."""
    return mode in kind.modes and all(0 < side <= kind.side for side in shape[:2])


def _others(mode: str | None, shape: tuple[int, ...]) -> str:
    """Name the suffixes of the formats that hold a result."""
    holding = [suffix for suffix, kind in _FORMATS.items() if _holds(kind, mode, shape)]
    return " or ".join([*holding, ".npy"])


def _check_path(path: Path) -> None:
    if path.is_dir():
        raise FileError(f"{path}: is a directory; name a file")
    if path.exists() and not path.is_file():  # cannot be mapped, and must not be replaced
        raise FileError(f"{path}: is a device, pipe or socket; name a file")
    if path.suffix.lower() not in (".npy", *_FORMATS):
        raise FileError(
            f"{path}: suffix {path.suffix!r} is not one of .npy, {', '.join(_FORMATS)}; "
            f"convert the file or rename it"
        )


def _check_space(path: Path, nbytes: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if nbytes > free:
        raise FileError(
            f"{path.parent}: the result takes {nbytes} bytes and {free} are free; "
            f"use smaller counts or another disk"
        )


def _reserve(path: Path) -> None:
    """Reserve a mapped file's blocks now, because a disk that fills up later kills the process."""
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path` to write to, and rename it to `path` on success."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".tileops-{token_hex(8)}")
    try:
        if target.exists():  # it may be private, so its replacement is private from the start
            temporary.touch(0o600)
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)
        try:
            temporary.replace(target)
        except OSError as error:  # names both files
            raise FileError(
                f"{path}: cannot be replaced: {error.strerror}; name another file"
            ) from error
    except OSError as error:
        # The system names no file, or the temporary one, which the user does not know.
        if error.errno is not None and str(error.filename or temporary) == str(temporary):
            error.filename = str(path)
        raise
    finally:
        with suppress(OSError):  # the path may be impossible, and then there is no such file
            temporary.unlink(missing_ok=True)
