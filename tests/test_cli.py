"""The command line, as a user runs it."""

import errno
import importlib.metadata
import os
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import reference
import tileops
from memory import peak_of
from tileops import _files, cli, execute

pytestmark = pytest.mark.library("numpy")

TEXTURE = Path(__file__).parents[1] / "examples" / "azulejo.png"


def run(*words, cwd=None, env=None):
    return subprocess.run(
        [sys.executable, "-m", "tileops", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=env,
    )


def refused(done, *parts):
    """Assert one line on stderr, exit code 2, nothing on stdout."""
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.startswith("tileops: ")
    assert done.stderr.count("\n") == 1
    for part in parts:
        assert part in done.stderr


@pytest.fixture
def array(tmp_path):
    values = np.arange(6, dtype=">i4").reshape(2, 3)
    np.save(tmp_path / "x.npy", values)
    return values


def test_the_first_command_of_the_readme_runs(tmp_path):
    done = run("tile", TEXTURE, tmp_path / "wall.png", "--repeats", 4, 6, 1)
    assert done.returncode == 0, done.stderr
    assert "wall.png: (384, 576, 3) uint8" in done.stdout.replace("\n", "")
    with Image.open(TEXTURE) as one, Image.open(tmp_path / "wall.png") as wall:
        assert np.array_equal(np.asarray(wall), reference.tiled(np.asarray(one), (4, 6, 1)))


WAITING = """
import pathlib, time
from tileops import cli

def run_and_wait(*arguments, run=cli.run, **options):
    run(*arguments, **options)
    for _ in range(60_000):  # a signal without effect fails a test, and does not stop it
        if pathlib.Path("go on").exists():
            break
        time.sleep(1e-3)

cli.run = run_and_wait
cli.main()
"""
"""The command line, which waits for the file "go on" before it puts a result in its place."""

TILE_BY_TWO = ("tile", "x.npy", "y.npy", "--repeats", "2")


def signalled_while_writing(process, folder, number):
    """Send a signal to a command once its temporary file is there."""
    while process.poll() is None and not list(folder.glob(".tileops-*")):
        time.sleep(1e-3)
    process.send_signal(number)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no such signal")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
@pytest.mark.usefixtures("array")
def test_an_interrupted_command_leaves_no_files_behind(tmp_path, name):
    """Neither part of a result nor the temporary file that holds it may remain."""
    number = getattr(signal, name)
    # The child would ignore a signal that this process ignores, as it does under nohup.
    before = signal.signal(number, lambda *_: None)
    with subprocess.Popen(
        [sys.executable, "-c", WAITING, *TILE_BY_TWO], cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as process:
        signal.signal(number, before)
        signalled_while_writing(process, tmp_path, number)
    assert process.returncode == 128 + number
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no such signal")
def test_a_signal_that_the_parent_ignores_stays_ignored(tmp_path, array):
    """nohup starts a command with SIGHUP ignored."""
    script = 'trap "" HUP; exec "$0" -c "$@"'
    with subprocess.Popen(
        ["/bin/sh", "-c", script, sys.executable, WAITING, *TILE_BY_TWO],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
    ) as process:
        signalled_while_writing(process, tmp_path, signal.SIGHUP)
        (tmp_path / "go on").touch()
    assert process.returncode == 0
    assert np.array_equal(np.load(tmp_path / "y.npy"), np.tile(array, 2))


@pytest.mark.parametrize("nowhere", ["&-", "/dev/full"])
def test_the_exit_code_is_2_even_if_stderr_cannot_be_written(tmp_path, nowhere):
    script = f'"$0" -m tileops tile x.npy y.npy --repeats 2 2>{nowhere}'
    done = subprocess.run(["/bin/sh", "-c", script, sys.executable], cwd=tmp_path, check=False)
    assert done.returncode == 2


@pytest.mark.usefixtures("array")
def test_more_axes_than_numpy_has_are_refused(tmp_path):
    done = run("tile", "x.npy", "y.npy", "--repeats", *[1] * 68, cwd=tmp_path)
    refused(done, "tile: the result has 68 axes", "64 at most")


def test_arrays_keep_their_bits_and_byte_order(tmp_path, array):
    assert run("tile", "x.npy", "y.npy", "--repeats", 2, 1, 2, cwd=tmp_path).returncode == 0
    result = np.load(tmp_path / "y.npy")
    assert result.dtype == array.dtype
    assert result.tolist() == np.tile(array, (2, 1, 2)).tolist()
    assert run("expand", "x.npy", "y.npy", "--shape", 4, 1, 1, cwd=tmp_path).returncode == 0
    assert np.load(tmp_path / "y.npy").tolist() == [array.tolist()] * 4


def test_the_source_can_be_overwritten_even_by_an_empty_result(tmp_path, array):
    assert run("tile", "x.npy", "x.npy", "--repeats", 2, cwd=tmp_path).returncode == 0
    assert np.load(tmp_path / "x.npy").tolist() == np.tile(array, 2).tolist()
    assert run("tile", "x.npy", "x.npy", "--repeats", 0, cwd=tmp_path).returncode == 0
    assert np.load(tmp_path / "x.npy").shape == (2, 0)
    assert run("tile", "x.npy", "x.npy", "--repeats", 3, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("mode", ["1", "L", "LA", "RGB", "RGBA", "P", "I;16"])
def test_every_mode_of_png_is_tiled(tmp_path, mode):
    image = Image.new(mode, (3, 2))
    if mode == "P":
        image.putpalette([255, 0, 0] * 256)
    image.save(tmp_path / "x.png")
    done = run("tile", "x.png", "y.png", "--repeats", 2, 3, 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with Image.open(tmp_path / "y.png") as result:
        assert result.size == (9, 4)
        assert result.mode == ("RGB" if mode == "P" else mode)


@pytest.mark.parametrize("suffix", [".jpg", ".webp"])
def test_jpeg_and_webp_images_are_tiled(tmp_path, suffix):
    Image.new("RGB", (8, 8), "navy").save(tmp_path / "x.png")
    assert run("tile", "x.png", f"y{suffix}", "--repeats", 2, 3, 1, cwd=tmp_path).returncode == 0
    assert run("tile", f"y{suffix}", "z.png", "--repeats", 1, 1, 1, cwd=tmp_path).returncode == 0
    with Image.open(tmp_path / "z.png") as result:
        assert result.size == (24, 16)


def test_a_grey_image_becomes_rgb(tmp_path):
    Image.new("L", (3, 2), 77).save(tmp_path / "x.png")
    assert run("tile", "x.png", "y.png", "--repeats", 1, 1, 3, cwd=tmp_path).returncode == 0
    with Image.open(tmp_path / "y.png") as result:
        assert result.getpixel((0, 0)) == (77, 77, 77)


@pytest.mark.parametrize(
    "words, parts",
    [
        (["--repeats", "-1", "2"], ["tile: axis 0: repeats[0] is -1", "no count may be negative"]),
        (["--repeats", "1.5"], ["--repeats 1.5", "whole numbers"]),
        (["--repeats", "2,2,1"], ["--repeats 2,2,1", "with spaces between them"]),
        (["--repeats", "2", "x"], ["--repeats 2 x", "whole numbers"]),
        (["--repeats"], ["--repeats needs a whole number"]),
        ([], ["--repeats", "Usage: tileops tile SRC DST --repeats INT... [OPTIONS]"]),
        (["--repeats", "99999999999", "99999999999"], ["2**63-1", "reduce the repeats"]),
        (["--repeats", "99999999999"], ["bytes and", "are free"]),
        (["--repeats", "9" * 5000], ["no number with so many digits"]),
        (["--repeats", "9", "--max-bytes", "1.5"], ["--max-bytes 1.5", "whole numbers"]),
        (["--repeats", "9", "--max-bytes", "100"], ["216 bytes", "max_bytes=100"]),
        (["--repeats", "9", "--max-bytes", "-1"], ["--max-bytes", "Must be >= 0"]),
        (["--repeats", "2", "--library", "nope"], ["nope is not known", "numpy, torch"]),
        (
            ["--repeats", "2", "--library", "cupy"],
            ["cupy is not installed; install it, or name another"],
        ),
        (["--repeats", "2", "--device", "cuda"], ["--device cuda: numpy has cpu here"]),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("array")
def test_a_refusal_is_one_line_and_leaves_the_target(tmp_path, words, parts):
    (tmp_path / "y.npy").write_bytes(b"precious")
    refused(run("tile", "x.npy", "y.npy", *words, cwd=tmp_path), *parts)
    assert (tmp_path / "y.npy").read_bytes() == b"precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.npy", "y.npy"]


@pytest.mark.parametrize(
    "version, text",
    [
        (b"\1\0" + (10_001).to_bytes(2, "little"), "its header has 10001 bytes, and at most 10000"),
        (b"\2\0" + (2**30).to_bytes(4, "little"), "its header has 1073741824 bytes, and"),
        (
            b"\1\0" + (9_000).to_bytes(2, "little") + b"-" * 9_000,
            "(its header )?cannot be (parsed|read)",  # Python's parser decides which
        ),
        (b"\x09\0\0\0", r"its format has the version \(9, 0\), which is not known"),
    ],
)
def test_headers_are_refused_before_they_are_read(tmp_path, version, text):
    with (tmp_path / "x.npy").open("wb") as file:
        file.write(b"\x93NUMPY" + version)
        file.truncate(2**31)  # a file of holes, which takes no room on the disk

    def read():
        with pytest.raises(_files.FileError, match=rf"x\.npy: {text}"):
            _files.read(tmp_path / "x.npy")

    assert peak_of(read) < 2**20


@pytest.mark.parametrize(
    "error, expected, text",
    [
        (RuntimeError("no memory"), cli.CommandError, "^--library numpy failed: no memory$"),
        (tileops.ShapeError("65 axes"), tileops.ShapeError, "^65 axes$"),
    ],
)
def test_an_error_while_a_library_computes_names_it(monkeypatch, error, expected, text):
    def fail(*_, **_options):
        raise error

    monkeypatch.setattr(cli, "run", fail)
    with pytest.raises(expected, match=text):
        cli._compute(execute.executor_named("numpy"), cli.TILE, np.ones(1), [2])


@pytest.mark.usefixtures("array")
def test_unsuitable_files_are_refused_by_name(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{}], object))
    np.save(tmp_path / "many.npy", np.zeros((2, 3, 2, 2), np.uint8))
    (tmp_path / "text.npy").write_text("not an array")
    (tmp_path / "text.png").write_text("not a picture")
    before = sorted(p.name for p in tmp_path.iterdir())
    for source, target, part in (
        ("missing.npy", "y.npy", "missing.npy"),
        ("objects.npy", "y.npy", "objects.npy"),
        ("text.npy", "y.npy", "text.npy: cannot be read as a .npy file of an array of numbers"),
        ("text.png", "y.npy", "text.png: cannot be read as an image: "),
        ("x.txt", "y.npy", "suffix '.txt' is not one of .npy"),
        ("x.npy", "y.txt", "suffix '.txt' is not one of .npy"),
        (".", "y.npy", ".: is a directory"),
        ("x.npy", "nowhere/y.npy", "there is no directory nowhere; make it first"),
        ("x.npy", "y.png", "or uint8 with 1/2/3/4 channels; save as .npy"),
        ("x.npy", "y.jpg", "of uint8 with 1/3 channels; save as .npy"),
        ("many.npy", "y.png", "the result has shape (2, 3, 2, 4) of uint8; PNG takes (height, w"),
    ):
        done = run("tile", source, target, "--repeats", 1, 1, 2, cwd=tmp_path)
        refused(done, part)
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_a_damaged_image_is_refused(tmp_path):
    path = tmp_path / "x.png"
    Image.new("RGB", (3, 2)).save(path)
    whole = path.read_bytes()
    assert b"IDAT" in whole
    path.write_bytes(whole.replace(b"IDAT", b"\xf0DAT"))
    done = run("tile", "x.png", "y.npy", "--repeats", 2, 2, 1, cwd=tmp_path)
    refused(done, "x.png: cannot be read as an image")


def test_an_image_needs_three_counts(tmp_path):
    Image.new("L", (3, 2)).save(tmp_path / "x.png")  # two counts would make it grey with alpha
    for command, counts, given, example in (
        ("tile --repeats", (4, 6), "2 numbers", "4 6 1"),
        ("expand --shape", (3,), "1 number", "1 1 3"),
    ):
        name, option = command.split()
        for target in ("y.png", "y.npy"):
            done = run(name, "x.png", target, option, *counts, cwd=tmp_path)
            refused(done, f"{option} has {given};", f"one for each, such as {example}")
    done = run("tile", "x.png", "y.png", "--repeats", 5, 1, 1, 1, cwd=tmp_path)
    refused(done, "--repeats has 4 numbers")
    assert run("tile", "x.png", "y.npy", "--repeats", 5, 1, 1, 1, cwd=tmp_path).returncode == 0
    assert np.load(tmp_path / "y.npy").shape == (5, 2, 3, 1)


def test_an_image_that_memory_cannot_hold_may_be_saved_as_npy(tmp_path):
    Image.new("RGBA", (1000, 1000)).save(tmp_path / "x.png")
    done = run("tile", "x.png", "y.png", "--repeats", 10**6, 10**6, 1, cwd=tmp_path)
    refused(done, "y.png: there is not enough memory", "use smaller counts, or save as .npy")


def test_pillow_may_need_more_memory_than_the_pixels(tmp_path, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(Image, "fromarray", fail)
    with pytest.raises(_files.FileError, match="2 by 3 pixels; use smaller counts, or save as"):
        _files.write(tmp_path / "y.png", (2, 3, 3), np.dtype(np.uint8), lambda _: None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words, part",
    [
        (("tile", "x.npy", "y.npy"), "parameter --repeats is missing"),
        (("tile", "x.npy", "--repeats", 2), "parameter DST is missing"),
        (("expand", "x.npy", "y.npy", "--repeats", 2), "parameter --shape is missing"),
        (("tile", "x.npy", "y.npy", "--repeats", 2, "--library"), "--library requires an argument"),
    ],
)
def test_a_missing_argument_is_named(tmp_path, words, part):
    refused(run(*words, cwd=tmp_path), part, "SRC DST")


def test_files_come_before_the_options(tmp_path):
    for words in (("--repeats", 2, "x.npy", "y.npy"), ("x.npy", "--repeats", 2, "y.npy")):
        refused(run("tile", *words, cwd=tmp_path), "SRC DST --repeats", "the files come first")


def test_an_image_of_too_many_pixels_names_the_formats_that_hold_them(tmp_path):
    Image.new("RGB", (1, 1)).save(tmp_path / "x.png")
    for name, counts, part in (
        ("y.webp", (16_384, 1, 1), "save as .png or .jpg or .jpeg or .npy"),
        ("y.jpg", (1, 65_501, 1), "save as .png or .npy"),
        ("y.png", (0, 1, 1), "save as .npy"),
    ):
        refused(run("tile", "x.png", name, "--repeats", *counts, cwd=tmp_path), part)
    Image.new("RGBA", (1, 1)).save(tmp_path / "x.png")
    done = run("tile", "x.png", "y.jpg", "--repeats", 1, 16_384, 1, cwd=tmp_path)
    refused(done, "save as .png or .npy")


@pytest.mark.parametrize(("name", "side"), [("y.webp", 16_383), ("y.jpg", 65_500)])
def test_an_image_may_have_as_many_pixels_as_its_format_allows(tmp_path, name, side):
    _files.write(tmp_path / name, (1, side, 3), np.dtype(np.uint8), lambda out: out.fill(1))
    with Image.open(tmp_path / name) as image:
        assert image.size == (side, 1)


def test_an_image_of_more_pixels_than_png_allows_is_refused_before_it_is_made(tmp_path):
    with pytest.raises(_files.FileError, match="PNG takes 1 to 2147483647 along an axis"):
        _files.write(tmp_path / "y.png", (1, 2**31, 1), np.dtype(np.uint8), pytest.fail)


def test_jpeg_is_written_with_quality_95(tmp_path, rng):
    values = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
    save(tmp_path / "x.png", values)
    Image.fromarray(values).save(tmp_path / "x.jpg", quality=95)
    assert run("tile", "x.png", "y.jpg", "--repeats", 1, 1, 1, cwd=tmp_path).returncode == 0
    with Image.open(tmp_path / "y.jpg") as ours, Image.open(tmp_path / "x.jpg") as theirs:
        assert ours.quantization == theirs.quantization


def test_a_grey_image_may_have_two_axes(tmp_path):
    greys = np.array([[1, 2, 3]], np.uint8)
    np.save(tmp_path / "x.npy", greys)
    cli.tile(tmp_path / "x.npy", tmp_path / "y.png", repeats=[2, 1])
    assert pixels(tmp_path / "y.png").tolist() == [[1, 2, 3]] * 2


def save(path, array):
    Image.fromarray(np.asarray(array, np.uint8)).save(path)


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image)


def test_lossless_formats_keep_every_value(tmp_path, rng):
    values = rng.integers(0, 256, (5, 4, 4), dtype=np.uint8)
    values[0, :, 3] = 0  # colours are kept even where they are fully transparent
    save(tmp_path / "x.png", values)
    for name in ("y.png", "y.webp", "Y.PNG"):
        assert run("tile", "x.png", name, "--repeats", 2, 1, 1, cwd=tmp_path).returncode == 0
        assert np.array_equal(pixels(tmp_path / name), np.tile(values, (2, 1, 1)))


def test_colours_are_read_as_rgb_and_transparency_is_kept(tmp_path):
    Image.new("RGB", (8, 8), (250, 20, 30)).convert("CMYK").save(tmp_path / "cmyk.jpg")
    assert run("tile", "cmyk.jpg", "y.png", "--repeats", 1, 1, 1, cwd=tmp_path).returncode == 0
    assert pixels(tmp_path / "y.png").shape == (8, 8, 3)
    assert abs(pixels(tmp_path / "y.png").astype(int) - (250, 20, 30)).max() < 8
    for mode, colour, expected in (
        ("L", 7, (7, 0)),
        ("RGB", (1, 2, 3), (1, 2, 3, 0)),
        ("P", 0, (9, 8, 7, 0)),
    ):
        image = Image.new(mode, (2, 2), colour)
        if mode == "P":
            image.putpalette([9, 8, 7] * 256)
        image.save(tmp_path / "t.png", transparency=colour)
        assert run("tile", "t.png", "y.png", "--repeats", 1, 1, 1, cwd=tmp_path).returncode == 0
        assert tuple(pixels(tmp_path / "y.png")[0, 0]) == expected


def write_png(path, bits, colour, row, **chunks):
    """Write a row of two pixels in a kind of PNG that Pillow does not write."""

    def chunk(kind, data):
        checked = kind.encode() + data
        return len(data).to_bytes(4) + checked + zlib.crc32(checked).to_bytes(4)

    header = (2).to_bytes(4) + (1).to_bytes(4) + bytes([bits, colour, 0, 0, 0])
    chunks = {"IHDR": header, **chunks, "IDAT": zlib.compress(b"\0" + row), "IEND": b""}
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*pair) for pair in chunks.items()))


