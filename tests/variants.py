"""The libraries under test, each in the variants of arrays that users hold.

A variant makes an array from raw bytes and gives the raw bytes back, so that
tests compare bits for dtypes that NumPy does not know.
"""

import importlib
import sys
import sysconfig
from functools import cached_property
from pathlib import Path

import numpy as np

import kernels

HAS_GIL = not sysconfig.get_config_var("Py_GIL_DISABLED")
"""False in a free-threaded build, which frees some objects later."""

THRESHOLDS = {
    **dict.fromkeys(("numpy", "cupy", "dask"), ("measured", "tiny")),
    "torch": ("measured", "tiny", "device"),
}
"""The sets of thresholds to test with, for libraries whose copies this package plans."""

_TINY = {
    "tileops.execute.host": {
        "LEAST": 1,
        "_READ_IN_PLACE": 1,
        "_SMALL": 1,
        "_LOCATED": 1,
        "_FAR": 1,
        "_SMALL_SOURCE": 8,
    },
    "tileops._copies.job": {
        "_COPIED": 8,
        "_FEW": 0,
        "_FEW_APART": 0,
        "_LONG": 2**62,
        "MANY_RUNS": 0,
    },
    "tileops._copies.gpu": {
        "_AT_ONCE": 3,
        "_OF_MORE": 2,
        "_APART": 2,
        "_WIDER": 0,
        "_MOST_BLOCKS": 3,
        "_MOST_COUNTED": 200,
    },
    "tileops._copies.cpu": {
        "_WIDE": 12,
        "DIRECT": 12,
        "_OFTEN": 4,
        "_ELEMENT": 24,
        "_BLOCK": 48,
        "_ROWS": 2,
        "MANY_RUNS": 4,
        "_PAIRED": 2,
    },
    "tileops._copies.chains": {"_LARGEST": 64, "_SOURCE": 8},
    "tileops._copies.cost": {
        "_LEAST_COST": 5.0,
        "_STEPS": 5.0,
        "_PER_STEP": 0.5,
        "_SHARED": 64,
        "_SHARED_COST": 100.0,
    },
    "tileops.execute.torch": {"HUGE": 1},
    "tileops.execute.torch_bytes": {"_FEWEST": 1},
    "tileops.execute.torch_cost": {"_PER_ROW": 1e9},
    "tileops.execute.cupy": {"_FEWEST": 1},
}
"""Thresholds that give copies of a few bytes the steps that others take from megabytes on."""


def set_thresholds(monkeypatch, name):
    """Plan small copies as large ones; "device" also treats PyTorch's CPU tensors as a GPU's."""
    if name != "measured":
        for module, values in _TINY.items():
            library = module.rpartition(".")[2].partition("_")[0]
            if library in ALL and library not in sys.modules:
                continue
            for threshold, value in values.items():
                monkeypatch.setattr(importlib.import_module(module), threshold, value)
    if name == "device":
        torch_bytes = importlib.import_module("tileops.execute.torch_bytes")
        monkeypatch.setattr(torch_bytes, "_is_on_gpu", lambda _: True)
        monkeypatch.setattr(torch_bytes, "_cuda", lambda: kernels)
    forget_plans()


def forget_plans():
    """Empty every cache of the modules that plan."""
    of_libraries = ("tileops.execute.device", "tileops.execute.torch_cost")
    for name, module in sys.modules.items():
        if name.startswith(("tileops._plan", "tileops._copies")) or name in of_libraries:
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def converts_bfloat16():
    """Return whether the processor has bfloat16 instructions: with them, XLA makes subnormals 0."""
    about = Path("/proc/cpuinfo")
    return about.exists() and "avx512_bf16" in about.read_text(encoding="utf-8").split()


STANDARD = {
    **{name: np.dtype(name).itemsize for name in ("bool", "int8", "int16", "int32", "int64")},
    **{name: np.dtype(name).itemsize for name in ("uint8", "uint16", "uint32", "uint64")},
    **{name: np.dtype(name).itemsize for name in ("float32", "float64")},
    **{name: np.dtype(name).itemsize for name in ("complex64", "complex128")},
}
"""The dtypes of the standard, with their bytes per element."""

NARROW = {"int2": 0x01, "uint2": 0x03, "int4": 0x07, "uint4": 0x0F, "float4_e2m1fn": 0x0F}
"""Dtypes narrower than the byte that holds them, with a mask of the bits that they use."""


def random_bits(rng, dtype, itemsize, shape):
    """Draw random bits, including NaN payloads and both zeros, except where only some are legal."""
    count = int(np.prod(shape, dtype=np.int64)) * itemsize
    raw = rng.integers(0, 256, count, dtype=np.uint8)
    name = str(dtype)
    if name == "bool":
        raw &= 1
    elif name in NARROW:
        raw &= NARROW[name]
    elif name[1:2] == "U":
        raw = raw.reshape(-1, 4) % 128
        raw[:, [0, 1, 2] if name[0] == ">" else [1, 2, 3]] = 0
    return np.frombuffer(raw.tobytes(), f"V{itemsize}").reshape(shape)


