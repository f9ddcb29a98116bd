"""Calls inside PyTorch programs: compiled, differentiated, exported."""

import enum
import re
import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest

import tileops

pytestmark = pytest.mark.library("torch")


@pytest.fixture
def torch():
    import torch

    return torch


@pytest.fixture
def counter(torch):
    """Return a backend that compiles nothing and counts the compilations."""
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    yield CompileCounter()
    torch._dynamo.reset()


@pytest.mark.parametrize("first, second", [("torch", "tileops"), ("tileops", "torch")])
def test_the_first_call_of_a_process_may_be_compiled(first, second):
    code = f"""
import {first}
import {second}
from torch._dynamo.testing import CompileCounter
counter = CompileCounter()
f = torch.compile(lambda x: tileops.tile(x, (2, 3)), fullgraph=True, backend=counter)
x = torch.arange(6.0).reshape(2, 3)
for _ in range(2):
    assert torch.equal(f(x), x.repeat(2, 3))
assert counter.frame_count == 1, counter.frame_count
assert torch.equal(f(x[:, :2]), x[:, :2].repeat(2, 3))
assert torch.equal(tileops.tile(x, 2), x.repeat(1, 2))
assert torch.equal(f(x), x.repeat(2, 3))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


FIRST_PROGRAMS = {
    "tileops.tile(x, r)": "x.repeat(*r.tolist())",
    "tileops.tile(x, [r[0], 1])": "x.repeat(int(r[0]), 1)",
    "tileops.tile(x, r[0].item())": "x.repeat(1, int(r[0]))",
    "tileops.expand(x[:1, :1], r)": "x[:1, :1].repeat(*r.tolist())",
    "tileops.onnx.tile(x, r)": "x.repeat(*r.tolist())",
    "tileops.onnx.tile_1(x, r[0].item(), 1)": "x.repeat(1, int(r[0]))",
    "tileops.openvino.tile(x, r)": "x.repeat(*r.tolist())",
    "tileops.directml.tile(x, r)": "x.repeat(*r.tolist())",
    "x.new_zeros(tileops.tile_shape(x.shape, r.tolist()))": "torch.zeros_like(x.repeat(*r))",
    "x.new_zeros(tileops.expand_shape((1, 1), r.tolist()))": "torch.zeros(*r)",
    "tileops.tile_adjoint(x, (2, 3), (x.shape[0] // 2, 1))": "x.reshape(-1, 2, 3).sum(0)",
    "tileops.expand_adjoint(x.new_ones(r[0].item(), 3), (1, 3))": "torch.full((1, 3), 1.0 * r[0])",
}
"""Programs, each with its equivalent in PyTorch's own operations."""


@pytest.mark.parametrize("program", FIRST_PROGRAMS)
def test_the_first_program_of_a_process_is_compiled_once_for_all_data(program):
    """TorchDynamo decides only once how to trace a rule: when it first meets the rule."""
    code = f"""
import torch
import tileops
from torch._dynamo.testing import CompileCounter
counter = CompileCounter()
compiled = torch.compile(lambda x, r: {program}, fullgraph=True, dynamic=True, backend=counter)
for rows, counts in (4, (2, 3)), (6, (3, 5)), (8, (1, 4)), (2, (1, 1)):  # no sizes alike at first
    x, r = torch.arange(3.0 * rows).reshape(rows, 3), torch.tensor(counts)
    found, expected = compiled(x, r), {FIRST_PROGRAMS[program]}
    assert found.shape == expected.shape and torch.equal(found, expected)
assert counter.frame_count == 1, counter.frame_count
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


PROGRAMS = {
    "tile": (lambda x, _: tileops.tile(x, (2, 1, 3)), lambda x, _: x.repeat(2, 1, 3)),
    "tile by a size": (
        lambda x, y: tileops.tile(x, (y.shape[0], 2)),
        lambda x, y: x.repeat(y.shape[0], 2),
    ),
    "tile by a size, from a list": (
        lambda x, y: tileops.tile(x, [y.shape[0], y.shape[1]]),
        lambda x, y: x.repeat(y.shape),
    ),
    "expand to a size": (
        lambda x, y: tileops.expand(x[:1], (y.shape[0], x.shape[1])),
        lambda x, y: x[:1].expand(y.shape[0], -1),
    ),
    "expand, copied": (
        lambda x, y: tileops.expand(x[:, None], (1, y.shape[1], 1), copy=True),
        lambda x, y: x[:, None].repeat(1, y.shape[1], 1),
    ),
    "onnx": (lambda x, _: tileops.onnx.tile(x, (2, 3)), lambda x, _: x.repeat(2, 3)),
    "openvino": (lambda x, _: tileops.openvino.tile(x, (2, 3)), lambda x, _: x.repeat(2, 3)),
    "directml": (
        lambda x, y: tileops.directml.tile(x, (2, y.shape[1])),
        lambda x, y: x.repeat(2, y.shape[1]),
    ),
    "tile by one size": (
        lambda x, y: tileops.tile(x, y.shape[0]),
        lambda x, y: x.repeat(1, y.shape[0]),
    ),
    "onnx 1": (
        lambda x, y: tileops.onnx.tile_1(x, y.shape[0], 1),
        lambda x, y: x.repeat(1, y.shape[0]),
    ),
    "adjoint of tile": (
        lambda x, _: tileops.tile_adjoint(x, (x.shape[0], 1), (1, x.shape[1])),
        lambda x, _: x.sum(1, keepdim=True),
    ),
    "adjoint of expand": (
        lambda x, _: tileops.expand_adjoint(x, (1, x.shape[1])),
        lambda x, _: x.sum(0, keepdim=True),
    ),
}
"""Programs, each with its equivalent in PyTorch's own operations."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_compilation_serves_all_sizes(torch, counter, name):
    program, native = PROGRAMS[name]
    compiled = torch.compile(program, fullgraph=True, dynamic=True, backend=counter)
    for sizes in ((3, 4, 5, 2), (4, 5, 6, 3), (7, 2, 3, 5)):
        x, y = torch.randn(sizes[:2]), torch.empty(sizes[2:])
        for call in (program, compiled):  # tileops looks up tensors in the first call
            assert torch.equal(call(x, y), native(x, y))
    assert counter.frame_count == 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_arrays_of_other_classes_recompile_no_program(torch, counter, name):
    """A program has guards on the table of known classes, to which each class is added once."""
    program, native = PROGRAMS[name]
    compiled = torch.compile(program, fullgraph=True, dynamic=True, backend=counter)
    x, y = torch.randn(3, 4), torch.empty(5, 2)
    for call in (program, compiled):
        assert torch.equal(call(x, y), native(x, y))
    of_numpy, of_torch = (type("Kind", (base,), {}) for base in (np.ndarray, torch.Tensor))
    for other in (np.ones(3).view(of_numpy), x.as_subclass(of_torch)):
        assert type(tileops.tile(other, 2)) is type(other)
        assert torch.equal(compiled(x, y), native(x, y))
    assert counter.frame_count == 1