@pytest.mark.parametrize(("colour", "channels"), [(2, 3), (4, 2), (6, 4)])
def test_colours_of_16_bits_are_refused(tmp_path, colour, channels):
    """Pillow would keep only 8 bits of each channel."""
    write_png(tmp_path / "x.png", 16, colour, bytes(2 * 2 * channels))
    done = run("tile", "x.png", "y.png", "--repeats", 1, 1, 1, cwd=tmp_path)
    refused(done, "x.png: its channels have 16 bits", "convert it to 8")


@pytest.mark.parametrize(("bits", "row"), [(2, 0b01100000), (4, 0x12)])
def test_a_transparent_value_among_few_greys_is_refused(tmp_path, bits, row):
    """Pillow scales the greys to 8 bits but not the transparent value, which would match none."""
    write_png(tmp_path / "x.png", bits, 0, bytes([row]))
    greys = _files.read(tmp_path / "x.png").ravel().tolist()
    assert greys == ([85, 170] if bits == 2 else [17, 34])
    write_png(tmp_path / "x.png", bits, 0, bytes([row]), tRNS=bytes([0, 1]))
    done = run("tile", "x.png", "y.png", "--repeats", 1, 1, 1, cwd=tmp_path)
    refused(done, f"x.png: images of mode L;{bits} with a transparent value", "convert it to RGBA")


