"""Results have the order of the tasks, and samples are memory-mapped instead of copied."""

import joblib
import numpy as np
import pytest

from ratoon.errors import InvalidInputError
from ratoon.experiments.fan_out import fan_out, shared

X = np.arange(12.0).reshape(4, 3)


def what_it_is(x, row):
    return type(x).__name__, x.flags.writeable, x[row].tolist()


def test_with_one_job_the_samples_are_not_copied():
    seen = []
    assert list(fan_out(lambda x, k: seen.append(x) or k, X, [(1,), (2,)])) == [1, 2]
    assert all(x is X for x in seen)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_get_a_memory_map_and_results_are_in_order(backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        found = list(fan_out(what_it_is, X, [(row,) for row in range(4)]))
    assert found == [("memmap", False, X[row].tolist()) for row in range(4)]


def test_a_memory_map_is_shared_without_a_copy(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    with shared(mapped) as found:
        assert found.path == str(tmp_path / "x.npy")
        np.testing.assert_array_equal(found.open(), X)


@pytest.mark.parametrize("part", [np.s_[1:], np.s_[:, 1:], np.s_[::-1]], ids=str)
def test_a_part_of_a_memory_map_is_shared_as_that_part(tmp_path, part):
    np.save(tmp_path / "x.npy", X)
    with shared(np.load(tmp_path / "x.npy", mmap_mode="r")[part]) as found:
        np.testing.assert_array_equal(found.open(), X[part])


def test_the_file_is_in_the_joblib_folder_and_removed_afterwards(tmp_path, monkeypatch):
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    with shared(X) as found:
        assert found.path.startswith(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidInputError, match="JOBLIB_TEMP_FOLDER"):
        found.open()


def fail(x, k):
    raise ValueError(f"task {k}")


def test_an_error_of_a_worker_is_raised():
    with pytest.raises(ValueError, match="task 0"):
        list(fan_out(fail, X, [(0,)], n_jobs=2))
