import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from ratoon.datasets import Dataset, make_microarray, read, write
from ratoon.errors import InvalidParameterError


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".tsv"])
def test_a_written_data_set_is_read_back_bit_for_bit(tmp_path, suffix):
    data, _ = make_microarray(20, 300, 3, 10)
    again = read(write(data, tmp_path / f"a{suffix}"))
    assert_array_equal(again.X, data.X)
    assert_array_equal(again.y, data.y)
    for name in ("feature_names", "sample_names", "class_names"):
        assert getattr(again, name) == getattr(data, name)


def test_a_sparse_matrix_stays_sparse(tmp_path):
    data = Dataset(sp.random(30, 40, 0.1, format="csr", random_state=0), np.arange(30) / 7)
    again = read(write(data, tmp_path / "a.npz"), dtype="float64")
    assert again.is_sparse
    assert (again.X != data.X).nnz == 0
    assert_array_equal(again.y, data.y)
    table = read(write(data, tmp_path / "a.csv"), dtype="float64")
    assert_array_equal(table.X, data.X.toarray())


@settings(deadline=None, max_examples=40)
@given(arrays(np.float32, (3, 2), elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_every_float_survives_text(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("floats") / "a.csv"
    assert_array_equal(read(write(Dataset(values), path)).X, values)


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such permissions")
@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_a_new_file_has_the_usual_permissions(tmp_path, suffix):
    plain = tmp_path / "plain"
    plain.touch()
    written = write(Dataset(np.eye(2)), tmp_path / f"data{suffix}")
    assert written.stat().st_mode == plain.stat().st_mode


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    with pytest.raises(InvalidParameterError, match=r"not '\.xls'"):
        write(Dataset(np.eye(2)), tmp_path / "a.xls")
    broken = Dataset(np.eye(2), feature_names=("a", "\ud800"))
    with pytest.raises(UnicodeEncodeError):
        write(broken, tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []
