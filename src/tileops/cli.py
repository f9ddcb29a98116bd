"""The command line: tile and expand files, and list the libraries found here."""

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TextIO

import tileops
from tileops import execute
from tileops._rules import EXPAND, TILE, Operator, check_limit
from tileops._run import run
from tileops._threads import VARIABLE
from tileops.execute.array_api import Executor

try:
    from cyclopts import App, CycloptsError, MissingArgumentError, Parameter, Token, validators
    from rich.console import Console
    from rich.table import Table

    from tileops import _files
except ModuleNotFoundError as missing:
    sys.stderr.write(
        f"tileops: the command line needs {missing.name}; install array-tileops with its extra "
        f"'cli', as the README says\n"
    )
    sys.exit(2)

app = App(
    name="tileops",
    help="Tile and Expand arrays in .npy files and images, with NumPy, PyTorch, JAX, CuPy or Dask.",
    version=tileops.__version__,
)


class CommandError(Exception):
    """A wrong argument on the command line, or a library that cannot be used."""


def _whole_numbers(_type: Any, tokens: Sequence[Token]) -> list[int]:
    """Read whole numbers, because cyclopts itself rounds 1.5 to 2 where an int is wanted."""
    try:
        return [int(token.value) for token in tokens]
    except ValueError:
        words = " ".join(token.value for token in tokens)[:80]
        rule = "takes whole numbers only" + ", with spaces between them" * ("," in words)
        if all(token.value.removeprefix("-").isdecimal() for token in tokens):
            rule = "Python reads no number with so many digits"
        raise CommandError(f"{tokens[0].keyword} {words}: {rule}") from None


def _whole_number(kind: Any, tokens: Sequence[Token]) -> int:
    return _whole_numbers(kind, tokens)[0]


_IMAGE_AXES = 3
_SUCH_AS = {TILE: "4 6 1", EXPAND: "1 1 3"}

Source = Annotated[Path, Parameter(help="The .npy file or image (PNG, JPEG, WebP) to read.")]
Target = Annotated[
    Path,
    Parameter(
        help="The file to write, in the format of its suffix; replaced only when all went well."
    ),
]
Counts = Annotated[
    list[int],
    Parameter(converter=_whole_numbers, consume_multiple=True, negative="", allow_repeating=False),
]
Library = Annotated[str, Parameter(help=f"The array library: {', '.join(execute.LIBRARIES)}.")]
Device = Annotated[str | None, Parameter(help="The library's device, such as cuda or cpu.")]
MaxBytes = Annotated[
    int | None,
    Parameter(
        converter=_whole_number,
        validator=validators.Number(gte=0),
        help="Refuse a result, or an image to read, of more bytes than this.",
    ),
]


@app.command(usage="Usage: tileops tile SRC DST --repeats INT... [OPTIONS]")
def tile(
    src: Source,
    dst: Target,
    /,
    *,
    repeats: Counts,
    library: Library = "numpy",
    device: Device = None,
    max_bytes: MaxBytes = None,
) -> None:
    """Repeat the array in SRC along its axes and write it to DST.

    SRC and DST come before --repeats, which takes all words up to the next option.

    Parameters
    ----------
    repeats
        How often each axis is repeated, aligned on the right. The axes of an image are
        height, width and channels: 4 6 1 makes a wall of 4 rows of 6.
    """
    _apply(TILE, src, dst, repeats, library, device, max_bytes)


@app.command(usage="Usage: tileops expand SRC DST --shape INT... [OPTIONS]")
def expand(
    src: Source,
    dst: Target,
    /,
    *,
    shape: Counts,
    library: Library = "numpy",
    device: Device = None,
    max_bytes: MaxBytes = None,
) -> None:
    """Broadcast the array in SRC with a shape and write it to DST.

    SRC and DST come before --shape, which takes all words up to the next option.

    Parameters
    ----------
    shape
        The sizes to broadcast with, aligned on the right; 1 keeps an axis as it is. The axes
        of an image are height, width and channels: 1 1 3 turns a gray image of 8 bits into RGB.
    """
    _apply(EXPAND, src, dst, shape, library, device, max_bytes)


@app.command
def info() -> None:
    """List the array libraries, versions and devices found here."""
    table = Table("library", "version", "devices", title=f"tileops {tileops.__version__}")
    for name in execute.LIBRARIES:
        table.add_row(name, *_describe(name))
    Console().print(table)


def _describe(name: str) -> tuple[str, str]:
    try:
        executor = _load(name)
    except CommandError as error:
        return str(error), ""
    return str(getattr(sys.modules[name], "__version__", "unknown")), _devices(executor)


