"""The same row has the same fingerprint in every storage; other rows have others."""

import h5py
import numpy as np
import pytest
import scipy.sparse

from ratoon.samples.fingerprints import RowSet, row_fingerprints
from ratoon.samples.in_memory import wrap
from ratoon.samples.on_disk import rows_on_disk

X = np.random.default_rng(0).normal(size=(40, 7)).round(2)
X[X < 0.3] = 0.0


@pytest.mark.parametrize(
    "kind",
    [
        np.float32,
        lambda x: np.where(x == 0, -0.0, x),
        np.asfortranarray,
        scipy.sparse.csr_array,
        scipy.sparse.coo_matrix,
        lambda x: scipy.sparse.csr_array(x, dtype=np.float32),
    ],
)
def test_the_storage_does_not_matter(kind):
    assert row_fingerprints(wrap(kind(X))).tolist() == row_fingerprints(wrap(X)).tolist()


def test_stored_zeros_do_not_matter():
    stored = scipy.sparse.csr_array((np.ones(3), [0, 1, 2], [0, 3]), shape=(1, 4))
    stored.data[1] = 0.0
    assert row_fingerprints(wrap(stored))[0] == row_fingerprints(wrap(stored.toarray()))[0]


def test_bytes_and_floats_are_the_same():
    x = np.arange(12).reshape(3, 4)
    expected = row_fingerprints(wrap(x.astype(float))).tolist()
    assert row_fingerprints(wrap(x.astype(np.uint8))).tolist() == expected


def test_rows_on_disk_are_the_same(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        stored = file.create_dataset("X", data=X)
        found = row_fingerprints(rows_on_disk(stored))
    assert found.tolist() == row_fingerprints(wrap(X)).tolist()


def test_every_value_and_its_place_matter():
    rows = np.array([[1.0, 2.0, 0.0], [1.0, 0.0, 2.0], [0.0, 1.0, 2.0], [1.0, 2.0, 1e-30]])
    assert len(set(row_fingerprints(wrap(rows)).tolist())) == 4


def test_a_set_that_grows_in_small_parts_knows_all_of_them():
    x = np.random.default_rng(1).normal(size=(5000, 3))
    rows = RowSet()
    for first in range(0, 5000, 7):
        rows.add(wrap(x[first : first + 7]))
    assert rows.contains(wrap(x)).all()
    assert not rows.contains(wrap(x + 1)).any()
    assert (np.diff(rows.fingerprints.astype(object)) > 0).all()
    assert rows.fingerprints.size == 5000
