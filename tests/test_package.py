"""The package as a whole: its names, its imports, and its independence of other libraries."""

import re
import subprocess
import sys
from importlib.metadata import requires, version

import pytest

import tileops
from tileops import errors

pytestmark = pytest.mark.library("numpy")

OTHERS = ("torch", "jax", "cupy", "dask", "onnx", "array_api_strict")


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_public_names_are_complete():
    operators = {
        f"{name}{part}" for name in ("tile", "expand") for part in ("", "_shape", "_adjoint")
    }
    operators |= {"single_threaded", "__version__"}
    dialects = {"onnx", "openvino", "directml"}
    assert set(tileops.__all__) == operators | dialects | set(errors.__all__)
    assert all(hasattr(tileops, name) for name in tileops.__all__)


def test_the_installed_version_is_that_of_the_package():
    assert version("array-tileops") == tileops.__version__


def test_only_numpy_and_array_api_compat_are_required():
    needed = [r for r in requires("array-tileops") if "extra ==" not in r]
    assert sorted(re.match(r"[\w-]+", r)[0] for r in needed) == ["array-api-compat", "numpy"]


def test_importing_the_package_imports_no_library():
    others = (*OTHERS, "cyclopts", "rich", "PIL")
    code = f"import sys, tileops; print([m for m in {others} if m in sys.modules])"
    assert run(code) == "[]\n"


def test_copies_work_on_systems_that_lack_features_of_linux():
    """macOS binds no thread to a processor, Windows cannot fork, and Pyodide starts no thread."""
    code = (
        "import _thread, mmap, os\n"
        "lacking = {\n"
        "    _thread: ('get_native_id',),\n"
        "    mmap: ('MADV_HUGEPAGE',),\n"
        "    os: ('register_at_fork', 'sched_getaffinity', 'sched_setaffinity'),\n"
        "}\n"
        "for module, names in lacking.items():\n"
        "    for name in names: vars(module).pop(name, None)\n"
        'def start(*_): raise RuntimeError("can\'t start new thread")\n'
        "_thread.start_new_thread = start\n"
        "os.cpu_count = lambda: 4\n"
        "import numpy as np, tileops\n"
        "x = np.arange(2**20).reshape(2**10, 2**10)\n"
        "print(tileops.tile(x, (2, 3)).tobytes() == np.tile(x, (2, 3)).tobytes())"
    )
    assert run(code) == "True\n"


def test_using_numpy_imports_no_library():
    code = (
        "import sys, numpy as np, tileops\n"
        "tileops.tile(np.ones(3), np.array([2])); tileops.expand(np.ones(3), (2, 3))\n"
        "try: tileops.tile([1], 2.0)\n"
        "except TypeError: pass\n"
        "try: tileops.tile(np.ones(3), '2')\n"
        "except TypeError: pass\n"
        "class Stands:\n"
        "    def __jax_array__(self): raise AssertionError\n"
        "try: tileops.tile(Stands(), 2)\n"
        "except tileops.DTypeError: pass\n"
        f"print([m for m in {OTHERS} if m in sys.modules])"
    )
    assert run(code) == "[]\n"


def test_no_call_on_numpy_imports_anything():
    """A child forked while another thread imports would wait forever for that import to end."""
    code = (
        "import sys, numpy as np, tileops\n"
        "before = set(sys.modules)\n"
        "x = np.ones((2**20, 3), np.uint8)\n"
        "for out in (None, np.empty((2**20, 24), np.uint8)):\n"
        "    tileops.tile(x, (1, 8), out=out)\n"
        "tileops.expand(np.arange(3), (2, 3), copy=True)\n"
        "print(set(sys.modules) - before)"
    )
    assert run(code) == "set()\n"


