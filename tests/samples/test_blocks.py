"""Dask arrays and Parquet datasets: read in blocks, the same network as in memory."""

import tracemalloc

import numpy as np
import pytest

from ratoon import SparseMLPClassifier
from ratoon.datasets import open_stored
from ratoon.errors import FormatError, InvalidInputError
from ratoon.samples import blocks
from ratoon.samples.blocks import ParquetReader, rows_in_blocks

HOW = {"hidden_layer_sizes": (10,), "density": 0.5, "max_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    x = np.random.default_rng(0).normal(size=(400, 6)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(int)


# ---------------------------------------------------------------------------------- Dask


@pytest.fixture
def dask_array():
    return pytest.importorskip("dask.array", reason="dask is not installed")


@pytest.mark.parametrize("chunks", [(50, 6), (400, 2), ((10, 390), (6,))])
def test_a_dask_array_gives_the_network_of_an_array(dask_array, table, chunks):
    x, y = table
    lazy = dask_array.from_array(x, chunks=chunks)
    found = SparseMLPClassifier(**HOW).fit(lazy, dask_array.from_array(y, chunks=100))
    expected = SparseMLPClassifier(**HOW).fit(x, y)
    np.testing.assert_array_equal(found.predict_proba(lazy), expected.predict_proba(x))


def test_a_dask_array_is_never_whole_in_memory(dask_array):
    n, p = 20_000, 500  # 40 MB in float32, in blocks of 400 kB
    lazy = dask_array.random.default_rng(0).standard_normal((n, p), chunks=(200, p))
    lazy = lazy.astype(np.float32)
    model = SparseMLPClassifier((5,), epsilon=1, max_iter=1, scale=None, dtype="float32")
    y = np.arange(n) % 2
    model.partial_fit(lazy[:200], y[:200])  # imports
    import ratoon.samples.on_disk as on_disk

    usual, on_disk.BLOCK_BYTES = on_disk.BLOCK_BYTES, 2**19
    try:
        tracemalloc.start()
        model.partial_fit(lazy, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        on_disk.BLOCK_BYTES = usual
    assert peak < 20e6


def test_dask_arrays_that_cannot_be_read_are_refused_with_a_recipe(dask_array, table):
    x, y = table
    lazy = dask_array.from_array(x, chunks=(50, 6))
    with pytest.raises(InvalidInputError, match="compute_chunk_sizes"):
        SparseMLPClassifier(**HOW).fit(lazy[lazy[:, 0] > 0], y)
    frames = pytest.importorskip("dask.dataframe", reason="dask[dataframe] is not installed")
    import pandas as pd

    frame = frames.from_pandas(pd.DataFrame(x), npartitions=3)
    with pytest.raises(InvalidInputError, match="to_dask_array"):
        SparseMLPClassifier(**HOW).fit(frame, y)


# ------------------------------------------------------------------------------- Parquet

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
import pyarrow.dataset  # noqa: E402
import pyarrow.parquet  # noqa: E402


@pytest.fixture
def folder(table, tmp_path):
    """Two Parquet files with row groups of 30 rows."""
    x, y = table
    for part, rows in enumerate((slice(0, 250), slice(250, 400))):
        columns = {f"g{k}": x[rows, k] for k in range(6)}
        columns["outcome"] = np.where(y[rows], "case", "control")
        pyarrow.parquet.write_table(
            pa.table(columns), tmp_path / f"part-{part}.parquet", row_group_size=30
        )
    return tmp_path


def test_a_folder_of_parquet_files_gives_the_network_of_an_array(folder, table, monkeypatch):
    x, y = table
    monkeypatch.setattr(blocks, "GROUP", 100)  # all row groups fit: the order is that of an array
    data = open_stored(folder, label="outcome")
    found = SparseMLPClassifier(**HOW).fit(data)
    expected = SparseMLPClassifier(**HOW).fit(x, np.where(y, "case", "control"))
    np.testing.assert_array_equal(found.predict(data), expected.predict(x))
    assert found.feature_names_in_.tolist() == [f"g{k}" for k in range(6)]
    assert data.class_names == ("case", "control")


def test_an_arrow_dataset_is_read_by_row_groups(folder, table):
    x, _ = table
    names = [f"g{k}" for k in range(6)]
    reader = ParquetReader(pyarrow.dataset.dataset(folder), names)
    assert reader.shape == (400, 6)
    assert reader.group == 8
    rows = np.random.default_rng(1).integers(400, size=300)
    np.testing.assert_array_equal(reader.take(rows), x[rows])
    assert len(reader._kept) <= reader.group
    order = reader.shuffled(np.arange(400), np.random.default_rng(2))
    assert np.array_equal(np.sort(order), np.arange(400))
    groups = np.searchsorted(reader._starts, order, side="right") - 1
    assert np.unique(groups[:200]).size <= 8  # the first rows come from eight row groups


def test_a_dataset_of_numbers_can_be_x(folder, table):
    x, y = table
    pyarrow.parquet.write_table(pa.table({f"g{k}": x[:, k] for k in range(6)}), folder / "x.pq")
    dataset = pyarrow.dataset.dataset(folder / "x.pq", format="parquet")
    model = SparseMLPClassifier(**HOW).fit(dataset, y)
    np.testing.assert_array_equal(model.predict(dataset), model.predict(x))
    assert rows_in_blocks(x) is None


def test_datasets_that_cannot_be_read_are_refused(folder, table, monkeypatch):
    with pytest.raises(InvalidInputError, match=r"'outcome'.*string"):
        SparseMLPClassifier(**HOW).fit(pyarrow.dataset.dataset(folder), table[1])
    with pytest.raises(InvalidInputError, match="no column 'nowhere'"):
        open_stored(folder, label="nowhere")
    (folder / "broken.parquet").write_bytes(b"PAR1 not a table")
    with pytest.raises(FormatError):
        open_stored(folder, label="outcome")
    (folder / "broken.parquet").unlink()
    monkeypatch.setattr(blocks, "MOST_BYTES", 100)
    with pytest.raises(InvalidInputError, match="row_group_size="):
        open_stored(folder, label="outcome")


def test_missing_values_in_a_parquet_file_are_found(tmp_path):
    x = np.ones((40, 2))
    x[3, 1] = np.nan
    pyarrow.parquet.write_table(pa.table({"a": x[:, 0], "b": x[:, 1]}), tmp_path / "x.parquet")
    data = open_stored(tmp_path / "x.parquet")
    with pytest.raises(InvalidInputError, match="NaN"):
        SparseMLPClassifier(**HOW).fit(data, np.arange(40) % 2)
