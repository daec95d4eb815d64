"""Hostile features of HDF5, each refused before any data are read."""

import numpy as np
import pytest

from ratoon.datasets import Limits, read
from ratoon.errors import FormatError

h5py = pytest.importorskip("h5py", reason="h5py is behind the data extra")

X = np.arange(12.0).reshape(4, 3)


@pytest.fixture
def h5ad(tmp_path):
    """An .h5ad file whose X is written by the function given."""

    def make(write_x, name="a.h5ad"):
        with h5py.File(tmp_path / name, "w") as file:
            for group, size in (("obs", 4), ("var", 3)):
                frame = file.create_group(group)
                frame.attrs["_index"] = "_index"
                frame["_index"] = [f"{group}{i}" for i in range(size)]
            write_x(file)
        return tmp_path / name

    return make


def test_external_storage_is_refused(h5ad, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"root:x:0:0:" * 20)

    def write(file):
        file.create_dataset("X", (4, 3), "u1", external=[(str(secret), 0, 12)])

    with pytest.raises(FormatError, match="in another file"):
        read(h5ad(write))


def test_an_external_link_is_refused(h5ad, tmp_path):
    other = h5ad(lambda file: file.create_dataset("X", data=X), "other.h5ad")
    with pytest.raises(FormatError, match="ExternalLink"):
        read(h5ad(lambda file: file.__setitem__("X", h5py.ExternalLink(str(other), "/X"))))


def test_a_soft_link_is_refused(h5ad):
    def write(file):
        file["hidden"] = X
        file["X"] = h5py.SoftLink("/hidden")

    with pytest.raises(FormatError, match="SoftLink"):
        read(h5ad(write))


def test_a_link_in_the_index_or_in_the_parts_of_a_sparse_matrix_is_refused(h5ad):
    def write(file):
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "shape": [4, 3]})
        group["data"], group["indptr"] = np.ones(4), [0, 1, 2, 3, 4]
        group["indices"] = h5py.SoftLink("/obs/_index")

    with pytest.raises(FormatError, match="indices is a link"):
        read(h5ad(write))

    def write_path(file):
        file["X"] = X
        file["obs"].attrs["_index"] = "../var/_index"

    with pytest.raises(FormatError, match="may not be a path"):
        read(h5ad(write_path))


def test_a_virtual_data_set_is_refused(h5ad, tmp_path):
    other = h5ad(lambda file: file.create_dataset("X", data=X), "other.h5ad")

    def write(file):
        layout = h5py.VirtualLayout(shape=(4, 3), dtype="f8")
        layout[:] = h5py.VirtualSource(str(other), "X", shape=(4, 3))
        file.create_virtual_dataset("X", layout)

    with pytest.raises(FormatError, match="assembled from other files"):
        read(h5ad(write))


def test_a_declared_size_of_terabytes_is_refused_before_reading(h5ad):
    path = h5ad(
        lambda file: file.create_dataset("X", (10**6, 10**6), "f4", chunks=(100, 100), fillvalue=1)
    )
    assert path.stat().st_size < 20_000
    with pytest.raises(FormatError, match="limit"):
        read(path)


def test_gigabytes_of_zeros_never_written_are_refused_before_reading(h5ad):
    path = h5ad(lambda file: file.create_dataset("X", (4, 300_000_000), "u1", chunks=(1, 10**6)))
    with pytest.raises(FormatError, match="unpack to"):
        read(path, limits=Limits(columns=10**9))


def test_an_unknown_filter_is_refused(h5ad):
    def write(file):
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((4, 3))
        optional = h5py.h5z.FLAG_OPTIONAL
        properties.set_filter(307, optional, ())  # bzip2, from a plug-in
        space = h5py.h5s.create_simple((4, 3))
        dataset = h5py.h5d.create(file.id, b"X", h5py.h5t.NATIVE_DOUBLE, space, properties)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, X)

    with pytest.raises(FormatError, match="filter 307, which needs a plug-in"):
        read(h5ad(write))


@pytest.mark.parametrize("packing", [{}, {"compression": "gzip"}, {"compression": "lzf"}])
def test_the_usual_filters_are_read(h5ad, packing):
    path = h5ad(lambda file: file.create_dataset("X", data=X, **packing))
    assert read(path).X.tolist() == X.tolist()


def test_cut_off_or_damaged_files_are_refused(h5ad, write):
    content = h5ad(lambda file: file.create_dataset("X", data=X)).read_bytes()
    for size in (10, 100, 1000, len(content) // 2):
        with pytest.raises(FormatError, match=r"cut\.h5ad"):
            read(write("cut.h5ad", content[:size]))
