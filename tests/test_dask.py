"""What only Dask has: laziness, chunks, and sizes that are not known yet."""

from math import prod

import numpy as np
import onnx
import pytest

import tileops
from memory import peak_of
from tileops import execute

pytestmark = pytest.mark.library("dask")


@pytest.fixture
def da():
    import dask.array

    return dask.array


@pytest.fixture
def never(da):
    """An array that fails when it is computed."""

    def fail(_):
        raise AssertionError("computed")

    return da.ones((4, 1), chunks=2).map_blocks(fail, dtype="f8", meta=np.empty((0, 0)))


@pytest.mark.parametrize("counts", [1, 2, 0, (2, 1, 3), (3, 0)])
def test_tile_stays_lazy(never, counts):
    assert tileops.tile(never, counts).shape == np.tile(np.empty((4, 1)), counts).shape


@pytest.mark.parametrize("copy", [True, None, False])
@pytest.mark.parametrize("shape", [1, (4, 5), (3, 1, 1), (4, 0)])
def test_expand_stays_lazy(never, copy, shape):
    expected = np.broadcast_shapes((4, 1), np.empty(shape).shape)
    assert tileops.expand(never, shape, copy=copy).shape == expected


def test_a_broadcast_axis_is_cut_into_chunks(da):
    for copy in (True, None):
        result = tileops.expand(da.ones((3, 1), chunks=(2, 1)), (10**7, 3, 10), copy=copy)
        assert result.shape == (10**7, 3, 10)
        assert result.chunks[1] == (2, 1)
        assert 8 * prod(map(max, result.chunks)) <= 2**27


def test_many_repeats_of_one_chunk_are_few_tasks(da):
    result = tileops.tile(da.ones(3, chunks=3), 10**9)
    assert result.shape == (3 * 10**9,)
    assert result.npartitions < 1100
    assert 8 * max(result.chunks[0]) <= 2**27
    assert result[-7:].compute(scheduler="synchronous").tolist() == [1] * 7


def test_equal_chunks_are_computed_once(da, monkeypatch):
    """Equal blocks of the result share one chunk, as with Dask's own tile, and are not copied."""
    import dask

    from tileops.execute import dask as own

    made = []
    repeat = own.run
    monkeypatch.setattr(own, "run", lambda *args: made.append(args[1].shape) or repeat(*args))
    values = np.arange(12.0).reshape(4, 3)
    for chunks, repeats, parts, expected in (
        ((2, 1), (3, 2), (6, 6), []),
        ((2, 3), (3, 2), (6, 1), [(2, 3), (2, 3)]),
        ((2, 3), (3, 1), (6, 1), []),
        ((4, 3), (1, 12), (1, 6), [(4, 3)]),
        ((4, 3), (1, 13), (1, 7), [(4, 3), (4, 3)]),  # the last part has a single repeat
        ((4, 3), (1, 1), (1, 1), [(4, 3)]),
    ):
        with dask.config.set({"array.chunk-size": "200B", "scheduler": "synchronous"}):
            result = tileops.tile(da.from_array(values, chunks=chunks), repeats)
            assert result.numblocks == parts
            assert np.array_equal(result.compute(), np.tile(values, repeats))
        assert made == expected
        made.clear()


@pytest.mark.parametrize("repeats", [(2, 1), (1, 2), (3, 3)])
def test_each_chunk_of_the_result_takes_one_task(da, repeats):
    x = da.from_array(np.arange(36).reshape(6, 6), chunks=2)
    result = tileops.tile(x, repeats)
    assert result.numblocks == da.tile(x, repeats).numblocks
    assert len(result.__dask_graph__()) == len(x.__dask_graph__()) + result.npartitions


def test_a_view_of_one_chunk_takes_no_task(da):
    x = da.from_array(np.arange(6), chunks=6)
    assert len(tileops.expand(x, (1, 6)).__dask_graph__()) == len(x[None].__dask_graph__())


def test_empty_arrays_of_a_model_are_run(da):
    """Dask divides by zero where it chooses the chunks of an empty array with long axes."""
    backend = tileops.onnx.backend.for_library("dask")
    node = onnx.helper.make_node("Tile", ["x", "repeats"], ["y"])
    for shape in ((0, 512, 512, 3), (10**6, 0), (0,)):
        x = np.zeros(shape, np.float32)
        for given in (x, da.from_array(x, chunks=-1)):
            (y,) = backend.run_node(node, [given, np.full(x.ndim, 2)])
            assert (y.shape, y.dtype) == (tuple(2 * n for n in shape), x.dtype)
            assert np.asarray(y).shape == y.shape