def test_no_file_is_read_in_an_encoding_that_depends_on_the_locale():
    code = "import numpy as np, tileops; print(tileops.tile(np.ones(2**20, np.uint8), 40).size)"
    options = ("-X", "warn_default_encoding", "-W", "error")
    command = [sys.executable, *options, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == f"{40 * 2**20}\n", done.stderr


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("None", "import of onnx halted; None in sys.modules"),
        # as a folder of that name gives, or a package whose libraries are broken
        ("types.ModuleType('onnx')", "cannot import name 'helper' from 'onnx' (unknown location)"),
    ],
)
def test_the_onnx_operators_need_no_onnx(module, reason):
    code = (
        f"import sys, types; sys.modules['onnx'] = {module}\n"
        "import numpy as np, tileops\n"
        "print(tileops.onnx.tile(np.ones((1, 2)), [2, 1]).shape)\n"
        "print(tileops.onnx.infer_tile_shape(('n', 2), (1, 2)))\n"
        "try: tileops.onnx.upgrade\n"
        "except AttributeError as error: print(error)\n"
        "print(hasattr(tileops.onnx, 'upgrade'), 'backend' in dir(tileops.onnx))\n"
        "import pydoc; pydoc.render_doc(tileops.onnx)\n"
    )
    assert run(code).endswith(
        "(2, 2)\n(None, 4)\n"
        f"tileops.onnx.upgrade needs the package onnx ({reason}); install array-tileops with its "
        "extra 'onnx'\n"
        "False True\n"
    )


def test_the_modules_that_need_onnx_are_imported_when_asked_for():
    code = (
        "import sys, tileops\n"
        "print('onnx' in sys.modules)\n"
        "tileops.onnx.upgrade.upgrade, tileops.onnx.reference.ops, tileops.onnx.backend\n"
        "print('onnx' in sys.modules)\n"
        "try: tileops.onnx.nothing\n"
        "except AttributeError as error: print(error)"
    )
    expected = "False\nTrue\nmodule 'tileops.onnx' has no attribute 'nothing'\n"
    assert run(code) == expected


def test_an_import_error_from_within_onnx_is_passed_on(monkeypatch):
    def fail(_):
        raise ModuleNotFoundError("No module named 'google'", name="google")

    monkeypatch.delattr("tileops.onnx.upgrade")
    monkeypatch.setattr("tileops.onnx.import_module", fail)
    with pytest.raises(ModuleNotFoundError, match="google"):
        _ = tileops.onnx.upgrade


def test_each_error_is_also_a_builtin_error():
    for name in set(errors.__all__) - {"TileOpsError"}:
        error = getattr(tileops, name)
        assert issubclass(error, tileops.TileOpsError)
        assert issubclass(error, ValueError) or issubclass(error, TypeError)
    assert issubclass(tileops.RepeatsTypeError, TypeError)
    assert issubclass(tileops.ShapeTypeError, TypeError)


@pytest.mark.parametrize(
    "torch", ["None", "types.ModuleType('torch')", "types.SimpleNamespace(Tensor=int)"]
)
def test_a_blocked_or_half_imported_torch_does_not_disturb_numpy(torch):
    code = (
        f"import sys, types; sys.modules['torch'] = {torch}\n"
        "import numpy as np, tileops\n"
        "print(tileops.tile(np.arange(2), 2))\n"
    )
    assert run(code) == "[0 1 0 1]\n"


@pytest.mark.library("array_api_strict", "dask")
@pytest.mark.parametrize("state", ["None", "types.ModuleType(name)"])
def test_blocked_or_half_imported_libraries_do_not_disturb_others(request, state):
    library = request.config.getoption("--library").replace("dask", "dask.array")
    code = (
        f"import sys, types, {library} as xp\n"
        "for name in ('torch', 'jax', 'jax.core', 'cupy', 'dask.array', 'sparse'):\n"
        f"    if name != {library!r}:\n"
        f"        sys.modules[name] = {state}\n"
        "import tileops\n"
        "x = xp.ones(2)\n"
        "g = tileops.tile(tileops.expand(x, (3, 2)), 2)\n"
        "print(tileops.tile_adjoint(g, (3, 2), 2).shape, tileops.tile_adjoint(x, 2, 1).shape)\n"
        "try:\n"
        "    tileops.tile(types.SimpleNamespace(dtype=int, shape=()), 2)\n"
        "except tileops.DTypeError:\n"
        "    print('no array')\n"
    )
    assert run(code) == "(3, 2) (2,)\nno array\n"


@pytest.mark.parametrize("library", ["torch", "jax", "cupy", "dask"])
def test_a_stub_of_another_library_changes_nothing(library):
    """Documentation tools and tests put stubs in the place of libraries."""
    code = (
        "import sys; from unittest.mock import MagicMock\n"
        f"sys.modules[{library!r}] = MagicMock()\n"
        "import numpy as np, tileops\n"
        "print(tileops.tile(np.arange(2), np.array([2])), tileops.tile_shape((2,), 2))\n"
    )
    assert run(code) == "[0 1 0 1] (4,)\n"
