"""AnnData files whose samples stay on disk: the same model as from memory, in little memory."""

import sys

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from ratoon import SparseMLPClassifier
from ratoon.datasets import can_stay_on_disk, open_stored, read, stored
from ratoon.errors import FormatError, InvalidInputError
from tests.processes import IS_SANITIZED, run_python

TEXT = h5py.string_dtype()


def written(path, matrix, labels, *, kind="csr", layer=None):
    """Write an AnnData file by hand."""
    with h5py.File(path, "w") as file:
        for place in ("X", *([f"layers/{layer}"] if layer else [])):
            if kind == "array":
                file[place] = matrix.toarray()
                continue
            group = file.create_group(place)
            parts = matrix.asformat(kind)
            group.attrs.update({"encoding-type": f"{kind}_matrix", "shape": matrix.shape})
            group["data"], group["indices"], group["indptr"] = (
                parts.data, parts.indices, parts.indptr,
            )  # fmt: skip
        for name, size in (("obs", matrix.shape[0]), ("var", matrix.shape[1])):
            frame = file.create_group(name)
            frame.attrs["_index"] = "_index"
            names = [f"{name}{i}" for i in range(size)]
            frame.create_dataset("_index", data=np.array(names, dtype=object), dtype=TEXT)
        file["obs"].create_dataset("cell_type", data=np.array(labels, dtype=object), dtype=TEXT)
    return path


@pytest.fixture
def cells():
    rng = np.random.default_rng(0)
    y = np.repeat(["B", "T"], 60)
    counts = rng.poisson(0.3, size=(120, 30)) + 2 * (np.arange(30) < 5) * (y == "T")[:, None]
    return sp.csr_matrix(counts.astype(np.float32)), y


@pytest.mark.parametrize("kind", ["csr", "array"])
def test_samples_stay_on_disk_and_train_the_network_of_samples_in_memory(cells, tmp_path, kind):
    path = written(tmp_path / "a.h5ad", *cells, kind=kind)
    assert can_stay_on_disk(path, on_disk=True)
    data, whole = open_stored(path, label="cell_type"), read(path, label="cell_type")
    assert data.X.is_on_disk
    assert data.X.is_sparse == (kind == "csr")
    assert (data.class_names, data.feature_names[:2]) == (("B", "T"), ("var0", "var1"))
    assert "on disk" in data.describe()
    models = [
        SparseMLPClassifier((8,), max_iter=3, batch_size=16, random_state=0, solver="sgd").fit(one)
        for one in (data, whole)
    ]
    for found, expected in zip(models[0].coefs_, models[1].coefs_, strict=True):
        assert_array_equal(found.toarray(), expected.toarray())
    assert_array_equal(models[0].predict_proba(data), models[0].predict_proba(whole))


def test_a_layer_can_be_named(cells, tmp_path):
    path = written(tmp_path / "a.h5ad", *cells, layer="counts")
    assert_array_equal(np.asarray(open_stored(path, matrix="counts").X), cells[0].toarray())
    with pytest.raises(InvalidInputError, match="there is no layer 'logs'"):
        open_stored(path, matrix="logs")


def test_only_large_files_stay_on_disk_unless_asked(cells, tmp_path, monkeypatch):
    path = written(tmp_path / "a.h5ad", *cells)
    assert not can_stay_on_disk(path)
    assert not can_stay_on_disk(path, on_disk=False)
    monkeypatch.setattr(stored, "LARGEST_IN_MEMORY", 1000)
    assert can_stay_on_disk(path)
    assert not can_stay_on_disk(path, on_disk=False)


def test_columns_compressed_cannot_stay_on_disk(cells, tmp_path):
    path = written(tmp_path / "a.h5ad", *cells, kind="csc")
    assert not can_stay_on_disk(path, on_disk=True)
    with pytest.raises(InvalidInputError, match="not a CSR matrix"):
        open_stored(path)


def test_starts_that_do_not_fit_the_shape_are_refused(cells, tmp_path):
    path = written(tmp_path / "a.h5ad", *cells)
    with h5py.File(path, "a") as file:
        file["X"].attrs["shape"] = (121, 30)
    with pytest.raises(FormatError, match="121 rows but"):
        open_stored(path)


PEAK = """
import resource, sys
from ratoon import SparseMLPClassifier
from ratoon.datasets import open_stored
data = open_stored(sys.argv[1], label="cell_type")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = SparseMLPClassifier((16,), epsilon=5, max_iter=1, random_state=0, solver="sgd")
model.fit(data).predict(data)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(IS_SANITIZED or sys.platform == "win32", reason="memory is not comparable")
def test_training_takes_memory_for_blocks_not_for_the_file(tmp_path):
    n, p, per_row = 30_000, 2_000, 1_000
    rng = np.random.default_rng(0)
    indices = np.tile(np.sort(rng.permutation(p)[:per_row]).astype(np.int32), n)
    values = rng.random(n * per_row, dtype=np.float32)
    matrix = sp.csr_matrix((values, indices, np.arange(n + 1) * per_row), shape=(n, p))
    path = written(tmp_path / "big.h5ad", matrix, ["B", "T"] * (n // 2))
    in_memory = n * per_row * 8 / 2**20  # 229 MiB
    done = run_python(PEAK, path)
    assert done.returncode == 0, done.stderr
    grown = float(done.stdout)
    # Eight blocks of 8 MiB, one being assembled and one being converted, with double precision.
    assert grown < 0.75 * in_memory