def test_a_single_count_is_refused_before_it_is_computed(never):
    count = never[0, 0].astype(np.int64)
    for call in (tileops.onnx.tile, tileops.onnx.expand, tileops.openvino.tile):
        with pytest.raises(ValueError, match="must be one-dimensional"):
            call(np.ones(1), count)


def test_chunks_along_the_last_of_64_axes_are_repeated(da):
    values = np.arange(6).reshape(2, 3)
    for ones, repeats in ((0, (1,) * 63 + (2,)), (62, (2,))):
        x = da.from_array(values.reshape((1,) * ones + (2, 3)), chunks=2)
        result = tileops.tile(x, repeats).compute()
        assert result.shape == (1,) * 62 + (2, 6)
        assert np.array_equal(result.reshape(2, 6), np.tile(values, 2))


@pytest.mark.parametrize("dtype", [object, np.dtypes.StringDType()])
@pytest.mark.parametrize("repeats", [(2, 1), (0, 1), (1, 3)])
def test_text_may_have_more_axes_than_dask_can_read_for_a_name(da, dtype, repeats):
    values = np.array(["a", "b"], dtype)
    counts = (*repeats[:1], *(1,) * 38, *repeats[1:])
    for chunks in (1, 2):
        x = da.from_array(values, chunks=chunks)
        result = tileops.tile(x, counts).compute()
        assert (result.shape, result.dtype) == ((*counts[:-1], 2 * counts[-1]), values.dtype)
        assert result.ravel().tolist() == ["a", "b"] * (repeats[0] * repeats[1])


def test_equal_calls_give_equal_names_and_others_do_not(da):
    import dask

    x = da.from_array(np.arange(6), chunks=6)
    names = [
        call().name
        for call in (
            lambda: tileops.tile(x, 2),
            lambda: tileops.tile(x, 3),
            lambda: tileops.tile(x + 1, 2),
            lambda: tileops.tile(x, 0),
            lambda: tileops.tile(x, (0, 1)),
            lambda: tileops.expand(x, (2, 6)),
        )
        for _ in range(2)
    ]
    assert names[::2] == names[1::2]
    assert len(set(names)) == 6
    with dask.config.set({"array.chunk-size": "48B"}):
        assert tileops.tile(x, 2).name not in names


def test_the_size_of_a_task_does_not_grow_with_the_graph(da):
    """Each task is sent to a worker on its own."""
    import cloudpickle

    def largest(n):
        result = tileops.expand(da.ones((n, 1), chunks=1), (n, 5))
        tasks = dict(result.__dask_graph__().layers[result.name])
        assert len(tasks) == n
        return max(len(cloudpickle.dumps(task)) for task in tasks.values())

    assert largest(1000) < 1.1 * largest(10)


def test_more_chunks_than_a_graph_can_name_are_refused(da):
    with pytest.raises(tileops.OutputTooLargeError, match=r"axis 1 has 2 chunks.*rechunk\(\{0: -1"):
        tileops.tile(da.ones(4, chunks=2), (2, 2**40))


@pytest.mark.parametrize(
    "shape, chunks, repeats",
    [
        ((1,), 1, (2**58,)),
        ((1, 2, 1), 1, (2**28, 1, 2**28)),
        ((2, 2), 1, (2**13, 2**13)),
        ((3, 1), 1, (1, 2**50)),
        ((2**10, 2**10), 1, (2, 1)),
        ((1, 4, 6), (1, 3, 3), (5 * 10**11, 1, 1)),
        ((1, 2000, 2000), (1, 1000, 1000), (10**8, 1, 1)),
        ((1, 2000, 2000), ((1,), (1999, 1), (1999, 1)), (10**8, 1, 1)),
        ((2, 2, 2), 1, (2**19, 2**19, 2**18)),
    ],
)
def test_too_many_chunks_in_all_are_refused_before_a_graph_is_made(da, shape, chunks, repeats):
    x = da.ones(1, chunks=1) if shape == (1,) else da.from_array(np.ones(1)).reshape(1)
    x = da.broadcast_to(x.reshape((1,) * len(shape)), shape, chunks=chunks)

    def refused():
        with pytest.raises(tileops.OutputTooLargeError, match=r"graph of more than 1048576 chunks"):
            tileops.tile(x, repeats)

    assert peak_of(refused) < 2**24