def test_a_missing_target_folder_is_named(tmp_path):
    save(tmp_path / "x.png", np.zeros((2, 2, 3)))
    done = run("tile", "x.png", "nowhere/y.png", "--repeats", 1, 1, 1, cwd=tmp_path)
    refused(done, "nowhere/y.png: there is no directory nowhere; make it first")


def test_a_transparent_value_among_greys_of_16_bits_is_refused(tmp_path):
    """Pillow would clip each grey to 255."""
    greys = np.array([[7, 300], [40000, 65535]], np.uint16)
    Image.fromarray(greys).save(tmp_path / "t.png", transparency=7)
    refused(
        run("tile", "t.png", "y.npy", "--repeats", 1, 1, 1, cwd=tmp_path), "mode I;16", "convert"
    )


def test_an_image_of_an_unsupported_format_is_refused(tmp_path):
    """Pillow would start another program to read this file."""
    Image.new("RGB", (4, 4)).save(tmp_path / "x.eps")
    (tmp_path / "x.eps").rename(tmp_path / "x.jpg")
    refused(run("tile", "x.jpg", "y.npy", "--repeats", 1, 1, 1, cwd=tmp_path), "cannot identify")


def test_a_large_image_is_refused_before_it_is_decoded(tmp_path):
    Image.new("RGB", (3000, 3000)).save(tmp_path / "x.png")
    cut = (tmp_path / "x.png").read_bytes()[:200]  # too short for its pixels to be decoded
    (tmp_path / "x.png").write_bytes(cut)
    words = ("tile", "x.png", "y.png", "--repeats", 1, 1, 1)
    refused(run(*words, "--max-bytes", 26_999_999, cwd=tmp_path), "3000 by 3000", "27000000 bytes")
    refused(run(*words, "--max-bytes", 27_000_000, cwd=tmp_path), "cannot be read as an image")