def _devices(executor: Executor) -> str:
    try:
        return ", ".join(executor.devices()) or "none"
    except Exception as error:  # noqa: BLE001 (a missing driver raises errors of many types)
        return f"none ({_one_line(error)})"


def _apply(
    operator: Operator,
    src: Path,
    dst: Path,
    counts: list[int],
    library: str,
    device: str | None,
    max_bytes: int | None,
) -> None:
    argument = operator.argument
    if not counts:
        raise CommandError(
            f"--{argument.name} needs a whole number for each axis, such as {_SUCH_AS[operator]}"
        )
    # A result that is no image may have more axes than the image that it is made from.
    fits = len(counts) == _IMAGE_AXES or (len(counts) > _IMAGE_AXES and not _files.is_image(dst))
    if _files.is_image(src) and not fits:
        numbers = "number" if len(counts) == 1 else "numbers"
        raise CommandError(
            f"--{argument.name} has {len(counts)} {numbers}; an image has the axes height, width "
            f"and channels; give one for each, such as {_SUCH_AS[operator]}"
        )
    x = _files.read(src, max_bytes)
    shape = execute.executor_named("numpy").plan(operator, x, tuple(counts)).shape
    if max_bytes is not None:
        check_limit(argument, shape, x.itemsize, max_bytes)
    executor, carried = _to_library(library, x, device)

    def fill(out: Any) -> None:
        if carried is x:
            run(operator, x, counts, out=out)
        else:
            out[...] = _compute(executor, operator, carried, counts)

    _files.write(dst, shape, x.dtype, fill)
    _say(f"{dst}: {shape} {x.dtype}", sys.stdout)


def _compute(executor: Executor, operator: Operator, x: Any, counts: list[int]) -> Any:
    """Compute in a library, and turn its errors, which have many types, into a CommandError."""
    try:
        return executor.to_numpy(run(operator, x, counts, copy=None))
    except tileops.TileOpsError:
        raise
    except Exception as error:
        raise CommandError(f"--library {executor.library} failed: {error}") from error


def _say(text: str, stream: TextIO | None) -> None:
    """Print what was done, or why not, without failing if the stream cannot take it."""
    if stream is None:  # the stream was closed when Python started
        return
    try:
        print(text, file=stream, flush=True)
    except (OSError, UnicodeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _to_library(library: str, x: Any, device: str | None) -> tuple[Executor, Any]:
    if library not in execute.LIBRARIES:
        raise CommandError(
            f"--library {library} is not known; use one of {', '.join(execute.LIBRARIES)}"
        )
    try:
        executor = _load(library)
    except CommandError as error:
        remedy = "install it, or name another library, such as numpy"
        raise CommandError(f"--library {library} is {error}; {remedy}") from error
    try:
        found = None if device is None else executor.find_device(device)
        if device is None or found is not None:
            return executor, executor.from_numpy(x, found)
    except Exception as error:
        where = "its default device" if device is None else f"device {device}"
        refusal = f"--library {library} cannot hold {x.dtype} on {where}"
        raise CommandError(f"{refusal}: {error}") from error
    raise CommandError(f"--device {device}: {library} has {_devices(executor)} here")


def _load(library: str) -> Executor:
    """Import a library, or say why that fails: it, or something that it needs, may be missing."""
    try:
        return execute.executor_named(library)
    except Exception as error:
        is_absent = isinstance(error, ModuleNotFoundError) and error.name == library
        state = "not installed" if is_absent else f"broken ({_one_line(error)})"
        raise CommandError(state) from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _explain(error: Exception) -> str:
    text = _one_line(error)
    is_missing = isinstance(error, MissingArgumentError) and error.keyword is None
    return text.replace("requires an argument", "is missing") if is_missing else text


def _usage(error: CycloptsError) -> str:
    """Return the usage of a command, with the order of its words, if the error is about one."""
    usage = app[error.command_chain[0]].usage if error.command_chain else None
    return f" {usage}; the files come first" if usage else ""


def main() -> None:
    """Run the command line; an error gives one line on stderr and exit code 2."""
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup has a signal ignored
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of libraries
            warnings.filterwarnings("default", message=VARIABLE)
            app(exit_on_error=False, print_error=False, result_action="return_value")
    except (
        CycloptsError,
        CommandError,
        MemoryError,
        OSError,
        ValueError,
        tileops.TileOpsError,
    ) as error:
        usage = _usage(error) if isinstance(error, CycloptsError) else ""
        _say(f"tileops: {_explain(error)}{usage}", sys.stderr)
        sys.exit(2)
