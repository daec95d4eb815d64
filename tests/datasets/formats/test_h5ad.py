import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from ratoon.datasets import read
from ratoon.errors import FormatError, InvalidInputError

h5py = pytest.importorskip("h5py", reason="h5py is behind the data extra")

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def frame(file, name, index, **columns):
    group = file.create_group(name)
    group.attrs["_index"] = "_index"
    group["_index"] = index
    for key, values in columns.items():
        group[key] = values


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        file["X"] = X
        layers = file.create_group("layers")
        layers["raw"] = 2 * X
        frame(file, "obs", list("abcd"), group=["x", "y", "y", "x"], age=[1.5, 2.5, 3.5, 4.5])
        kind = file["obs"].create_group("cell_type")
        kind["categories"], kind["codes"] = ["T", "B"], np.array([1, 0, -1, 1], dtype=np.int8)
        frame(file, "var", ["g1", "g2", "g3"])
    return tmp_path / "a.h5ad"


def test_x_names_and_a_text_column(path):
    data = read(path, label="group")
    assert_array_equal(data.X, X)
    assert data.sample_names == tuple("abcd")
    assert data.feature_names == ("g1", "g2", "g3")
    assert data.labels.tolist() == ["x", "y", "y", "x"]


def test_a_layer_is_read_by_name(path):
    assert_array_equal(read(path, matrix="raw").X, 2 * X)
    with pytest.raises(
        InvalidInputError, match="no layer 'scaled'; pass matrix= with one of X, raw"
    ):
        read(path, matrix="scaled")


def test_a_categorical_column_is_decoded_and_its_missing_values_are_missing_labels(path):
    with pytest.raises(InvalidInputError, match="1 of 4 samples have no label"):
        read(path, label="cell_type")
    data = read(path, label="cell_type", unlabelled="drop")
    assert data.labels.tolist() == ["B", "T", "B"]
    assert data.sample_names == ("a", "b", "d")


def test_a_column_of_fractions_is_a_target(path):
    assert_array_equal(read(path, label="age").y, [1.5, 2.5, 3.5, 4.5])


def test_columns_are_listed_when_none_is_named_or_the_name_is_wrong(path):
    data = read(path)
    assert data.y is None
    assert "obs columns that could be the label: age, cell_type, group" in data.notes
    with pytest.raises(
        InvalidInputError, match="no obs column 'leiden'; pass label= with one of age, cell_type"
    ):
        read(path, label="leiden")


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_a_sparse_x_stays_sparse(path, kind):
    matrix = sp.random(4, 3, 0.5, format=kind, random_state=0)
    with h5py.File(path, "a") as file:
        del file["X"]
        group = file.create_group("X")
        group.attrs.update({"encoding-type": f"{kind}_matrix", "shape": [4, 3]})
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(matrix, part)
    data = read(path)
    assert data.is_sparse
    assert_array_equal(data.X.toarray(), matrix.toarray().astype(np.float32))


@pytest.mark.parametrize(
    ("part", "values"), [("indices", [0, 99]), ("indices", [-5, 1]), ("indptr", [0, 1, 2, 9, 2])]
)
def test_a_sparse_x_with_bad_indices_is_refused(path, part, values):
    parts = {"data": [1.0, 2.0], "indices": [0, 1], "indptr": [0, 1, 2, 2, 2]} | {part: values}
    with h5py.File(path, "a") as file:
        del file["X"]
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "shape": [4, 3]})
        for name, content in parts.items():
            group[name] = content
    with pytest.raises(FormatError, match="X"):
        read(path)


def test_a_category_code_without_a_category_is_refused(path):
    with h5py.File(path, "a") as file:
        file["obs/cell_type/codes"][0] = 7
    with pytest.raises(FormatError, match="has no category"):
        read(path, label="cell_type")


def test_nullable_columns_and_old_categories_are_read(path):
    with h5py.File(path, "a") as file:
        column = file["obs"].create_group("stage")
        column["values"], column["mask"] = [1, 2, 2, 1], [False, False, True, False]
        file["obs/kind"] = np.array([0, 1, 1, 0], dtype=np.int8)
        file.create_group("obs/__categories")["kind"] = ["T", "B"]
    assert read(path, label="stage", unlabelled="drop").labels.tolist() == ["1", "2", "1"]
    assert read(path, label="kind").labels.tolist() == ["T", "B", "B", "T"]


def test_obs_and_var_as_one_table_of_old_files_are_read(tmp_path):
    with h5py.File(tmp_path / "old.h5ad", "w") as file:
        file["X"] = X
        rows = [(b"a", b"x"), (b"b", b"y"), (b"c", b"y"), (b"d", b"x")]
        file["obs"] = np.array(rows, dtype=[("index", "S1"), ("kind", "S1")])
        file["var"] = np.array([(b"g1",), (b"g2",), (b"g3",)], dtype=[("index", "S2")])
    data = read(tmp_path / "old.h5ad", label="kind")
    assert data.sample_names == tuple("abcd")
    assert data.labels.tolist() == ["x", "y", "y", "x"]


def test_a_matrix_of_no_known_kind_is_refused(path):
    with h5py.File(path, "a") as file:
        del file["X"]
        file.create_group("X").attrs["encoding-type"] = "bsr_matrix"
    with pytest.raises(FormatError, match="neither an array nor"):
        read(path)


def test_a_file_written_by_anndata_reads_the_same(tmp_path):
    anndata = pytest.importorskip("anndata", reason="anndata is behind the anndata extra")
    pd = pytest.importorskip("pandas", reason="pandas is behind the data extra")
    obs = pd.DataFrame(
        {"kind": pd.Categorical(["T", "B", "B", "T"]), "ok": pd.array([1, None, 3, 4], "Int64")},
        index=list("wxyz"),
    )
    original = anndata.AnnData(sp.csr_matrix(X), obs=obs)
    original.layers["dense"] = X + 1
    original.write_h5ad(tmp_path / "b.h5ad")

    data = read(tmp_path / "b.h5ad", label="kind")
    assert_array_equal(data.X.toarray(), X)
    assert data.labels.tolist() == ["T", "B", "B", "T"]
    assert data.sample_names == tuple("wxyz")
    assert_array_equal(read(tmp_path / "b.h5ad", matrix="dense").X, X + 1)
    dropped = read(tmp_path / "b.h5ad", label="ok", unlabelled="drop")
    assert dropped.labels.tolist() == ["1", "3", "4"]


def test_the_oldest_files_keep_categories_in_uns(tmp_path):
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        file["X"] = np.eye(3, 2)
        kinds = [("index", "S2"), ("kind", "i1")]
        file["obs"] = np.array([(b"c1", 1), (b"c2", 0), (b"c3", -1)], dtype=kinds)
        file["var"] = np.array([(b"g1",), (b"g2",)], dtype=[("index", "S2")])
        file["uns/kind_categories"] = ["T", "B"]
    data = read(tmp_path / "a.h5ad", label="kind", unlabelled="drop")
    assert data.labels.tolist() == ["B", "T"]