def test_the_image_of_an_empty_result_is_limited_too(tmp_path, monkeypatch):
    """Without `max_bytes`, Pillow's own limit holds."""
    Image.new("L", (20, 10)).save(tmp_path / "x.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 99)
    files = tmp_path / "x.png", tmp_path / "y.npy"
    for limit, text in ((None, "pass --max-bytes"), (199, "more than --max-bytes 199; raise it")):
        with pytest.raises(_files.FileError, match=text):
            cli.tile(*files, repeats=[0, 1, 1], max_bytes=limit)
    cli.tile(*files, repeats=[0, 1, 1], max_bytes=200)
    assert np.load(files[1]).shape == (0, 20, 1)


@pytest.mark.parametrize(
    ("mode", "name", "options", "nbytes"),
    [
        ("CMYK", "x.jpg", {}, 600),
        ("P", "x.png", {}, 600),
        ("P", "x.png", {"transparency": 0}, 800),  # becomes RGBA
        ("RGB", "x.png", {"transparency": (0, 0, 0)}, 800),
        ("L", "x.png", {"transparency": 0}, 400),  # becomes gray with transparency
        ("1", "x.png", {"transparency": 0}, 400),
        ("1", "x.png", {}, 200),
        ("I;16", "x.png", {}, 400),
    ],
)
def test_max_bytes_counts_the_bytes_of_an_image_as_it_is_read(
    tmp_path, mode, name, options, nbytes
):
    Image.new(mode, (20, 10)).save(tmp_path / name, **options)
    with pytest.raises(_files.FileError, match=f"10 by 20 pixels take {nbytes} bytes"):
        _files.read(tmp_path / name, nbytes - 1)
    assert _files.read(tmp_path / name, nbytes).nbytes == nbytes


def test_an_image_past_the_limit_of_pillow_needs_max_bytes(tmp_path, monkeypatch):
    Image.new("L", (20, 10)).save(tmp_path / "x.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 99)
    with pytest.raises(_files.FileError, match=r"x\.png: .*200 pixels.* pass --max-bytes"):
        _files.read(tmp_path / "x.png")
    text = r"^\S+x\.png: its 10 by 20 pixels take 200 bytes .* more than --max-bytes 199; raise it"
    with pytest.raises(_files.FileError, match=text):
        _files.read(tmp_path / "x.png", 199)
    assert _files.read(tmp_path / "x.png", 200).shape == (10, 20, 1)
    assert Image.MAX_IMAGE_PIXELS == 99


def test_the_exif_rotation_of_a_photograph_is_applied(tmp_path):
    image = Image.new("RGB", (8, 4))
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(tmp_path / "x.jpg", exif=exif)
    assert run("tile", "x.jpg", "y.png", "--repeats", 1, 1, 1, cwd=tmp_path).returncode == 0
    assert pixels(tmp_path / "y.png").shape == (8, 4, 3)


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
def test_an_image_whose_exif_is_broken_is_read_as_it_lies(tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    Image.new("RGB", (8, 4)).save(path, exif=b"Exif\0\0broken")
    assert _files.read(path).shape == (4, 8, 3)


def test_values_that_a_format_would_change_are_refused(tmp_path):
    Image.new("I;16", (3, 2), 1000).save(tmp_path / "deep.png")
    Image.new("RGBA", (3, 2)).save(tmp_path / "clear.png")
    for source, target, part in (
        ("deep.png", "y.webp", "WEBP takes (height, width, channels) of uint8 with 1/3/4 channels"),
        ("deep.png", "y.jpg", "save as .png or .npy"),
        ("clear.png", "y.jpg", "save as .png or .webp or .npy"),
    ):
        refused(run("tile", source, target, "--repeats", 1, 1, 1, cwd=tmp_path), part)
    wide = run("tile", "clear.png", "y.webp", "--repeats", 1, 10_000, 1, cwd=tmp_path)
    refused(wide, "WEBP takes 1 to 16383")


def test_links_permissions_and_long_names_are_kept(tmp_path, array):
    (tmp_path / "real.npy").write_bytes(b"old")
    (tmp_path / "real.npy").chmod(0o600)
    (tmp_path / "link.npy").symlink_to("real.npy")
    assert run("tile", "x.npy", "link.npy", "--repeats", 2, cwd=tmp_path).returncode == 0
    assert (tmp_path / "link.npy").is_symlink()
    assert np.load(tmp_path / "real.npy").tolist() == np.tile(array, 2).tolist()
    assert (tmp_path / "real.npy").stat().st_mode & 0o777 == 0o600
    name = "n" * 251 + ".npy"
    assert run("tile", "x.npy", name, "--repeats", 2, cwd=tmp_path).returncode == 0
    (tmp_path / "folder.npy").mkdir()
    refused(run("tile", "x.npy", "folder.npy", "--repeats", 2, cwd=tmp_path), "is a directory")


@pytest.mark.parametrize("name", ["y.npy", "y.png"])
def test_a_file_that_replaces_a_private_one_is_private_from_the_start(tmp_path, monkeypatch, name):
    (tmp_path / name).touch(0o600)
    modes = []

    def copymode(_, written):
        modes.append(written.stat().st_mode & 0o777)

    monkeypatch.setattr(_files.shutil, "copymode", copymode)
    _files.write(tmp_path / name, (2, 2, 3), np.dtype(np.uint8), lambda out: out.fill(1))
    assert modes == [0o600]


@pytest.mark.parametrize("name", ["y.npy", "y.png"])
def test_a_read_only_file_is_not_replaced(tmp_path, monkeypatch, name):
    path = tmp_path / name
    path.write_bytes(b"old")
    path.chmod(0o444)
    if os.access(path, os.W_OK):  # root may write to any file
        monkeypatch.setattr(_files.os, "access", lambda file, _: file != path)
    with pytest.raises(_files.FileError, match=f"{name}: is read-only; make it writable"):
        _files.write(path, (2, 2, 3), np.dtype(np.uint8), lambda out: out.fill(1))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("array")
def test_file_names_are_printed_literally(tmp_path):
    done = run("tile", "x.npy", "[bold].npy", "--repeats", 2, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "[bold].npy: (2, 6) >i4\n")


@pytest.mark.usefixtures("array")
def test_output_that_cannot_be_printed_is_no_error(tmp_path):
    words = ["tile", "x.npy", "y.npy", "--repeats", "2"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tileops", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            cwd=tmp_path,
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_result_that_the_disk_cannot_hold_is_refused(tmp_path, monkeypatch):
    usage = _files.shutil.disk_usage(tmp_path)
    path, kind = tmp_path / "y.npy", np.dtype("f8")
    monkeypatch.setattr(_files.shutil, "disk_usage", lambda _: usage._replace(free=15))
    with pytest.raises(_files.FileError, match="takes 16 bytes and 15 are free"):
        _files.write(path, (2,), kind, pytest.fail)
    monkeypatch.setattr(_files.shutil, "disk_usage", lambda _: usage._replace(free=16))
    _files.write(path, (2,), kind, lambda out: out.fill(1))
    assert np.load(tmp_path / "y.npy").tolist() == [1, 1]


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system reserves no blocks")
def test_the_disk_holds_room_for_the_result_before_it_is_written(tmp_path, monkeypatch):
    """A write to a mapped file ends the process if the disk is full by then."""
    reserved = []

    def reserve(file, start, length):
        reserved.append((os.fstat(file).st_size, start, length))

    def fill(_):
        (written,) = tmp_path.glob(".tileops-*")
        size = written.stat().st_size
        assert reserved == [(size, 0, size)]

    monkeypatch.setattr(os, "posix_fallocate", reserve)
    _files.write(tmp_path / "y.npy", (1000,), np.dtype(np.uint8), fill)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_npy_files_is_read(tmp_path, version):
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array(file, np.arange(3), version)
    assert _files.read(tmp_path / "x.npy").tolist() == [0, 1, 2]


def test_the_pixels_of_an_image_count_with_their_bytes(tmp_path):
    Image.new("I;16", (3, 2)).save(tmp_path / "x.png")
    assert _files.read(tmp_path / "x.png", 12).nbytes == 12
    with pytest.raises(_files.FileError, match="2 by 3 pixels take 12 bytes"):
        _files.read(tmp_path / "x.png", 11)


def test_a_memory_error_of_reading_is_passed_on(tmp_path, monkeypatch):
    def fail(*_, **_options):
        raise MemoryError

    save(tmp_path / "x.png", [[1]])
    monkeypatch.setattr(Image, "open", fail)
    with pytest.raises(MemoryError):
        _files.read(tmp_path / "x.png")


def test_the_source_may_be_larger_than_memory(tmp_path):
    """Linux grants no private mapping of so many bytes that could be written to."""
    if not hasattr(os, "sysconf"):
        pytest.skip("the size of memory is not known here")
    nbytes = 2 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with (tmp_path / "x.npy").open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (nbytes,)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + nbytes)  # a file of holes, which takes no room on the disk
    done = run("tile", "x.npy", "y.npy", "--repeats", 0, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "y.npy").shape == (0,)


def test_a_target_that_cannot_be_replaced_is_named_once(tmp_path, monkeypatch):
    """Such as a file that is mounted by itself, or that of another user in a sticky directory."""

    def refuse(temporary, target):
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(temporary), None, str(target))

    (tmp_path / "y.npy").write_bytes(b"precious")
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(_files.FileError) as caught:
        _files.write(tmp_path / "y.npy", (2,), np.dtype(np.uint8), lambda _: None)
    reason = os.strerror(errno.EBUSY)
    assert str(caught.value) == (
        f"{tmp_path / 'y.npy'}: cannot be replaced: {reason}; name another file"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["y.npy"]
    assert (tmp_path / "y.npy").read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("descr", "shape", "text"),
    [
        ("<U0", (-1,), "its shape is (-1,); no size may be negative"),  # NumPy divides by zero
        ("<f8", (2, -1), "its shape is (2, -1); no size may be negative"),
        ("<f8", (2**62, 2**62), "array is too big"),  # NumPy also warns
    ],
)
def test_an_npy_header_with_an_impossible_shape_is_refused(tmp_path, descr, shape, text):
    with (tmp_path / "x.npy").open("wb") as file:
        header = {"descr": descr, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(64))
    refused(run("tile", "x.npy", "y.npy", "--repeats", 2, cwd=tmp_path), "x.npy: ", text)


def test_warnings_of_libraries_are_not_printed(tmp_path):
    """NumPy warns of files that Python 2 wrote, and of fields with names beyond Latin-1."""
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (2L,), }".ljust(117) + b"\n"
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\1\0v\0" + header + b"\1\2")
    records = np.zeros(2, [("\u65e5", "i4")])
    with pytest.warns(UserWarning, match="format 3.0"):
        np.save(tmp_path / "z.npy", records)
    for name, expected in (
        ("x.npy", np.array([1, 2] * 2, np.uint8)),
        ("z.npy", np.tile(records, 2)),
    ):
        done = run("tile", name, "y.npy", "--repeats", 2, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert np.array_equal(np.load(tmp_path / "y.npy"), expected)


def test_a_wrong_number_of_threads_is_ignored_with_a_warning(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(2**20))
    env = os.environ | {"TILEOPS_NUM_THREADS": "many", "PYTHONWARNINGS": "error"}
    done = run("tile", "x.npy", "y.npy", "--repeats", 4, cwd=tmp_path, env=env)
    assert done.returncode == 0
    assert "TILEOPS_NUM_THREADS is 'many'; it is ignored" in done.stderr
    assert np.load(tmp_path / "y.npy").shape == (2**22,)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("name", ["x.npy", "x.png"])
def test_a_pipe_is_not_read(tmp_path, name):
    os.mkfifo(tmp_path / name)
    done = run("tile", name, "y.npy", "--repeats", 1, 1, 2, cwd=tmp_path)
    refused(done, f"{name}: is a device, pipe or socket; name a file")


def test_an_error_of_a_full_disk_names_the_file(tmp_path, monkeypatch):
    def fail(*_, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Image.Image, "save", fail)
    for name, fill in (("y.npy", fail), ("y.png", lambda _: None)):
        with pytest.raises(OSError, match=rf"No space left on device: '.*{name}'"):
            _files.write(tmp_path / name, (2, 2, 3), np.dtype(np.uint8), fill)


def test_an_error_of_reading_names_the_file(tmp_path, monkeypatch):
    def fail(*_, **_options):
        raise OSError(errno.EIO, "Input/output error")

    for name in ("x.npy", "x.png"):
        with pytest.raises(FileNotFoundError, match=rf"No such file or directory: '.*{name}'"):
            _files.read(tmp_path / name)
    monkeypatch.setattr(Image, "open", fail)
    with pytest.raises(OSError, match=r"Input/output error: '.*x\.png'"):
        _files.read(tmp_path / "x.png")


def test_an_error_about_another_file_keeps_its_name(tmp_path):
    def fail(_):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "other")

    with pytest.raises(FileNotFoundError, match="'other'"):
        _files.write(tmp_path / "y.npy", (2,), np.dtype(np.uint8), fail)


@pytest.mark.parametrize("name", ["y.npy", "y.png"])
def test_a_new_file_has_the_default_permissions(tmp_path, name):
    (tmp_path / "other").touch()
    _files.write(tmp_path / name, (2, 2, 3), np.dtype(np.uint8), lambda out: out.fill(1))
    assert (tmp_path / name).stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_failure_while_writing_leaves_the_target(tmp_path):
    (tmp_path / "y.npy").write_bytes(b"precious")

    def fail(out):
        out[...] = 1
        raise KeyboardInterrupt

    for name in ("y.npy", "y.png"):
        with pytest.raises(KeyboardInterrupt):
            _files.write(tmp_path / name, (2, 2, 3), np.dtype(np.uint8), fail)
    assert (tmp_path / "y.npy").read_bytes() == b"precious"
    assert [p.name for p in tmp_path.iterdir()] == ["y.npy"]


def test_info_lists_every_library():
    done = run("info")
    assert done.returncode == 0
    for part in ("numpy", np.__version__, "cpu", "torch", "cupy", tileops.__version__):
        assert part in done.stdout


def test_help_and_version():
    assert "--repeats" in run("tile", "--help").stdout
    assert run("--version").stdout.strip() == importlib.metadata.version("array-tileops")
    refused(run("tyle"), "tyle")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("name", ["out.npy", "out.png"])
def test_a_pipe_is_not_replaced(tmp_path, name):
    np.save(tmp_path / "x.npy", np.ones((2, 2, 3), np.uint8))
    pipe = tmp_path / name
    os.mkfifo(pipe)
    done = run("tile", "x.npy", name, "--repeats", 2, 1, 1, cwd=tmp_path)
    refused(done, "is a device, pipe or socket; name a file")
    assert pipe.is_fifo()


def test_pixels_of_either_byte_order_are_written(tmp_path):
    pixels = np.arange(6, dtype=">u2").reshape(2, 3, 1)
    np.save(tmp_path / "x.npy", pixels)
    run("tile", "x.npy", "y.png", "--repeats", 2, 1, 1, cwd=tmp_path).check_returncode()
    run("tile", "y.png", "z.npy", "--repeats", 1, 1, 1, cwd=tmp_path).check_returncode()
    assert np.array_equal(np.load(tmp_path / "z.npy"), np.tile(pixels, (2, 1, 1)))


@pytest.mark.parametrize("error", ["RuntimeError", "ImportError", "ModuleNotFoundError"])
def test_a_library_that_fails_to_import_is_named(error, tmp_path):
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text(f"raise {error}('no such\\ndriver')")
    np.save(tmp_path / "x.npy", np.ones(2))
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    own = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": path}}
    done = run("info", **own)
    assert (done.returncode, done.stderr) == (0, "")
    assert "broken" in done.stdout
    done = run("tile", "x.npy", "y.npy", "--repeats", 2, "--library", "jax", **own)
    refused(done, "--library jax is broken (no such driver)")