def test_one_chunk_above_the_limit_is_refused(da):
    with pytest.raises(tileops.OutputTooLargeError, match=r"has 1048578 chunks or more"):
        tileops.tile(da.ones((1, 2), chunks=1), (2**43 + 1, 1))


def test_too_many_chunks_are_refused_for_the_adjoint_of_an_empty_array(da):
    g = da.zeros(0)
    with pytest.raises(tileops.OutputTooLargeError, match=r"^tile_adjoint: .* 2097152 chunks"):
        tileops.tile_adjoint(g, 2**45, 0)
    assert tileops.tile_adjoint(g, 2**30, 0).numblocks == (64,)


@pytest.mark.parametrize("chunk_size", ["1B", "0B", -1])
def test_a_chunk_above_the_chunk_size_of_dask_counts_as_one(da, chunk_size):
    import dask

    with dask.config.set({"array.chunk-size": chunk_size}):
        assert tileops.tile(da.ones(2**8, chunks=-1), 2**10).numblocks == (2**10,)
    of_4_gigabytes = da.ones(2**29, chunks=-1)  # more than an element of any dtype of NumPy
    assert tileops.tile(of_4_gigabytes, 3).numblocks == (3,)


@pytest.mark.parametrize("dtype, chunks", [("f8", (2**21,) * 64), ("u1", (2**24,) * 8)])
def test_an_axis_of_one_chunk_is_repeated_up_to_16_megabytes(da, dtype, chunks):
    result = tileops.tile(da.ones(2**10, dtype=dtype, chunks=-1), 2**17)
    assert result.chunks == (chunks,)


@pytest.mark.parametrize("values", [np.ones((2, 3)), np.full((2, 3), None)], ids=["f8", "object"])
def test_an_empty_result_is_one_chunk(da, values):
    """Dask chooses no chunks for objects."""
    result = tileops.tile(da.from_array(values, chunks=-1), (0, 5))
    assert result.chunks == ((0,), (15,))
    assert result.dtype == values.dtype


@pytest.mark.parametrize("chunks", [(0, 2, 2), (2, 0, 2), (2, 2, 0)])
def test_empty_chunks_among_others_are_repeated(da, chunks):
    values = np.arange(12).reshape(4, 3)
    result = tileops.tile(da.from_array(values, chunks=(chunks, 3)), (2, 3))
    assert result.compute().tolist() == np.tile(values, (2, 3)).tolist()


def test_unknown_sizes_are_refused_with_the_remedy(da):
    x = da.arange(10, chunks=5)
    x = x[x > 3]
    for operator in (tileops.tile, tileops.expand):
        with pytest.raises(tileops.ShapeError, match=r"axis 0 .*compute_chunk_sizes"):
            operator(x, 2)
    with pytest.raises(tileops.ShapeError, match=r"axis 0 of g .*its compute_chunk_sizes"):
        tileops.tile_adjoint(x, 2, 3)


def test_computed_copies_are_writable(da):
    x = da.from_array(np.arange(3.0), chunks=3)
    for result in (tileops.expand(x, (2, 3), copy=True), tileops.tile(x, 1), tileops.tile(x, 2)):
        values = result.compute()
        assert values.flags.writeable
        assert values.flags.c_contiguous


def test_an_assignment_to_a_copy_leaves_the_input(da):
    for chunks in (2, 4):
        x = da.from_array(np.arange(4), chunks=chunks)
        for result in (tileops.tile(x, 1), tileops.expand(x, (4,), copy=True)):
            result[0] = 9
            assert result.compute().tolist() == [9, 1, 2, 3]
            assert x.compute().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("counts", [1, 2, (2, 1), (3, 2)])
def test_masks_and_records_of_chunks_survive(da, counts):
    values = np.ma.array([1, 2, 3, 4], mask=[0, 1, 0, 1])
    masked = da.from_array(values, chunks=2, asarray=False)
    for result in (tileops.tile(masked, counts), tileops.tile(masked.astype(">i4"), counts)):
        assert result.compute().tolist() == np.ma.array(np.tile(values, counts)).tolist()
    assert tileops.expand(masked, (2, 4)).compute().tolist() == [values.tolist()] * 2
    for empty in (tileops.tile(masked, 0), tileops.tile(tileops.tile(masked, counts), 0)):
        assert type(empty.compute()) is np.ma.MaskedArray
    mixed = np.array([(1, 2.0), (3, 4.0)], [("a", ">i4"), ("b", "<f8")])
    padded = np.zeros(
        2, np.dtype({"names": ["a", "b"], "formats": ["i1", ">i4"], "offsets": [0, 8]})
    )
    for records in (mixed, padded):
        result = tileops.tile(da.from_array(records, chunks=1), counts)
        assert result.dtype == records.dtype
        assert result.compute().tolist() == np.tile(records, counts).tolist()


