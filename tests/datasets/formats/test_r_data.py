import gzip
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from ratoon.datasets import Limits, read
from ratoon.datasets.formats import r_data
from ratoon.datasets.options import ReadOptions
from ratoon.errors import FormatError, InvalidInputError

rdata = pytest.importorskip("rdata", reason="rdata is behind the r extra")
pd = pytest.importorskip("pandas", reason="rdata needs pandas")

X = np.arange(6.0).reshape(2, 3)


def test_a_matrix_is_read(tmp_path):
    rdata.write_rds(tmp_path / "a.rds", X)
    assert_array_equal(read(tmp_path / "a.rds").X, X)


def test_a_list_has_samples_and_labels(tmp_path):
    rdata.write_rds(tmp_path / "a.rds", {"X": X, "y": pd.Categorical(["ill", "well"])})
    data = read(tmp_path / "a.rds")
    assert_array_equal(data.X, X)
    assert data.labels.tolist() == ["ill", "well"]


def test_variables_of_a_workspace_are_chosen_by_name(tmp_path):
    rdata.write_rda(tmp_path / "a.RData", {"one": X, "two": X.T, "group": np.array(["a", "b"])})
    with pytest.raises(InvalidInputError, match=r"several tables \(one, two\)"):
        read(tmp_path / "a.RData")
    data = read(tmp_path / "a.RData", matrix="one", label="group")
    assert_array_equal(data.X, X)
    assert data.labels.tolist() == ["a", "b"]


def frame_of(**columns):
    return pd.DataFrame(columns, index=["S1", "S2"])


def test_a_data_frame_is_read_like_a_table(tmp_path):
    frame = frame_of(g1=[1.0, np.nan], g2=[3, 4], kind=pd.Categorical(["x", "y"]))
    parsed = r_data._one(tmp_path, frame, ReadOptions())
    assert_array_equal(parsed.values, [[1, 3], [np.nan, 4]])
    assert parsed.feature_names == ["g1", "g2"]
    assert parsed.sample_names == ["S1", "S2"]
    assert parsed.labels == ["x", "y"]


def test_genes_in_the_rows_of_a_named_matrix_become_features(tmp_path):
    xarray = pytest.importorskip("xarray", reason="rdata needs xarray")
    names = {"dim_0": ["1007_s_at", "1053_at"], "dim_1": ["GSM1", "GSM2", "GSM3"]}
    matrix = xarray.DataArray(X, coords=names, dims=["dim_0", "dim_1"])
    parsed = r_data._one(tmp_path, matrix, ReadOptions())
    assert_array_equal(parsed.values, X.T)
    assert parsed.sample_names == ["GSM1", "GSM2", "GSM3"]


def sparse_of(matrix, **changed):
    csc = sp.csc_matrix(matrix)
    parts = {"i": csc.indices, "p": csc.indptr, "x": csc.data, "Dim": np.array(csc.shape)}
    names = [["1007_s_at", "1053_at"], ["GSM1", "GSM2", "GSM3"]]
    return SimpleNamespace(**{**parts, "Dimnames": names, **changed})


def test_a_sparse_matrix_stays_sparse(tmp_path):
    parsed = r_data._one(tmp_path, sparse_of(X), ReadOptions())
    assert sp.issparse(parsed.values)
    assert_array_equal(parsed.values.toarray(), X.T)
    assert parsed.feature_names == ["1007_s_at", "1053_at"]


@pytest.mark.parametrize(
    "changed", [{"i": np.array([0, 1, 0, 1, 9])}, {"p": np.array([0, 1, 3, 50])}]
)
def test_a_sparse_matrix_with_bad_indices_is_refused(tmp_path, changed):
    with pytest.raises(FormatError):
        r_data._one(tmp_path, sparse_of(X, **changed), ReadOptions())


def test_damage_and_bombs_are_refused(tmp_path, write):
    rdata.write_rds(tmp_path / "a.rds", X)
    content = (tmp_path / "a.rds").read_bytes()
    unpacked = gzip.decompress(content)
    for size in (3, 20, len(unpacked) // 2):
        with pytest.raises(FormatError, match=r"cut\.rds"):
            read(write("cut.rds", unpacked[:size]))
    with pytest.raises(FormatError):
        read(write("cut.rds", content[:-20]))
    with pytest.raises(FormatError, match="expanded_bytes"):
        read(tmp_path / "a.rds", limits=Limits(expanded_bytes=100))


def test_what_is_not_a_table_is_refused(tmp_path):
    rdata.write_rds(tmp_path / "a.rds", np.arange(3.0))
    with pytest.raises(FormatError, match=r"saveRDS\(as\.matrix"):
        read(tmp_path / "a.rds")


def test_a_column_of_a_data_frame_names_the_samples(tmp_path):
    frame = pd.DataFrame({"sample": ["A", "B", "C"], "g1": [1.0, 2.0, 3.0], "nr": [7, 8, 9]})
    text = pd.StringDtype("python")  # the only text that rdata can write with every pandas
    frame["class"] = pd.array(["x", "y", "x"], dtype=text)
    frame["sample"] = frame["sample"].astype(text)
    rdata.write_rds(tmp_path / "a.rds", frame)
    found = read(tmp_path / "a.rds")
    assert found.sample_names == ("A", "B", "C")
    assert found.feature_names == ("g1", "nr")
    by_number = read(tmp_path / "a.rds", index="nr", ignore="sample")
    assert by_number.sample_names == ("7", "8", "9")
    assert by_number.feature_names == ("g1",)
    with pytest.raises(InvalidInputError, match="Did you mean 'nr'"):
        read(tmp_path / "a.rds", index="nrr")