def test_counts_of_0_and_1_need_no_compilation_of_their_own(torch, counter):
    compiled = torch.compile(lambda x, n: tileops.tile(x, (n, 1)), fullgraph=True, backend=counter)
    x = torch.randn(2, 3)
    for n in (2, 3, 1, 0, 5):
        assert torch.equal(compiled(x, n), x.repeat(n, 1))
    assert counter.frame_count == 2  # one for the first count, one for all others


@pytest.mark.parametrize("call", [lambda n: n - 1, lambda n: n // 2], ids=["less", "half"])
def test_counts_computed_from_sizes_may_become_1(torch, counter, call):
    class Tile(torch.nn.Module):
        def forward(self, x):
            return tileops.tile(x, (call(x.shape[0]), 1))

    compiled = torch.compile(Tile(), fullgraph=True, dynamic=True, backend=counter)
    size = {0: torch.export.Dim.DYNAMIC}
    exported = torch.export.export(
        Tile(), (torch.ones(5, 3),), dynamic_shapes=(size,), strict=True
    ).module()
    for n in (5, 3, 2, 7):
        x = torch.randn(n, 3)
        assert torch.equal(compiled(x), x.repeat(call(n), 1))
        assert torch.equal(exported(x), x.repeat(call(n), 1))
    assert counter.frame_count == 1


def test_a_size_that_becomes_1_is_compiled_again(torch, counter):
    program = torch.compile(lambda x, n: tileops.expand(x, (n, 4)), fullgraph=True, backend=counter)
    x = torch.randn(3, 4)
    for n in (3, 1, 3, 1):
        assert torch.equal(program(x, n), x)
    assert counter.frame_count == 2


@pytest.mark.parametrize(
    ("call", "native"),
    [
        (lambda x, y: tileops.expand(x, (y.shape[0] - 2, 4)), lambda x: x),
        (lambda x, y: tileops.expand(x[: y.shape[0] - 2], (3, 4)), lambda x: x[:1].expand(3, 4)),
        (
            lambda x, y: tileops.expand_adjoint(x, (y.shape[0] - 2, 4)),
            lambda x: x.sum(0, keepdim=True),
        ),
        (lambda x, y: tileops.onnx.expand(x, (1, y.shape[0] - 2, 4)), lambda x: x[None]),
    ],
    ids=["shape", "input", "adjoint", "onnx"],
)
def test_a_computed_size_may_be_1(torch, call, native):
    """A program that handles the error must not be led into its handler either."""

    def handled(x, y):
        try:
            return call(x, y)
        except tileops.ShapeError:
            return x.new_zeros(0)

    class Call(torch.nn.Module):
        def forward(self, x, y):
            return call(x, y)

    x, y = torch.randn(3, 4), torch.empty(3)
    expected = native(x)
    assert torch.equal(call(x, y), expected)  # tileops looks up tensors here
    for program in (call, handled):
        torch._dynamo.reset()
        compiled = torch.compile(program, fullgraph=True, dynamic=True, backend="eager")
        assert torch.equal(compiled(x, y), expected)
    sizes = ({}, {0: torch.export.Dim.AUTO})
    exported = torch.export.export(Call(), (x, y), dynamic_shapes=sizes, strict=False)
    assert torch.equal(exported.module()(x, y), expected)


def test_a_count_out_of_range_is_refused_in_a_compiled_program(torch):
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, n: tileops.tile(x, (n, 1)), backend="eager")
    x = torch.randn(2, 3)
    for n in (2, 3):
        compiled(x, n)
    with pytest.raises(tileops.RepeatsError, match=r"repeats\[0\] is -1"):
        compiled(x, -1)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x, y: tileops.expand(x, y.shape), r"axis 1: the input has size \? and shape asks"),
        (
            lambda x, y: tileops.tile(x, (4 - y.shape[1], 2)),
            r"repeats\[0\] is \? \(repeats=\(\?, 2",
        ),
        (
            lambda x, y: tileops.onnx.tile(x, y.shape[:1]),
            r"rank 2 \(repeats=\(\?\), input shape \(\?",
        ),
        (lambda x, y: tileops.tile(x, y.shape, copy=False), r"repeated \? times, and only axes"),
        (lambda x, y: tileops.expand_adjoint(x, y.shape), r"axis 1: shape asks for \? and g has"),
    ],
    ids=["expand", "tile", "onnx", "copy", "adjoint"],
)
def test_errors_about_symbols_name_the_broken_rule(torch, call, text):
    """The compiler writes no text of symbols; a handler in the program also sees the error."""

    def program(x, y):
        try:
            return call(x, y)
        except tileops.TileOpsError:
            return x - 1

    x = torch.randn(4, 4)
    torch._dynamo.reset()
    options = {"dynamic": True, "fullgraph": True, "backend": "eager"}
    with pytest.raises(torch._dynamo.exc.Unsupported, match=text):
        torch.compile(call, **options)(x, torch.empty(4, 5))
    assert torch.equal(torch.compile(program, **options)(x, torch.empty(4, 5)), x - 1)


FROM_DATA = {
    "tensor": (tileops.tile, lambda x, r: x.repeat(*r)),
    "list": (lambda x, r: tileops.tile(x, r.tolist()), lambda x, r: x.repeat(*r)),
    "number": (lambda x, r: tileops.tile(x, r[0].item()), lambda x, r: x.repeat(1, r[0])),
    "onnx": (tileops.onnx.tile, lambda x, r: x.repeat(*r)),
    "expand": (lambda x, r: tileops.expand(x[:1], (r[1], 3)), lambda x, r: x[:1].expand(r[1], 3)),
    "size": (
        lambda x, _: tileops.tile(x[x[:, 0] > 0], 3),
        lambda x, _: x[x[:, 0] > 0].repeat(1, 3),
    ),
    "size, expanded": (
        lambda x, _: tileops.expand(x[x > 0], (4, 1), copy=True),
        lambda x, _: x[x > 0].repeat(4, 1),
    ),
}
"""Programs, each with its equivalent in PyTorch's own operations."""


