"""The command line, as a user runs it."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tileops

import reference

pytestmark = pytest.mark.library("numpy")

TEXTURE = Path(__file__).parents[1] / "examples" / "azulejo.png"


def run(*words, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "tileops", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
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


def test_the_first_command_of_the_readme(tmp_path):
    done = run("tile", TEXTURE, tmp_path / "wall.png", "--repeats", 4, 6, 1)
    assert done.returncode == 0, done.stderr
    assert "wall.png: (384, 576, 3) uint8" in done.stdout.replace("\n", "")
    with Image.open(TEXTURE) as one, Image.open(tmp_path / "wall.png") as wall:
        assert np.array_equal(np.asarray(wall), reference.tiled(np.asarray(one), (4, 6, 1)))


def test_arrays_keep_their_bits_and_byte_order(tmp_path, array):
    assert run("tile", "x.npy", "y.npy", "--repeats", 2, 1, 2, cwd=tmp_path).returncode == 0
    result = np.load(tmp_path / "y.npy")
    assert result.dtype == array.dtype
    assert result.tolist() == np.tile(array, (2, 1, 2)).tolist()
    assert run("expand", "x.npy", "y.npy", "--shape", 4, 1, 1, cwd=tmp_path).returncode == 0
    assert np.load(tmp_path / "y.npy").tolist() == [array.tolist()] * 4


def test_empty_results_and_overwriting_the_source(tmp_path, array):
    assert run("tile", "x.npy", "x.npy", "--repeats", 2, cwd=tmp_path).returncode == 0
    assert np.load(tmp_path / "x.npy").tolist() == np.tile(array, 2).tolist()
    assert run("tile", "x.npy", "x.npy", "--repeats", 0, cwd=tmp_path).returncode == 0
    assert np.load(tmp_path / "x.npy").shape == (2, 0)
    assert run("tile", "x.npy", "x.npy", "--repeats", 3, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("mode", ["1", "L", "LA", "RGB", "RGBA", "P", "I;16"])
def test_every_kind_of_png(tmp_path, mode):
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
def test_other_images(tmp_path, suffix):
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
        (["--repeats", "x"], ["--repeats x", "whole numbers"]),
        (["--repeats"], ["--repeats needs a whole number"]),
        ([], ["--repeats"]),
        (["--repeats", "99999999999", "99999999999"], ["2**63-1", "smaller repeats"]),
        (["--repeats", "99999999999"], ["bytes and", "are free"]),
        (["--repeats", "9", "--max-bytes", "100"], ["216 bytes", "max_bytes=100"]),
        (["--repeats", "2", "--library", "nope"], ["nope is not known", "numpy, torch"]),
        (["--repeats", "2", "--library", "torch"], ["torch is not installed"]),
        (["--repeats", "2", "--device", "cuda"], ["cuda"]),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("array")
def test_a_refusal_is_one_line_and_leaves_the_target(tmp_path, words, parts):
    (tmp_path / "y.npy").write_bytes(b"precious")
    refused(run("tile", "x.npy", "y.npy", *words, cwd=tmp_path), *parts)
    assert (tmp_path / "y.npy").read_bytes() == b"precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.npy", "y.npy"]


@pytest.mark.usefixtures("array")
def test_refused_files(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{}], object))
    (tmp_path / "text.npy").write_text("not an array")
    (tmp_path / "text.png").write_text("not a picture")
    before = sorted(p.name for p in tmp_path.iterdir())
    for source, target, part in (
        ("missing.npy", "y.npy", "missing.npy"),
        ("objects.npy", "y.npy", "objects.npy"),
        ("text.npy", "y.npy", "text.npy"),
        ("text.png", "y.npy", "text.png"),
        ("x.txt", "y.npy", "suffix '.txt' is none of .npy"),
        ("x.npy", "y.txt", "suffix '.txt' is none of .npy"),
        ("x.npy", "nowhere/y.npy", "nowhere"),
        ("x.npy", "y.png", "pixels of >i4"),
    ):
        refused(run("tile", source, target, "--repeats", 2, cwd=tmp_path), part)
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_an_image_needs_three_counts(tmp_path):
    Image.new("RGB", (3, 2)).save(tmp_path / "x.png")
    refused(run("tile", "x.png", "y.png", "--repeats", 4, 6, cwd=tmp_path), "18", "such as 4 6 1")


def test_info_lists_every_library():
    done = run("info")
    assert done.returncode == 0
    for part in ("numpy", np.__version__, "cpu", "torch", "not installed", tileops.__version__):
        assert part in done.stdout


def test_help_and_version():
    assert "--repeats" in run("tile", "--help").stdout
    assert run("--version").stdout.strip() == importlib.metadata.version("array-tileops")
    refused(run("tyle"), "tyle")
