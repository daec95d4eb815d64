"""Samples on disk: the same network as from memory, and never all of them in memory."""

import sys

import h5py
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.errors import InvalidInputError
from ratoon.samples import on_disk
from tests.processes import IS_SANITIZED, run_python


def model(kind=SparseMLPClassifier, **parameters):
    given = {"epsilon": 5, "max_iter": 4, "batch_size": 8, "random_state": 0, "solver": "sgd"}
    return kind((12,), **{**given, **parameters})


def as_map(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


@pytest.fixture
def in_file(tmp_path):
    """From an array to an HDF5 data set in a file that is open until the test ends."""
    with h5py.File(tmp_path / "X.h5", "w") as file:
        yield lambda X, name="X": file.create_dataset(name, data=X, chunks=(7, *X.shape[1:]))


@pytest.mark.parametrize("early_stopping", [False, True])
def test_an_hdf5_data_set_trains_the_network_that_an_array_trains(
    two_classes, in_file, early_stopping
):
    X, y = two_classes
    weights = np.linspace(0.0, 2.0, len(y))
    expected = model(early_stopping=early_stopping).fit(X, y, sample_weight=weights)
    stored = in_file(X)
    found = model(early_stopping=early_stopping).fit(stored, in_file(y, "y"), weights)
    assert_array_equal(found.predict_proba(stored), expected.predict_proba(X))
    assert_allclose(found.loss_curve_, expected.loss_curve_, rtol=1e-6)
    assert found.score(stored, y) == expected.score(X, y)


@pytest.mark.parametrize("dtype", ["i2", ">f4", "f4", "f8"])
def test_a_memory_map_of_any_type_trains_the_network_that_an_array_trains(
    two_classes, tmp_path, dtype
):
    X, y = (100 * two_classes[0]).astype(dtype), two_classes[1]
    expected = model(early_stopping=True).fit(X, y)
    mapped = as_map(X, tmp_path)
    found = model(early_stopping=True).fit(mapped, y)
    assert_array_equal(found.predict_proba(mapped), expected.predict_proba(X))


def test_training_in_many_chunks_is_reproducible(two_classes, in_file, monkeypatch):
    X, y = two_classes
    monkeypatch.setattr(on_disk, "BLOCK_BYTES", 10 * X[0].nbytes)
    fitted = model(SparseMLPRegressor, dropout=0.2).fit(in_file(X), y.astype(float))
    again = model(SparseMLPRegressor, dropout=0.2).fit(in_file(X, "again"), y.astype(float))
    assert_array_equal(fitted.predict(X), again.predict(X))
    assert fitted.loss_curve_[-1] < fitted.loss_curve_[0]


def test_partial_fits_are_the_same_as_one_fit(two_classes, in_file, monkeypatch):
    X, y = two_classes
    monkeypatch.setattr(on_disk, "BLOCK_BYTES", 10 * X[0].nbytes)
    stored = in_file(X)
    whole, parts = model(scale=None), model(scale=None)
    whole.fit(stored, y)
    for _ in range(4):
        parts.partial_fit(stored, y, classes=np.unique(y))
    assert_array_equal(parts.predict_proba(stored), whole.predict_proba(stored))


def test_few_samples_with_many_features_are_solved_as_in_memory(in_file):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 120)).astype(np.float32)
    y = X[:, 0] > 0
    expected = SparseMLPClassifier(random_state=0).fit(X, y)
    found = SparseMLPClassifier(random_state=0).fit(in_file(X), y)
    assert_array_equal(found.decision_function(X), expected.decision_function(X))


def test_missing_values_are_found_before_the_first_step(two_classes, in_file, monkeypatch):
    X, y = two_classes[0].copy(), two_classes[1]
    monkeypatch.setattr(on_disk, "BLOCK_BYTES", 10 * X[0].nbytes)
    fitted = model(shuffle=False).partial_fit(X, y)  # the missing value is in the last chunk
    before = fitted.predict_proba(X)
    holed = X.copy()
    holed[-1, -1] = np.nan
    stored = in_file(holed)
    for use in (model().fit, fitted.partial_fit):
        with pytest.raises(InvalidInputError, match="Input X contains NaN"):
            use(stored, y)
    assert_array_equal(fitted.predict_proba(X), before)
    with pytest.raises(InvalidInputError, match="Input X contains NaN"):
        fitted.predict(stored)


def test_another_number_of_features_is_refused(two_classes, in_file):
    X, y = two_classes
    fitted = model().fit(in_file(X), y)
    assert fitted.n_features_in_ == X.shape[1]
    with pytest.raises(ValueError, match="features"):
        fitted.predict(in_file(X[:, 1:], "narrow"))


CAPPED = """
import resource, sys
import h5py
import numpy as np
from ratoon import SparseMLPClassifier
from ratoon.samples import on_disk

def taken():
    # of this very process; memory maps of files are not counted
    return int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()

folder, n_rows, n_features = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
on_disk.BLOCK_BYTES = 2**20
model = SparseMLPClassifier(
    (50,), epsilon=5, batch_size=32, max_iter=1, solver="sgd", random_state=0, n_jobs=1,
    early_stopping=True, validation_fraction=0.5,
)
y = np.arange(n_rows) % 2
model.fit(np.eye(64, n_features, dtype=np.float32), y[:64])
limit = taken() + n_rows * n_features * 4 // 2
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    np.ones((n_rows, n_features), dtype=np.float32)
except MemoryError:
    print("too large for memory")
for X in (
    np.load(folder + "/f4.npy", mmap_mode="r"),
    np.load(folder + "/i1.npy", mmap_mode="r"),
    h5py.File(folder + "/X.h5")["X"],
):
    model.fit(X, y)
    model.partial_fit(X, y, eval_set=(X, y))
    print(model.predict(X).size)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer ends the process that runs out of memory")
def test_samples_larger_than_memory_are_read_in_parts(tmp_path):
    n_rows, n_features = 30_000, 1000  # 120 MB as float32; 60 are what may be taken
    few = np.arange(1000 * n_features).reshape(1000, -1) % 7
    for dtype in ("f4", "i1"):
        path = tmp_path / f"{dtype}.npy"
        X = np.lib.format.open_memmap(path, "w+", dtype, shape=(n_rows, n_features))
        X[:1000] = few
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file.create_dataset("X", (n_rows, n_features), "f4", chunks=(200, n_features))[:1000] = few
    done = run_python(CAPPED, tmp_path, n_rows, n_features, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:4] == ["too large for memory", "30000", "30000", "30000"]