@pytest.mark.parametrize("name", FROM_DATA)
def test_counts_and_sizes_that_depend_on_data_are_compiled_once(torch, name):
    """There is no graph break: PyTorch reads the counts when the program runs."""
    from torch._dynamo.testing import CompileCounterWithBackend

    program, native = FROM_DATA[name]
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(program, fullgraph=True, backend=counter)
    for given, sign in (([2, 3], 1), ([1, 1], 0), ([0, 4], -1), ([5, 0], 1)):
        x = torch.arange(6.0).reshape(2, 3) + 1
        x[1:] *= sign
        counts = torch.tensor(given)
        expected = native(x, counts)
        for call in (program, compiled):  # tileops looks up tensors in the first call
            result = call(x, counts)
            assert result.shape == expected.shape
            assert torch.equal(result, expected)
    assert counter.frame_count == 1
    torch._dynamo.reset()


@pytest.mark.parametrize("mode", ["compile", "strict export", "export"])
@pytest.mark.parametrize("function", [tileops.expand, tileops.onnx.expand])
@pytest.mark.parametrize("rows", [1, 2, 0])
def test_a_program_checks_the_sizes_that_an_expand_reads_from_data(torch, mode, function, rows):
    """Whether such a size is 1 or that of an input's axis, which is not 1, the axis stays."""
    from torch._dynamo.testing import CompileCounterWithBackend

    class Expand(torch.nn.Module):
        def forward(self, x, sizes):
            return function(x, sizes.tolist())

    torch._dynamo.reset()
    x = torch.arange(3.0 * rows).reshape(rows, 3)
    counter, any_size = CompileCounterWithBackend("aot_eager"), torch.export.Dim.AUTO
    if mode == "compile":
        program = torch.compile(Expand(), fullgraph=True, backend=counter)
    else:
        program = torch.export.export(
            Expand(),
            (x, torch.tensor([2, rows, 3])),
            dynamic_shapes=({1: any_size}, {}),
            strict=mode == "strict export",
        ).module()
    for sizes in (2, rows, 3), (4, rows, 1), (0, 1, 3), (1, 1, 1):
        expected = x.broadcast_to(np.broadcast_shapes(x.shape, sizes))
        result = program(x, torch.tensor(sizes))
        assert result.shape == expected.shape
        assert torch.equal(result, expected)
    refused = [(2, 1, 2), (2, 1, 0), (2, 1, -1), *([(2, 3, 1)] if rows != 1 else [])]
    for sizes in refused:
        with pytest.raises(RuntimeError):
            program(x, torch.tensor(sizes))
    if mode == "compile":
        assert counter.frame_count == 1
        if function is tileops.expand:  # PyTorch cannot compile that of a copy
            leaf = x.clone().requires_grad_()
            program(leaf, torch.tensor([4, 1, 1])).sum().backward()
            assert torch.equal(leaf.grad, torch.full_like(x, 4.0))
    else:
        wide = torch.cat([x, x], 1)
        assert torch.equal(program(wide, torch.tensor([2, 1, 6])), wide.expand(2, rows, 6))
    torch._dynamo.reset()


PAIR = np.array([2, 3])

OF_NUMPY = {
    "array": (tileops.tile, lambda n, m: (n, m)),
    "array that a function holds": (lambda x, _: tileops.tile(x, PAIR), lambda *_: (2, 3)),
    "array that a program makes": (
        lambda x, _: tileops.onnx.tile(x, np.array([1, 2])),
        lambda *_: (1, 2),
    ),
    "entries": (lambda x, r: tileops.tile(x, (r[0], 2 * r[1])), lambda n, m: (n, 2 * m)),
    "entries, expanded": (
        lambda x, r: tileops.expand(x[:, None], (1, r[1], 1)),
        lambda _, m: (1, m, 1),
    ),
    "scalar": (lambda x, _: tileops.tile(x, (np.int16(3), 1)), lambda *_: (3, 1)),
    "scalar alone": (lambda x, _: tileops.tile(x, np.int32(2)), lambda *_: (1, 2)),
    "computed": (lambda x, _: tileops.tile(x, (np.prod([2, 2]), 1)), lambda *_: (4, 1)),
}
"""Programs, each with the repeats that it makes of two counts."""


@pytest.mark.parametrize("name", OF_NUMPY)
def test_counts_of_numpy_break_no_graph(torch, counter, name):
    program, repeats_of = OF_NUMPY[name]
    compiled = torch.compile(program, fullgraph=True, backend=counter)
    for given in (2, 3), (1, 1), (0, 4), (5, 0):
        x, counts, repeats = torch.randn(2, 3), np.array(given), repeats_of(*given)
        expected = np.tile(x.numpy()[:, None] if len(repeats) == 3 else x.numpy(), repeats)
        for call in (program, compiled):  # tileops looks up tensors in the first call
            result = call(x, counts)
            assert result.shape == expected.shape
            assert result.numpy().tobytes() == expected.tobytes()
    assert counter.frame_count == 1


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_unsigned_counts_break_no_graph(torch, counter, library, dtype):
    compiled = torch.compile(tileops.tile, fullgraph=True, backend=counter)
    x = torch.randn(2, 3)
    for given in (2, 3), (1, 1), (0, 4), (200, 1):
        counts = np.array(given, dtype)
        if library == "torch":
            counts = torch.tensor(given, dtype=getattr(torch, dtype))
        for call in (tileops.tile, compiled):  # tileops looks up tensors in the first call
            assert torch.equal(call(x, counts), x.repeat(given))
    assert counter.frame_count == 1
    for of_onnx in (tileops.onnx.tile, torch.compile(tileops.onnx.tile, backend="eager")):
        with pytest.raises(tileops.RepeatsTypeError, match=f"dtype {dtype}; Tile-13 takes int64"):
            of_onnx(x, counts)