def test_an_adjoint_sums_narrow_floats_of_one_chunk_in_wider_ones(da):
    """NumPy's own sum over the first of several axes stops at 2048, where adding 1 rounds to it."""
    g = da.ones((10_000, 3), dtype="f2", chunks=-1)
    for total in (tileops.expand_adjoint(g, (1, 3)), tileops.tile_adjoint(g, (1, 3), (10_000, 1))):
        assert total.dtype == total.compute().dtype == np.float16
        assert total.compute().tolist() == [[10_000] * 3]


def test_an_adjoint_keeps_a_foreign_byte_order(da):
    g = da.from_array(np.arange(12, dtype=">i2"), chunks=4)
    result = tileops.tile_adjoint(g, 4, 3)
    assert result.dtype.str == result.compute().dtype.str == ">i2"
    assert result.compute().tolist() == [12, 15, 18, 21]


@pytest.mark.parametrize("chunks", [(0, 1), (1, 0), (0, 1, 0), (1,)])
def test_an_adjoint_without_repeats_takes_empty_chunks(da, chunks):
    x = da.from_array(np.array([7.0]), chunks=(chunks,))
    for counts in ((1,), (1, 1), (1, 1, 1)):
        total = tileops.tile_adjoint(tileops.tile(x, counts), (1,), counts)
        assert (total.shape, total.compute().tolist()) == ((1,), [7])
    for value in (np.ma.array([1], "f4", mask=[True]), np.array([1], ">f4")):
        g = da.from_array(value, chunks=(chunks,), asarray=False)[np.newaxis]
        total = tileops.tile_adjoint(g, (), (1, 1)).compute()
        assert (type(total), total.dtype, total.shape) == (type(value), value.dtype, ())
        assert np.ma.getmaskarray(total) == np.ma.getmaskarray(value)[0]
    total = tileops.expand_adjoint(tileops.expand(x, (1, 1)), (1,))
    total[0] = 3  # the adjoint must be a new array
    assert (total.compute().tolist(), x.compute().tolist()) == ([3], [7])


def test_an_adjoint_of_an_empty_array_is_lazy_and_keeps_its_class(da):
    empty = da.from_array(np.ma.array(np.ones(0), mask=[]), asarray=False)
    result = tileops.tile_adjoint(empty, 3, 0).compute()
    assert type(result) is np.ma.MaskedArray
    assert result.tolist() == [0, 0, 0]
    assert tileops.tile_adjoint(da.ones(0, dtype=">f4"), 10**11, 0)[:2].compute().tolist() == [0, 0]


def test_chunks_of_masked_records_are_expanded_by_copying(da):
    values = np.ma.array([(1, 2.0), (3, 4.0)], [("a", "i4"), ("b", "f8")], mask=[(0, 1), (1, 0)])
    x = da.from_array(values[:, None], asarray=False, chunks=1)
    result = tileops.expand(x, (2, 3)).compute()
    assert result.tolist() == [[row] * 3 for row in values.tolist()]


def test_chunks_of_a_class_that_tile_refuses_are_refused_when_they_are_computed(da):
    class Kind(np.ma.MaskedArray):
        pass

    x = da.from_array(np.ma.array([1, 2], mask=[0, 1]).view(Kind), asarray=False, chunks=2)
    for copy in (True, None):
        with pytest.raises(tileops.DTypeError, match="Kind, an unknown subclass of masked"):
            tileops.expand(x, (3, 2), copy=copy).compute(scheduler="synchronous")


def test_chunks_that_are_not_arrays_are_refused_before_computing(da):
    class Lengths:
        """Dask takes it for an array, but it does not follow the standard."""

        shape, ndim, dtype = (2, 1), 2, np.dtype(float)

        def __getitem__(self, key):
            return self

        def __array_function__(self, *_):
            raise AssertionError

    x = da.from_array(Lengths(), asarray=False, chunks=-1)
    for counts in (2, (0, 1)):
        with pytest.raises(tileops.DTypeError, match=r"a chunk of the input is .*Lengths, not an"):
            tileops.tile(x, counts)