def assert_moved(xp, x, result, expected):
    """Check the library, dtype, shape, device and bits of a result."""
    assert xp.is_own(result)
    assert result.dtype == x.dtype
    assert tuple(result.shape) == expected.shape
    assert xp.place(result) == xp.place(x)
    assert xp.bits(result).tobytes() == expected.tobytes()


class Variant:
    """Arrays of a library, made in one way."""

    library = ""
    layout = "plain"
    device = None
    has_views = True
    """Whether the library is known to have views, which take no memory."""
    broadcasts_views = True
    """Whether its `broadcast_to` gives a view, even if the package does not know that."""
    max_rank = 64
    not_summed = ()
    """Dtypes that the library sums in another dtype."""

    def __repr__(self):
        return "-".join(filter(None, (self.library, self.layout, self.device)))

    @cached_property
    def module(self):
        return importlib.import_module(self.library)

    @property
    def dtypes(self):
        """The name of each dtype, with its bytes per element."""
        return STANDARD

    def missing(self):
        """Say what this variant needs and the machine lacks, if anything."""
        self.module  # noqa: B018 (a library that is missing is an error)

    def plain(self, bits, dtype):
        """Make a plain array of the library from raw bytes."""
        raise NotImplementedError

    def make(self, bits, dtype):
        """Make an array in this variant's layout."""
        return getattr(self, self.layout)(bits, dtype)

    def strided(self, bits, dtype):
        """Make a view of every second column of a transposed array."""
        if bits.ndim == 0:
            return self.plain(bits, dtype)
        wide = np.repeat(bits, 2, axis=-1)
        return self.transposed(self.plain(np.ascontiguousarray(wide.T), dtype))[..., ::2]

    def transposed(self, x):
        return x.transpose()

    def numbers(self, *values):
        """Make an integer array."""
        return self.plain(np.array(values, np.int64).view("V8"), "int64")

    def bits(self, x):
        """Return an array's raw bytes."""
        values = np.array(self.host(x), order="C")
        return values.view(f"V{values.itemsize}")

    def host(self, x):
        return np.asarray(x)

    def is_own(self, x):
        """Return whether an array belongs to this library."""
        return type(x).__module__.partition(".")[0] == self.library

    def shares(self, a, b):
        """Return whether two arrays share memory."""
        return np.shares_memory(a, b)

    def is_contiguous(self, x):
        return x.flags.c_contiguous

    def place(self, x):
        """Return what identifies an array's device."""
        return getattr(x, "device", None)


class NumPy(Variant):
    library = "numpy"

    def __init__(self, layout="plain"):
        self.layout = layout

    @property
    def dtypes(self):
        import ml_dtypes

        extra = ("float16", "longdouble", "clongdouble", ">i2", ">f8", ">c8", "S3", "<U2", ">U2")
        extra += ("datetime64[ns]", "timedelta64[s]", "V5", "i2,f8", "(2,3)u1,>u4")
        small = [
            *("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e8m0fnu"),
            *("float4_e2m1fn", "int2", "uint2", "int4", "uint4"),
        ]
        return {
            **STANDARD,
            **{name: np.dtype(name).itemsize for name in extra},
            **{name: np.dtype(getattr(ml_dtypes, name)).itemsize for name in small},
        }

    def plain(self, bits, dtype):
        return np.array(bits).view(np.dtype(dtype))

    def readonly(self, bits, dtype):
        x = self.plain(bits, dtype)
        x.flags.writeable = False
        return x

    def reversed(self, bits, dtype):
        back = (slice(None, None, -1),) * bits.ndim
        return self.plain(bits[back], dtype)[(*back, ...)]


class Strict(Variant):
    library = "array_api_strict"
    has_views = False  # the standard promises no views

    def plain(self, bits, dtype):
        return self.module.asarray(bits.view(dtype))

    def shares(self, a, b):
        return np.shares_memory(np.asarray(a), np.asarray(b))

    def is_contiguous(self, x):
        return np.asarray(x).flags.c_contiguous


class Torch(Variant):
    library = "torch"

    def __init__(self, layout="plain", device="cpu"):
        self.layout, self.device = layout, device

    @property
    def dtypes(self):
        found = {
            name: getattr(self.module, name).itemsize
            for name in dir(self.module)
            if isinstance(getattr(self.module, name), self.module.dtype)
        }
        aliases = ("half", "float", "double", "short", "int", "long", "cfloat", "cdouble", "chalf")
        kinds = ("bool", "int", "uint", "float", "bfloat", "complex", "bits")
        return {k: n for k, n in found.items() if k.startswith(kinds) and k not in aliases}

    def missing(self):
        self.module  # noqa: B018 (a library that is missing is an error)
        if self.device == "cuda" and not self.module.cuda.is_available():
            return "no CUDA device"
        return None

    def plain(self, bits, dtype):
        torch = self.module
        dtype = getattr(torch, dtype)
        x = torch.empty(bits.shape, dtype=dtype)
        if bits.size:
            raw = np.frombuffer(bytearray(bits.tobytes()), np.uint8)
            x = torch.from_numpy(raw).view(dtype).reshape(bits.shape)
        return x.to(self.device)

    def transposed(self, x):
        return x.permute(*reversed(range(x.ndim)))

    def host(self, x):
        torch = self.module
        values = np.empty(tuple(x.shape), f"V{x.element_size()}")
        if x.element_size() == 1:
            x = x.view(torch.uint8)  # PyTorch cannot copy the narrow dtypes
        if x.numel():
            own = torch.empty(x.shape, dtype=x.dtype).copy_(x.detach())
            raw = own.reshape(-1).view(torch.uint8).numpy()
            values = np.frombuffer(raw.tobytes(), values.dtype).reshape(values.shape)
        return values

    def shares(self, a, b):
        return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()

    def is_contiguous(self, x):
        return x.is_contiguous()