@pytest.mark.parametrize("count", [np.float64(2), np.bool_(True), np.complex64(2), PAIR * 1.0])
def test_counts_other_than_integers_are_refused_in_a_compiled_program(torch, count):
    torch._dynamo.reset()
    for counts in (count, (count, 2)):
        with pytest.raises(tileops.RepeatsTypeError):
            torch.compile(tileops.tile, backend="eager")(torch.ones(2, 3), counts)


@pytest.mark.parametrize("name", ["size", "size, expanded"])
def test_a_size_from_data_may_be_known_to_be_0_or_1(torch, name):
    """A mask of one element gives such a size, of which the compiler knows no more."""
    program, native = FROM_DATA[name]
    for value in (1.0, -1.0):
        torch._dynamo.reset()
        x = torch.full((1, 1), value)
        result = torch.compile(program, fullgraph=True, backend="eager")(x, None)
        assert torch.equal(result, native(x, None))


def test_calls_with_known_sizes_are_planned_while_compiling(torch, counter, monkeypatch):
    """A compiled program contains nothing of the planning: neither steps nor guards."""
    from tileops.execute import torch_compile

    planned = []

    def plan(*args, make_plan=torch_compile.make_plan):
        planned.append(args[1:3])
        return make_plan(*args)

    monkeypatch.setattr(torch_compile, "make_plan", plan)
    monkeypatch.setattr("tileops.execute.torch.make_plan", None)  # used only for symbols
    x = torch.randn(2, 3)
    for program, counts, expected, operations in (
        (lambda x: tileops.tile(x, (2, 1)), (2, 1), x.repeat(2, 1), 1),
        (lambda x: tileops.expand(x[:1], (4, 1), copy=True), (4, 1), x[:1].repeat(4, 1), 2),
        (lambda x: tileops.onnx.tile(x, [3, 2]), (3, 2), x.repeat(3, 2), 1),
    ):
        assert torch.equal(program(x), expected)  # tileops looks up tensors here
        torch._dynamo.reset()
        compiled = torch.compile(program, fullgraph=True, backend=counter)
        for _ in range(3):
            assert torch.equal(compiled(x), expected)
        assert [counts for _, counts in planned] == [counts]
        assert counter.op_count == operations
        counter.clear()
        planned.clear()


def test_a_compiled_program_has_few_more_guards(torch):
    """Each guard takes time in each call of the program."""
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    def tiles(x):
        return torch.tile(x, (2, 1))

    def tiles_and_expands(x):
        return torch.tile(x, (2,)), torch.tile(x, (2, 1)), x.expand(4, 2, 3)

    def ours(x):
        return tileops.tile(x, (2, 1))

    def all_ours(x):
        return tileops.tile(x, 2), tileops.tile(x, (2, 1)), tileops.expand(x, (4, 1, 1))

    def guards(program):
        program(x)  # tileops looks up tensors here
        torch.compile(program, fullgraph=True, backend="eager")(x)
        (entry,) = _debug_get_cache_entry_list(program.__code__)
        lines = str(entry.guard_manager).splitlines()
        return sum("+- " in line and "Manager" not in line for line in lines)

    x = torch.ones(2, 3)
    is_old = torch.__version__ < "2.13"
    for native, program, more in ((tiles, ours, 25), (tiles_and_expands, all_ours, 55)):
        assert 0 < guards(native) < guards(program) <= guards(native) + more + 9 * is_old


def test_errors_are_the_same_in_a_compiled_program(torch, counter):
    x = torch.randn(2, 3)
    for program, error in (
        (lambda x: tileops.tile(x, (-1, 1)), tileops.RepeatsError),
        (lambda x: tileops.tile(x, (2**62, 2**62)), tileops.OutputTooLargeError),
        (lambda x: tileops.expand(x, (5, 3)), tileops.ShapeError),
        (lambda x: tileops.onnx.tile(x, (2,)), tileops.RepeatsError),
        (lambda x: tileops.directml.tile(x, (0, 1)), tileops.RepeatsError),
        (lambda x: tileops.onnx.tile(x[:0], (2**63, 1)), tileops.RepeatsError),
    ):
        with pytest.raises(error) as eager:
            program(x)
        with pytest.raises(error) as compiled:
            torch.compile(program, backend=counter)(x)
        assert str(compiled.value) == str(eager.value)


def test_inductor_fuses_tile_as_it_fuses_torch_tile(torch):
    from torch._inductor.utils import run_and_get_code

    x = torch.randn(64, 1, 32)
    codes = []
    for tile in (tileops.tile, torch.tile):
        torch._dynamo.reset()
        compiled = torch.compile(lambda x, tile=tile: torch.relu(tile(x + 1, (1, 8, 2))) * 2)
        result, (code,) = run_and_get_code(compiled, x)
        assert torch.equal(result, torch.relu((x + 1).repeat(1, 8, 2)) * 2)
        codes.append(code)
    ours, theirs = (re.sub(r"(?m)^\s*#.*\n", "", code) for code in codes)  # without comments
    assert "tileops" not in ours
    assert ours.count("async_compile.cpp") == 1
    assert kernel(ours) == kernel(theirs)


def kernel(code):
    """Return the C++ code that Inductor generated."""
    (found,) = re.findall(r"async_compile\.cpp.*?\n(.*?)\n['\"]{3}", code, re.DOTALL)
    assert "extern" in found
    return found


@pytest.mark.parametrize("nbytes", [2**10, 2**25])
@pytest.mark.parametrize(
    "call",
    [
        lambda x: tileops.tile(x, (4, 1)),
        lambda x: tileops.tile(x, (2, 3)),
        lambda x: tileops.expand(x[:, None], (1, 4, 1)),
        lambda x: tileops.expand(x[:, None], (1, 4, 1), copy=True),
    ],
)
def test_no_tensor_is_saved_for_the_gradient(torch, call, nbytes):
    saved = []
    x = torch.ones(4, nbytes // 64, requires_grad=True)
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t)
    with hooks:
        result = call(x)
    assert saved == []
    (gradient,) = torch.autograd.grad(result.sum(), x)
    assert torch.equal(gradient, torch.full_like(x, result.numel() / x.numel()))


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float16"])
def test_adjoints_are_the_gradients_of_the_library(torch, dtype):
    dtype = getattr(torch, dtype)
    x = torch.randint(-3, 4, (3, 1, 2)).to(dtype).requires_grad_()
    for repeats in ((2, 3, 1), (4, 1, 5, 2), (0, 1, 1), (1, 1, 1)):
        y = torch.tile(x, repeats)
        g = torch.randint(-3, 4, y.shape).to(dtype)
        (expected,) = torch.autograd.grad(y, x, g)
        assert torch.equal(tileops.tile_adjoint(g, x.shape, repeats), expected)
    g = torch.randint(-3, 4, (5, 3, 4, 2)).to(dtype)
    (expected,) = torch.autograd.grad(x.expand(5, 3, 4, 2), x, g)
    assert torch.equal(tileops.expand_adjoint(g, x.shape), expected)