def test_importing_dask_does_not_import_its_arrays():
    import subprocess
    import sys

    code = (
        "import sys, dask, numpy as np, tileops\n"
        "class Two:\n    def __index__(self): return 2\n"
        "sys.modules['torch'] = None\n"
        "assert tileops.tile(np.ones(2), Two()).shape == (4,)\n"
        "assert 'dask.array' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_block_whose_size_differs_from_its_declaration_is_repeated(da):
    halved = da.arange(8, chunks=4).map_blocks(lambda block: block[:2], dtype=int)
    for call, times in (
        (lambda x: tileops.tile(x, 1), 1),
        (lambda x: tileops.tile(x, 3), 3),
        (lambda x: tileops.expand(x, 8, copy=True), 1),
    ):
        assert call(halved).compute().tolist() == [0, 1, 4, 5] * times


def test_an_array_of_counts_is_computed_only_once(da):
    computed = []
    counts = da.ones(3000, dtype=int, chunks=-1).map_blocks(
        lambda block: computed.append(1) or block, dtype=int, meta=np.ones(0, int)
    )
    with pytest.raises(tileops.ShapeError, match="64 at most"):
        tileops.tile(np.ones(2), counts)
    assert computed == [1]


def test_fixed_width_text_and_objects_keep_their_dtype():
    executor = execute.executor_named("dask")
    for values in (np.array(["a", "bc"]), np.array([1, "a"], object)):
        carried = executor.from_numpy(values, None)
        assert carried.dtype == values.dtype
        assert carried.compute().tolist() == values.tolist()


def test_elements_of_zero_bytes_are_repeated(da):
    x = da.from_array(np.zeros((2, 3), "V0"), chunks=-1)
    assert tileops.tile(x, (2, 2)).compute().shape == (4, 6)


def test_too_many_elements_of_zero_bytes_are_refused_before_chunks_are_listed(da):
    x = da.from_array(np.zeros(1, "V0"), chunks=-1)

    def refused():
        with pytest.raises(tileops.OutputTooLargeError, match=r"graph of more than 1048576 chunks"):
            tileops.tile(x, 2**46)

    assert peak_of(refused) < 2**24


def test_as_many_chunks_as_the_limit_are_allowed(da, monkeypatch):
    monkeypatch.setattr("tileops.execute.dask._MOST_CHUNKS", 6)
    x = da.ones(3, chunks=1)
    assert tileops.tile(x, 2).numblocks == (6,)
    with pytest.raises(tileops.OutputTooLargeError, match="chunks"):
        tileops.tile(x, 3)


def test_the_limit_of_chunks_applies_only_to_repeats(da, monkeypatch):
    monkeypatch.setattr("tileops.execute.dask._MOST_CHUNKS", 4)
    x = da.ones(8, chunks=1)
    assert tileops.tile(x, 1).compute().tolist() == [1] * 8
    with pytest.raises(tileops.OutputTooLargeError, match="chunks"):
        tileops.tile(x, 2)


@pytest.mark.parametrize(
    ("values", "dtype", "single", "expected"),
    [
        ([1, 2], object, lambda x: x.sum(), 3),
        ([[1], "a"], object, lambda x: x[0].persist(), [1]),
        (["a", "bb"], "U2", lambda x: x[0], "a"),
        (["a", "bb"], "U2", lambda x: x[0].persist(), "a"),
        ([b"a", b"bb"], "S2", lambda x: x[0].persist(), b"a"),
        (["a", "bb"], np.dtypes.StringDType(), lambda x: x[1].persist(), "bb"),
    ],
    ids=["sum", "list", "text", "kept text", "bytes", "string"],
)
def test_a_single_object_or_text_need_not_be_an_array_in_its_chunk(
    da, values, dtype, single, expected
):
    """NumPy's reductions and items are bare objects, and Dask puts them into chunks."""
    array = np.empty(2, dtype)
    array[:] = values
    x = single(da.from_array(array, chunks=-1))
    for result, shape in (
        (tileops.expand(x, (2,)), (2,)),
        (tileops.expand(x, (2,), copy=True), (2,)),
        (tileops.tile(x, ()), ()),
        (tileops.tile(x, (2, 3)), (2, 3)),
    ):
        computed = result.compute()
        assert (computed.shape, computed.dtype, result.dtype) == (shape, dtype, dtype)
        assert computed.ravel().tolist() == [expected] * computed.size


def test_a_single_masked_text_stays_masked(da):
    text = da.from_array(np.ma.masked_array("abc", mask=True), asarray=False)
    computed = tileops.tile(text, 2).compute()
    assert (type(computed), computed.dtype) == (np.ma.MaskedArray, "U3")
    assert np.ma.getmaskarray(computed).tolist() == [True, True]
