import h5py
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidInputError
from ratoon.samples import on_disk
from ratoon.samples.on_disk import BlockReader, DiskRows, MapReader, block_rows, rows_on_disk


@pytest.fixture
def table():
    return np.random.default_rng(0).integers(-99, 99, size=(500, 6)).astype(np.int16)


@pytest.fixture
def stored(table, tmp_path, monkeypatch):
    """The table in a file, with blocks of 20 rows."""
    monkeypatch.setattr(on_disk, "BLOCK_BYTES", 20 * 6 * 4)
    with h5py.File(tmp_path / "table.h5", "w") as file:
        yield file.create_dataset("X", data=table, chunks=(10, 6), compression="gzip")


class Counted:
    """A data set that counts how many rows are read from it."""

    def __init__(self, source):
        self.source, self.rows_read = source, 0
        self.shape, self.dtype, self.chunks = source.shape, source.dtype, source.chunks

    def __getitem__(self, key):
        part = self.source[key]
        self.rows_read += len(part)
        return part


def test_rows_are_read_in_any_order(stored, table):
    x = rows_on_disk(stored)
    assert (x.shape, x.dtype, x.reader.block_rows) == ((500, 6), np.float32, 20)
    assert_array_equal(np.asarray(x), table)
    rows = np.random.default_rng(1).integers(500, size=300)
    assert_array_equal(np.asarray(x[rows]), table[rows])
    assert_array_equal(np.asarray(x[100:400][rows // 2]), table[100:400][rows // 2])
    assert_array_equal(np.asarray(x[table[:, 0] > 0], dtype=np.float64), table[table[:, 0] > 0])


def test_a_memory_map_is_wrapped_only_if_kernels_cannot_read_it(table, tmp_path):
    def mapped(x):
        np.save(tmp_path / "x.npy", x)
        return np.load(tmp_path / "x.npy", mmap_mode="r")

    assert rows_on_disk(mapped(table.astype(np.float32))) is None
    assert rows_on_disk(table) is None
    for kind in (np.int16, np.uint16, np.int8, np.uint8, np.bool_):
        assert rows_on_disk(mapped(table.astype(kind))) is None
    for x in (
        table.astype(np.int32),
        table.astype(">i2"),
        table.astype(">f4"),
        np.asfortranarray(table.astype(np.float32)),
    ):
        assert_array_equal(np.asarray(rows_on_disk(mapped(x))[5:9]), table[5:9])


def test_an_epoch_reads_every_block_once_and_shuffles_the_rows_of_a_group(stored):
    source = Counted(stored)
    x = DiskRows(BlockReader(source, group=4))
    order = x.shuffled(np.arange(500), np.random.default_rng(0))
    assert_array_equal(np.sort(order), np.arange(500))
    for first in range(0, 500, 7):  # minibatches that overlap groups
        np.asarray(x[order[first : first + 7]])
    assert source.rows_read == 500
    assert len(x.reader._kept) == 4, "the blocks of one group are in memory"
    first_group = order[:80]
    assert len(set((first_group // 20).tolist())) == 4
    assert np.count_nonzero(np.diff(first_group // 20)) > 30


def test_the_order_depends_on_the_seed(stored):
    x = rows_on_disk(stored)
    orders = [x.shuffled(np.arange(500), np.random.default_rng(seed)) for seed in (3, 3, 4)]
    assert_array_equal(orders[0], orders[1])
    assert (orders[0] != orders[2]).any()


def test_rows_of_one_group_are_shuffled_as_in_memory(stored):
    x = DiskRows(BlockReader(stored, group=25))
    found = x.shuffled(np.arange(500), np.random.default_rng(0))
    assert_array_equal(found, np.random.default_rng(0).permutation(500))


def test_a_view_is_shuffled_within_itself(stored):
    chosen = np.random.default_rng(2).permutation(500)[:200]
    view = DiskRows(BlockReader(stored, group=4))[chosen]
    order = view.shuffled(np.arange(200), np.random.default_rng(0))
    assert_array_equal(np.sort(order), np.arange(200))
    assert len(set((chosen[order[:20]] // 20).tolist())) <= 4


def test_tall_chunks_do_not_make_blocks_of_the_whole_table(monkeypatch, tmp_path):
    monkeypatch.setattr(on_disk, "LARGEST_BLOCK_BYTES", 50 * 4)
    with h5py.File(tmp_path / "tall.h5", "w") as file:
        tall = file.create_dataset("X", shape=(5000, 1), dtype="f4", chunks=(5000, 1))
        assert block_rows(tall, np.dtype(np.float32)) == 50


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_and_infinite_values_are_found_when_they_are_read(value):
    x = DiskRows(MapReader(np.array([[1.0], [value], [2.0]])))
    assert_array_equal(np.asarray(x[[0, 2]]), [[1.0], [2.0]])
    with pytest.raises(InvalidInputError, match="Input X contains"):
        x.check()


def test_large_values_are_not_mistaken_for_infinity():
    x = np.full((2, 3), 1.5e308)
    assert_array_equal(np.asarray(DiskRows(MapReader(x))), x)


def test_only_tables_of_numbers_are_accepted(tmp_path):
    with h5py.File(tmp_path / "odd.h5", "w") as file:
        with pytest.raises(InvalidInputError, match="table of rows and features"):
            rows_on_disk(file.create_dataset("flat", data=np.zeros(4)))
        with pytest.raises(InvalidInputError, match="must be numbers"):
            rows_on_disk(file.create_dataset("complex", data=np.zeros((2, 2), dtype=complex)))


@pytest.mark.skipif(np.__version__ < "2", reason="NumPy 1 copies where it has to")
def test_reading_without_a_copy_is_refused():
    with pytest.raises(ValueError, match="without a copy"):
        np.array(DiskRows(MapReader(np.zeros((1, 1)))), copy=False)