@pytest.mark.parametrize("name", ["uint16", "uint64", "int8", "complex32", "float8_e5m2"])
def test_adjoints_of_dtypes_that_torch_does_not_sum(torch, name):
    dtype = getattr(torch, name)
    for repeats, expected in ((2, [2, 2]), (1, [1] * 4), (0, [0] * 4)):
        g = torch.ones(4 if repeats else 0).to(dtype)
        shape = 4 // repeats if repeats else 4
        result = tileops.tile_adjoint(g, shape, repeats)
        assert result.dtype is dtype
        assert result.to(torch.complex64).tolist() == expected


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_sum_of_many_narrow_floats_is_taken_in_a_wider_dtype(torch, name):
    """PyTorch's threads would each keep their part of such a sum in 16 bits."""
    ones = torch.ones(1_200_000, dtype=getattr(torch, name))
    g = torch.cat([ones, -ones, ones[:3]])
    assert tileops.expand_adjoint(g, ()) == 3
    assert tileops.tile_adjoint(g, 1, len(g)).tolist() == [3]
    x = ones[:1].clone().requires_grad_()
    y = tileops.tile(x, len(g))
    assert "Repeat" in type(y.grad_fn).__name__  # the package's own function
    y.backward(g)
    assert x.grad.tolist() == [3]


def test_autocast_does_not_change_the_dtype_of_a_sum(torch):
    from torch._subclasses import FakeTensorMode

    torch.set_autocast_enabled("cuda", True)  # torch.autocast refuses it without a device
    try:
        with FakeTensorMode():
            g = torch.empty((6, 4), dtype=torch.float16, device="cuda")
            assert g.sum(0).dtype is torch.float32
            assert tileops.tile_adjoint(g, (3, 2), (2, 2)).dtype is g.dtype
            assert tileops.expand_adjoint(g, (1, 4)).dtype is g.dtype
    finally:
        torch.set_autocast_enabled("cuda", False)


