import h5py
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.datasets import can_stay_on_disk, open_stored
from ratoon.errors import FormatError, InvalidInputError
from ratoon.samples.on_disk import DiskRows

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def written(path, **arrays):
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values
    return path


def test_an_hdf5_file_is_opened_and_its_samples_stay_on_disk(tmp_path):
    path = written(
        tmp_path / "a.h5", X=X, y=[b"ill", b"well", b"ill", b"ill"], feature_names=["a", "b", "c"]
    )
    assert can_stay_on_disk(path)
    data = open_stored(path)
    assert isinstance(data.X, DiskRows)
    assert (data.class_names, data.y.tolist()) == (("ill", "well"), [0, 1, 0, 0])
    assert data.feature_names == ("a", "b", "c")
    assert_array_equal(np.asarray(data.take([2, 0]).X), X[[2, 0]])
    assert "stays on disk" in data.describe()


def test_arrays_can_be_named(tmp_path):
    path = written(tmp_path / "a.hdf5", X=X, other=X + 1, goal=[0.5, 1.5, 2.5, 3.5])
    data = open_stored(path, matrix="other", label="goal")
    assert_array_equal(np.asarray(data.X), X + 1)
    assert data.class_names is None
    with pytest.raises(InvalidInputError, match="there is no array 'nothing'"):
        open_stored(path, label="nothing")


def test_labels_of_an_npy_file_are_in_another(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", [1, 1, 0, 1])
    assert open_stored(tmp_path / "X.npy").y is None
    data = open_stored(tmp_path / "X.npy", label=str(tmp_path / "y.npy"))
    assert_array_equal(np.asarray(data.X), X)
    assert data.class_counts == {"0": 1, "1": 3}


def test_files_of_other_readers_cannot_stay_on_disk(tmp_path):
    with h5py.File(tmp_path / "cells.h5", "w") as file:
        file.create_group("obs")
        file.create_group("var")
    assert not can_stay_on_disk(tmp_path / "cells.h5")
    assert not can_stay_on_disk(tmp_path / "a.csv")


def test_values_in_another_file_are_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", (4, 3), "f4", external=[(str(tmp_path / "raw"), 0, 48)])
    with pytest.raises(FormatError, match="another file"):
        open_stored(tmp_path / "a.h5")


def test_damaged_and_missing_files_are_errors(tmp_path):
    (tmp_path / "cut.npy").write_bytes(b"\x93NUMPY\x01")
    with pytest.raises(FormatError, match="not a complete"):
        open_stored(tmp_path / "cut.npy")
    (tmp_path / "cut.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(FormatError, match="damaged"):
        open_stored(tmp_path / "cut.h5")
    with pytest.raises(InvalidInputError, match="no such file"):
        open_stored(tmp_path / "nothing.npy")