class Jax(Variant):
    library = "jax"
    has_views = broadcasts_views = False

    def __init__(self, device="cpu"):
        self.device = device

    @cached_property
    def module(self):
        import jax

        jax.config.update("jax_enable_x64", True)
        return jax

    @property
    def dtypes(self):
        names = ("float16", "bfloat16", *(n for n in dir(self.module.numpy) if "float8" in n))
        names += ("int2", "int4", "uint2", "uint4", "float4_e2m1fn")
        return {**STANDARD, **{n: self.module.numpy.dtype(n).itemsize for n in names}}

    def missing(self):
        try:
            self.module.devices(self.device)
        except RuntimeError as error:
            return str(error)
        return None

    def plain(self, bits, dtype):
        values = np.array(bits).view(self.module.numpy.dtype(dtype))
        return self.module.device_put(values, self.module.devices(self.device)[0])

    def is_own(self, x):
        return isinstance(x, self.module.Array)

    def shares(self, a, b):
        return a.unsafe_buffer_pointer() == b.unsafe_buffer_pointer()

    def is_contiguous(self, x):
        return True  # JAX has no other arrays


class Dask(Variant):
    library = "dask"
    layout = "chunked"

    @property
    def dtypes(self):
        return {**STANDARD, "float16": 2, ">f8": 8, "S3": 3, "<U2": 8, "datetime64[ns]": 8}

    @cached_property
    def module(self):
        import dask.array

        return dask

    def plain(self, bits, dtype):
        return self.module.array.from_array(np.array(bits).view(dtype), chunks=2)

    chunked = plain

    def host(self, x):
        return x.compute(scheduler="synchronous")

    def shares(self, a, b):
        chunk = a.to_delayed().ravel()[0].compute(scheduler="synchronous")
        return a is b or not chunk.flags.writeable  # a broadcast chunk is read-only

    def is_contiguous(self, x):
        return self.host(x).flags.c_contiguous


class CuPy(Variant):
    library = "cupy"
    device = "cuda"

    def __init__(self, layout="plain"):
        self.layout = layout

    @property
    def dtypes(self):
        import ml_dtypes  # noqa: F401 (this registers bfloat16 with NumPy)

        return {**STANDARD, "float16": 2, "bfloat16": 2}

    def plain(self, bits, dtype):
        return self.module.asarray(np.array(bits).view(dtype))

    def host(self, x):
        return x.get()

    def shares(self, a, b):
        return self.module.shares_memory(a, b)


class Other(Variant):
    """A library of the standard with neither a module here nor a conversion of NumPy's arrays."""

    has_views = False

    def is_contiguous(self, x):
        return True


class MArray(Other):
    library = "marray"

    def plain(self, bits, dtype):
        return self.module.masked_namespace(np).asarray(np.array(bits).view(dtype))

    def host(self, x):
        return x.data

    def shares(self, a, b):
        return np.shares_memory(a.data, b.data)

    def is_contiguous(self, x):
        return x.data.flags.c_contiguous


class NDOnnx(Other):
    library = "ndonnx"
    broadcasts_views = False
    not_summed = ("uint64",)

    @property
    def dtypes(self):
        return {name: n for name, n in STANDARD.items() if not name.startswith("complex")}

    def plain(self, bits, dtype):
        return self.module.asarray(np.array(bits).view(dtype))

    def host(self, x):
        return x.unwrap_numpy()

    def shares(self, a, b):
        return a is b  # its arrays are nodes of a graph


class Sparse(Other):
    library = "sparse"
    broadcasts_views = False
    max_rank = 32
    not_summed = ("uint64",)

    def plain(self, bits, dtype):
        return self.module.COO.from_numpy(np.array(bits).view(dtype))

    def host(self, x):
        return x.todense()

    def shares(self, a, b):
        return np.shares_memory(a.data, b.data)


OTHERS = {"marray": [MArray()], "ndonnx": [NDOnnx()], "sparse": [Sparse()]}

ALL = {
    "numpy": [NumPy(layout) for layout in ("plain", "readonly", "strided", "reversed")],
    "array_api_strict": [Strict()],
    "torch": [
        Torch(layout, device) for device in ("cpu", "cuda") for layout in ("plain", "strided")
    ],
    "jax": [Jax("cpu"), Jax("cuda")],
    "dask": [Dask()],
    "cupy": [CuPy(layout) for layout in ("plain", "strided")],
    **OTHERS,
}