def test_adjoints_of_dtypes_and_ranks_torch_cannot_sum_are_refused(torch):
    narrow = torch.ones(4, dtype=torch.uint8).view(torch.uint4)
    for repeats in (1, 2):
        with pytest.raises(tileops.DTypeError, match="cannot sum"):
            tileops.tile_adjoint(narrow, 4 // repeats, repeats)
    with pytest.raises(tileops.ShapeError, match=r"70 axes.*64 at most"):
        tileops.tile_adjoint(torch.ones((0,) * 70), (1,) * 70, (0,) * 70)
    assert tileops.tile_adjoint(torch.ones((0,) * 70), (0,) * 70, 1).shape == (0,) * 70


@pytest.mark.filterwarnings(r"ignore:The \.grad attribute")  # which the compiler looks at
def test_a_compiled_backward_has_no_graph_break(torch):
    """The plan was made before, and its sum is compiled with the rest of the backward."""
    x = torch.randn(4, 5, requires_grad=True)
    y = (tileops.tile(x.sin(), (120, 120)) ** 2).sum()  # large enough for a function of our own
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager", fullgraph=True)):
        y.backward()
    assert torch.allclose(x.grad, 120 * 120 * (2 * x).sin(), rtol=1e-4)


def test_adjoints_are_differentiable(torch):
    g = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    for f in (
        lambda g: tileops.tile_adjoint(g, (2, 2), (2, 3)),
        lambda g: tileops.expand_adjoint(g, (4, 1)),
        lambda g: tileops.expand_adjoint(g, (6,)),
    ):
        assert torch.autograd.gradcheck(f, g)
        assert torch.autograd.gradgradcheck(f, g)


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr")  # by torch.func.linearize
@pytest.mark.parametrize("nbytes", [2**8, 2**23])
def test_transforms_of_torch_func_give_the_results_of_torch(torch, nbytes):
    x = torch.randint(-3, 4, (4, nbytes // 64)).float()
    for ours, theirs in (
        (lambda x: tileops.tile(x, (2, 2)), lambda x: x.repeat(2, 2)),
        (lambda x: tileops.tile(x, (3, 1, 2)), lambda x: x.repeat(3, 1, 2)),
        (lambda x: tileops.expand(x, (3, 1, 1), copy=True), lambda x: x.expand(3, *x.shape)),
    ):
        both = [
            [
                torch.vmap(f)(torch.stack([x, x + 1])),
                torch.vmap(f, in_dims=2)(torch.stack([x, x + 1], 2)),
                torch.vmap(f)(x.expand(2, *x.shape)),
                torch.func.jvp(f, (x,), (x + 1,)),
                torch.func.vjp(f, x)[1](theirs(x))[0],
                torch.func.linearize(f, x)[1](x - 1),
            ]
            for f in (ours, theirs)
        ]
        assert str(both[0][1][0].shape) == str(both[1][1][0].shape)
        for got, expected in zip(*both, strict=True):
            pairs = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
            assert all(torch.equal(p, q) for p, q in pairs)


def test_a_small_tile_is_seen_as_strides_only_where_no_gradient_may_be_recorded(torch):
    """The gradient of `as_strided` takes longer than others, and rounds once for each axis."""
    x = torch.ones(2, 3, requires_grad=True)
    for y in (tileops.tile(x, (2, 2)), torch.vmap(lambda x: tileops.tile(x, 2))(x)):
        nodes = [y.grad_fn]
        for node in nodes:
            nodes += [before for before, _ in node.next_functions if before is not None]
        assert not [node for node in nodes if "AsStrided" in type(node).__name__]
    for part in (x.detach(), x.detach()[:, ::2]):
        with torch.profiler.profile(acc_events=True) as profile:
            tileops.tile(part, (2, 2))
        names = {event.name for event in profile.events()}
        assert ("aten::expand" in names) != part.is_contiguous()


def test_a_symbolic_trace_keeps_a_wrapped_call_as_one_node(torch):
    source = """
import torch.fx
from tileops import tile
torch.fx.wrap("tile")
def f(x):
    return tile(x, (x.shape[0], 2))
"""
    exec(source, module := {})  # noqa: S102 (PyTorch wraps only where a module begins)
    graph = torch.fx.symbolic_trace(module["f"])
    assert [node.target for node in graph.graph.nodes].count(tileops.tile) == 1
    assert torch.equal(graph(torch.ones(3, 2)), torch.ones(9, 4))


def test_a_functionalized_tile_may_be_written_to(torch):
    """Where views are removed as well, a reshape would return an alias of what it copies."""

    def f(x):
        x = x.clone()
        y = tileops.tile(x, (2, 2))
        x.add_(1)
        return y.mul_(2)

    x = torch.arange(6.0).reshape(2, 3)
    functional = torch.func.functionalize(f, remove="mutations_and_views")
    assert torch.equal(functional(x), x.repeat(2, 2) * 2)


def test_jacobians_are_those_of_torch(torch):
    x = torch.randn(2, 3)
    for jacobian in (torch.func.jacrev, torch.func.jacfwd):
        got, expected = (
            jacobian(f)(x) for f in (lambda x: tileops.tile(x, (2, 2)), lambda x: x.repeat(2, 2))
        )
        assert torch.equal(got, expected)


def test_modules_work_with_functional_call_and_autocast(torch):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1, 3))
            self.linear = torch.nn.Linear(6, 2)

        def forward(self, x):
            return self.linear(tileops.tile(x * self.weight, (1, 2)))

    model, x = Model(), torch.randn(4, 3)
    weights = {name: torch.randn_like(value) for name, value in model.named_parameters()}
    got = torch.func.functional_call(model, weights, x)
    wide = (x * weights["weight"]).repeat(1, 2)
    expected = torch.nn.functional.linear(wide, weights["linear.weight"], weights["linear.bias"])
    assert torch.equal(got, expected)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = model(x)
        assert half.dtype is torch.bfloat16
        half.float().sum().backward()
    assert model.weight.grad.dtype is torch.float32


@pytest.mark.parametrize("is_strict", [False, True])
def test_an_exported_program_serves_other_sizes(torch, is_strict):
    class Model(torch.nn.Module):
        def forward(self, x, y):
            return (
                tileops.tile(x, (2, 1, 3)),
                tileops.tile(x, (y.shape[0], 1)),
                tileops.expand(x[:, None], (1, y.shape[0], 1)),
                tileops.onnx.expand(y[:1], (y.shape[0], 4)),
            )

    n, m = torch.export.Dim("n", min=2, max=64), torch.export.Dim("m", min=2, max=64)
    model = Model()
    exported = torch.export.export(
        model,
        (torch.randn(3, 2), torch.randn(5, 4)),
        dynamic_shapes=({0: n}, {0: m}),
        strict=is_strict,
    )
    for sizes in ((3, 5), (7, 4), (2, 9)):
        x, y = torch.randn(sizes[0], 2), torch.randn(sizes[1], 4)
        for got, expected in zip(exported.module()(x, y), model(x, y), strict=True):
            assert torch.equal(got, expected)
    with torch._subclasses.FakeTensorMode() as mode:
        fakes = mode.from_tensor(torch.randn(3, 2)), mode.from_tensor(torch.randn(5, 4))
        assert [tuple(r.shape) for r in model(*fakes)] == [(2, 3, 6), (15, 2), (3, 5, 2), (5, 4)]


def test_subclasses_see_each_operation(torch):
    """Each call reaches ``__torch_function__``: the class is kept, and no bytes move unseen."""

    class Meters(torch.Tensor):
        seen: ClassVar[list] = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.seen.append(getattr(func, "__name__", ""))
            return super().__torch_function__(func, types, args, kwargs or {})

    for shape in ((2, 3), (1000, 3000)):
        plain = torch.randn(shape)
        x = plain.as_subclass(Meters)
        for call, expected, operation in (
            (lambda x: tileops.tile(x, (2, 3)), plain.repeat(2, 3), "tile"),
            (
                lambda x: tileops.expand(x[:, None], (1, 2, 1)),
                plain[:, None].expand(-1, 2, -1),
                "expand",
            ),
            (
                lambda x: tileops.expand(x[None], (2, 1, 1), copy=True),
                plain.repeat(2, 1, 1),
                "tile",
            ),
        ):
            Meters.seen.clear()
            result = call(x)
            assert type(result) is Meters
            assert operation in Meters.seen
            assert torch.equal(result.as_subclass(torch.Tensor), expected)
        out = torch.empty(2 * shape[0], 3 * shape[1]).as_subclass(Meters)
        assert tileops.tile(x, (2, 3), out=out) is out
        assert torch.equal(out.as_subclass(torch.Tensor), plain.repeat(2, 3))


@pytest.mark.parametrize("dynamic", [None, False, True])
@pytest.mark.parametrize(
    "call, native",
    [
        (lambda x, out: tileops.tile(x, (2, 1), out=out), lambda x: x.repeat(2, 1)),
        (
            lambda x, out: tileops.expand(x[:1], out.shape, out=out),
            lambda x: x[:1].repeat(2 * len(x), 1),
        ),
        (lambda x, out: tileops.directml.tile(x, (2, 1), out=out), lambda x: x.repeat(2, 1)),
    ],
    ids=["tile", "expand", "directml"],
)
def test_out_breaks_the_graph_of_a_program_once(torch, counter, call, native, dynamic):
    """The whole call runs outside of the program: it asks for addresses, which programs lack."""
    compiled = torch.compile(lambda x, out: call(x, out) + 1, dynamic=dynamic, backend=counter)
    for n in (3, 40_000):
        x, out = torch.rand(n, 3), torch.zeros(2 * n, 3)
        assert torch.equal(compiled(x, out), native(x) + 1)
        assert torch.equal(out, native(x))
    assert counter.frame_count <= 4  # what precedes and what follows the call, for each size
    x = torch.rand(4, 3)
    with pytest.raises(tileops.OutputError, match="out overlaps the input"):
        compiled(x[:2], x)
    whole = torch.compile(lambda x, out: call(x, out) + 1, fullgraph=True, backend=counter)
    with pytest.raises(RuntimeError, match="outside of compiled programs"):
        whole(x, torch.zeros(8, 3))


@pytest.mark.parametrize("rows", [3, 3_000])
def test_no_gradient_is_recorded_below_autograd(torch, rows):
    """As by Tensor.repeat: autograd records the operation that a `__torch_dispatch__` replaces."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Replaced(TorchDispatchMode):
        def __torch_dispatch__(self, function, _types, args=(), kwargs=None):
            if function is not torch.ops.aten.repeat.default:
                return function(*args, **(kwargs or {}))
            result = tileops.tile(*args)
            out = tileops.tile(*args, out=torch.empty_like(result))
            replaced.append((result.requires_grad, result.grad_fn, torch.equal(result, out)))
            return result

    replaced = []
    x = torch.rand(rows, 3, requires_grad=True)
    with Replaced():
        result = x.repeat(2, 5)
    assert replaced == [(False, None, True)]
    result.sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 10))


@pytest.mark.parametrize("is_seen", [False, True])
def test_subclasses_are_compiled_into_one_graph(torch, is_seen):
    class Meters(torch.Tensor):
        if is_seen:

            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.randn(2, 3).as_subclass(Meters)
    for call in (
        lambda x: tileops.tile(x, (2, 3)),
        lambda x: tileops.expand(x, (4, 1, 1)),
        lambda x: tileops.onnx.tile(x, (2, 1)),
    ):
        result = torch.compile(call, backend="eager", fullgraph=True)(x)
        assert type(result) is Meters
        assert torch.equal(result, call(x))


def test_members_of_an_enum_are_accepted_as_counts_when_compiled(torch):
    class Count(enum.IntEnum):
        HEADS = 2

    x = torch.randn(2, 3)
    for counts, repeats in ((Count.HEADS, (1, 2)), ((Count.HEADS, 1), (2, 1))):
        compiled = torch.compile(tileops.tile, backend="eager", fullgraph=True)
        assert torch.equal(compiled(x, counts), x.repeat(repeats))


def test_a_trace_has_one_operation_for_every_size(torch):
    from torch.fx.experimental.proxy_tensor import make_fx

    for call in (
        lambda x: tileops.tile(x, (2, 3)),
        lambda x: tileops.tile(x, (1, 1)),
        lambda x: tileops.tile(x, (2, 1, 1)),
        lambda x: tileops.expand(x, (2, 1, 1), copy=True),
    ):
        for is_early, operation in (
            (False, torch.ops.aten.repeat),
            (True, torch.ops.aten.tile),
        ):
            traced = make_fx(call, pre_dispatch=is_early)(torch.ones(3, 4))
            used = [node.target for node in traced.graph.nodes if node.op == "call_function"]
            assert used in ([operation.default], [torch.ops.aten.repeat.default])
            x = torch.randn(5, 2)
            assert torch.equal(traced(x), call(x))


@pytest.mark.filterwarnings("ignore:.*should not be instantiated")  # by TorchDynamo
def test_an_autograd_function_that_calls_an_adjoint_compiles_into_one_graph(torch):
    class Tile(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape = tuple(x.shape)
            return tileops.tile(x, (2, 3))

        @staticmethod
        def backward(ctx, g):
            return tileops.tile_adjoint(g, ctx.shape, (2, 3)) + 0 * tileops.expand(
                g[:1, :1], (2, 3)
            )

    def call(x):
        return (Tile.apply(x * 2) ** 2).sum()

    x = torch.randn(2, 3, requires_grad=True)
    torch.compile(call, backend="aot_eager", fullgraph=True)(x).backward()
    assert torch.allclose(x.grad, 48 * x)


def test_limits_of_a_specification_hold_for_symbols(torch):
    call = torch.compile(lambda x, n: tileops.directml.tile(x, (n, 1)), backend="eager")
    x = torch.empty(4, 3, device="meta")
    for n in (2, 3, 4):
        assert call(x, n).shape == (4 * n, 3)
    for n, error in ((2**33, tileops.RepeatsError), (2**31, tileops.OutputTooLargeError)):
        with pytest.raises(error, match="may exceed 4294967295"):
            call(x, n)
    for repeats in ((0, 3), (-1, 3), (2**33, 3)):
        torch.compiler.reset()
        call = torch.compile(
            lambda x, r=repeats: tileops.directml.tile(x, r), backend="eager", dynamic=True
        )
        with pytest.raises(tileops.RepeatsError):
            call(x)
    torch.compiler.reset()
    with pytest.raises(tileops.ShapeError, match="9 dimensions"):
        torch.compile(lambda x: tileops.directml.tile(x, (1,) * 9), backend="eager", dynamic=True)(
            torch.empty((1,) * 9)
        )


def test_a_limit_of_bytes_may_be_a_symbol(torch):
    def call(x, n):
        return tileops.tile(x, (1, 4), max_bytes=n)

    compiled = torch.compile(call, backend="eager", dynamic=True, fullgraph=True)
    for rows in (3, 1, 0):
        for n in (192, 10**6):
            assert compiled(torch.ones(rows, 4), n).shape == (rows, 16)
    with pytest.raises(tileops.OutputTooLargeError, match="takes 192 bytes"):
        torch.compile(call, backend="eager", dynamic=True)(torch.ones(3, 4), 191)


def test_limits_of_a_specification_do_not_bound_exported_sizes(torch):
    class Tile(torch.nn.Module):
        def forward(self, x):
            return tileops.directml.tile(x, (2, 1))

    for strict in (True, False):
        size = {0: torch.export.Dim("n")}
        program = torch.export.export(
            Tile(), (torch.ones(3, 4),), dynamic_shapes=(size,), strict=strict
        )
        assert program.module()(torch.ones(7, 4)).shape == (14, 4)


def test_a_negative_count_is_zero_to_openvino_if_it_is_a_symbol(torch):
    call = torch.compile(
        lambda x, n: tileops.openvino.tile(x, (n, 1)), backend="eager", fullgraph=True
    )
    for n in (2, 3, -1, -2, 5):
        assert call(torch.ones(4, 3), n).shape == (4 * max(n, 0), 3)


def test_inputs_that_are_not_arrays_are_refused_when_compiled(torch):
    for wrong in (lambda x: [x], lambda x: (x,), lambda x: {"x": x}):
        for call in (tileops.tile, tileops.expand):
            compiled = torch.compile(lambda x, f=call, w=wrong: f(w(x), 2), backend="eager")
            with pytest.raises(tileops.DTypeError, match="not an array"):
                compiled(torch.ones(4, 3))


def test_a_strict_export_of_expand_computes_no_size(torch):
    class Expand(torch.nn.Module):
        def forward(self, x):
            return tileops.expand(x, (5, 1, 1))

    size = torch.export.Dim("n")
    program = torch.export.export(
        Expand(), (torch.ones(3, 4),), dynamic_shapes=({0: size},), strict=True
    )
    used = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert used == [torch.ops.aten.expand.default]
    assert program.module()(torch.ones(7, 4)).shape == (5, 7, 4)


@pytest.mark.parametrize(
    "repeats", [(1, 1, 1, 1), (2, 1, 1, 1), (1, 2, 1, 1), (2, 2, 2, 2), (3, 1, 1, 1, 1)]
)
def test_results_lie_in_memory_as_those_of_torch_tile(torch, repeats):
    """Memory format, sharing, gradients and class are those that users of torch.tile see."""
    plain = torch.randn(2, 3, 4, 5)
    inputs = {
        "contiguous": plain,
        "channels last": plain.contiguous(memory_format=torch.channels_last),
        "transposed": plain.transpose(1, 3),
        "shared": plain.clone().share_memory_(),
        "a parameter": torch.nn.Parameter(plain),
        "expanded": plain[:, :1].expand(2, 3, 4, 5),
    }
    for name, x in inputs.items():
        expected, result = torch.tile(x, repeats), tileops.tile(x, repeats)
        assert torch.equal(result, expected), name
        for fact in ("stride", "is_shared", "is_pinned", "is_contiguous", "storage_offset"):
            assert getattr(result, fact)() == getattr(expected, fact)(), (name, fact)
        assert (type(result), result.requires_grad, result.is_leaf) == (
            type(expected),
            expected.requires_grad,
            expected.is_leaf,
        ), name


def test_distributed_tensors_keep_torchs_placements_on_two_ranks(tmp_path):
    """The values are right, and the placements are those that PyTorch's own operations give."""
    code = """
import os, sys
import torch, tileops
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))
calls = (
    (lambda x: tileops.tile(x, (2, 3)), lambda x: x.repeat(2, 3)),
    (lambda x: tileops.tile(x, (1, 3)), lambda x: x.repeat(1, 3)),
    (lambda x: tileops.tile(x, (2, 1, 1)), lambda x: x.repeat(2, 1, 1)),
    (lambda x: tileops.expand(x[:, None], (1, 5, 1)), lambda x: x[:, None].expand(-1, 5, -1)),
    (lambda x: tileops.expand(x[None], (5, 1, 1), copy=True), lambda x: x.repeat(5, 1, 1)),
)
for shape in ((4, 6), (512, 2048)):
    full = torch.arange(float(shape[0] * shape[1])).reshape(shape)
    for placement in (Shard(0), Shard(1), Replicate()):
        for ours, native in calls:
            a = distribute_tensor(full.clone(), mesh, [placement]).requires_grad_()
            b = distribute_tensor(full.clone(), mesh, [placement]).requires_grad_()
            result, expected = ours(a), native(b)
            assert type(result) is DTensor
            assert result.placements == expected.placements
            assert torch.equal(result.to_local(), expected.to_local())
            assert torch.equal(result.full_tensor(), ours(full))
            (result * 2).sum().backward()
            (expected * 2).sum().backward()
            assert torch.equal(a.grad.full_tensor(), b.grad.full_tensor())
x, out = (distribute_tensor(t, mesh, [Shard(0)]) for t in (torch.ones(4, 6), torch.zeros(4, 18)))
try:
    tileops.tile(x, (1, 3), out=out)
except tileops.OutputError as error:
    assert "DTensor" in str(error)
    assert not out.full_tensor().any()
else:
    raise AssertionError("written")
g = torch.arange(24.0).reshape(4, 6)
for placement, refused in ((Replicate(), False), (Shard(0), False), (Shard(1), True)):
    there = distribute_tensor(g, mesh, [placement])
    try:
        total = tileops.tile_adjoint(there, (4, 2), (1, 3))
    except tileops.ShapeError as error:
        assert refused and "replicate" in str(error), error
    else:
        assert not refused
        assert torch.equal(total.full_tensor(), g.reshape(4, 3, 2).sum(1))
dist.destroy_process_group()
print("done", flush=True)
os._exit(0)  # the end of the interpreter meets threads of PyTorch's, and aborts now and then
"""
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(rank), str(tmp_path / "store")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        for rank in ranks:
            output, errors = rank.communicate(timeout=120)
            assert rank.returncode == 0, errors
            assert "done\n" in output  # before or after messages of Gloo
    finally:
        for rank in ranks:
            rank.kill()


@pytest.mark.filterwarnings("ignore:Casting complex")
def test_no_dtype_loses_its_gradient(torch):
    for dtype in (torch.float16, torch.float8_e4m3fn, torch.float4_e2m1fn_x2, torch.complex64):
        x = torch.empty(4, 1, dtype=dtype, requires_grad=True)
        for result in (tileops.tile(x, (1, 2)), tileops.expand(x, (4, 2), copy=True)):
            assert result.requires_grad, dtype


def test_symbolic_counts_are_refused_for_arrays_of_other_libraries(torch):
    from torch.fx.experimental.proxy_tensor import make_fx

    refused = []

    def program(x):
        for call in (tileops.tile, tileops.expand):
            with pytest.raises(TypeError, match=r"symbolic size .*numpy.*pass integers") as caught:
                call(np.ones((1, 1)), (x.shape[0], 1))
            refused.append(caught.type.__name__)
        return tileops.tile(x, (x.shape[0], 1))

    graph = make_fx(program, tracing_mode="symbolic")(torch.ones(3, 4))
    assert refused == ["RepeatsTypeError", "ShapeTypeError"]
    assert graph(torch.ones(5, 2)).shape == (25, 2)
