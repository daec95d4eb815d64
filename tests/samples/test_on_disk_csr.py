"""CSR matrices on disk: the values of the file, in blocks, every index checked."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from ratoon.errors import FormatError, InvalidInputError
from ratoon.samples import on_disk_csr
from ratoon.samples.on_disk_csr import CsrReader, DiskCsrRows
from ratoon.samples.statistics import feature_statistics


@pytest.fixture
def matrix():
    return sp.random_array(
        (300, 40), density=0.1, format="csr", random_state=np.random.default_rng(0)
    )


def on_disk(matrix, **options):
    return DiskCsrRows(
        CsrReader(matrix.data, matrix.indices, matrix.indptr, matrix.shape[1], **options)
    )


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(on_disk_csr, "BLOCK_BYTES", 1000)


def test_rows_in_any_order_are_those_of_the_matrix(matrix, small_blocks):
    x = on_disk(matrix, group=2)
    assert x.reader.block_rows < 30
    rows = np.random.default_rng(1).permutation(300)[:120]
    assert_array_equal(x[rows].values().toarray(), matrix.toarray()[rows])
    assert_array_equal(np.asarray(x[5:9]), matrix.toarray()[5:9])
    assert x[rows].n_stored == matrix[rows].nnz
    assert (
        x[rows][np.array([3])].values().toarray().tolist() == matrix[rows[[3]]].toarray().tolist()
    )
    assert len(x.reader._kept) == 2


def test_an_epoch_reads_every_row_once_in_a_shuffled_order(matrix, small_blocks):
    x = on_disk(matrix, group=2)
    rows = x.shuffled(np.arange(300), np.random.default_rng(0))
    assert_array_equal(np.sort(rows), np.arange(300))
    blocks = rows // x.reader.block_rows
    assert np.count_nonzero(np.diff(blocks)) > 100
    assert max(np.ptp(np.flatnonzero(blocks == b)) for b in np.unique(blocks)) < 60


def test_a_block_of_long_rows_is_made_of_fewer_rows(monkeypatch):
    monkeypatch.setattr(on_disk_csr, "BLOCK_BYTES", 4000)
    monkeypatch.setattr(on_disk_csr, "LARGEST_BLOCK_BYTES", 4000)
    dense = np.zeros((100, 200))
    dense[40:60] = 1.0
    x = on_disk(sp.csr_array(dense))
    assert x.reader.block_rows * 200 * 12 <= 4800
    assert_array_equal(np.asarray(x), dense)


@pytest.mark.parametrize("weighted", [False, True])
def test_statistics_are_those_of_the_matrix_in_memory(matrix, small_blocks, weighted):
    weights = np.linspace(0, 2, 300) if weighted else None
    found, expected = (feature_statistics(x, weights) for x in (on_disk(matrix), matrix))
    for name in ("mean", "std", "constant", "largest"):
        # Sums over blocks are added up in another order.
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12)


def test_indices_outside_the_matrix_are_refused_when_they_are_read(matrix):
    damaged = matrix.copy()
    damaged.indices = damaged.indices.copy()
    damaged.indices[-1] = 40
    x = on_disk(damaged, source="bad.h5ad")
    with pytest.raises(FormatError, match=r"bad\.h5ad: index 40 lies outside"):
        x.check()


@pytest.mark.parametrize("starts", [[1, 2], [0, 5], [0, -1], [0, 2, 1]])
def test_row_starts_are_checked_at_once(starts):
    with pytest.raises(FormatError, match="damaged"):
        CsrReader(np.ones(2), np.zeros(2, int), np.array(starts), 3)


def test_unsorted_rows_are_sorted_and_duplicates_added_up():
    x = DiskCsrRows(CsrReader(np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3]), 3))
    assert np.asarray(x).tolist() == [[2.0, 0.0, 5.0]]


def test_missing_values_are_found():
    x = DiskCsrRows(CsrReader(np.array([1.0, np.nan]), np.array([0, 1]), np.array([0, 1, 2]), 3))
    with pytest.raises(InvalidInputError, match="NaN"):
        x.check()
