import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.datasets import Limits, read
from ratoon.errors import FormatError

pa = pytest.importorskip("pyarrow", reason="pyarrow is behind the data extra")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is behind the data extra")


def save(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def test_samples_in_rows(tmp_path):
    path = save(
        tmp_path / "a.parquet",
        sample=["A", "B", "C"],
        TP53=[1.5, None, 2.5],
        n=[1, 2, 3],
        flag=[True, False, True],
        **{"class": ["x", "y", "x"]},
    )
    data = read(path, missing="keep")
    assert_array_equal(data.X, np.array([[1.5, 1, 1], [np.nan, 2, 0], [2.5, 3, 1]]))
    assert data.feature_names == ("TP53", "n", "flag")
    assert data.sample_names == ("A", "B", "C")
    assert data.labels.tolist() == ["x", "y", "x"]


def test_samples_in_columns(tmp_path):
    data = read(save(tmp_path / "a.parquet", gene=["g1", "g2"], A=[1.0, 2.0], B=[3.0, 4.0]))
    assert_array_equal(data.X, [[1, 2], [3, 4]])
    assert data.feature_names == ("g1", "g2")


def test_an_index_written_by_pandas_names_the_samples(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is behind the data extra")
    table = pd.DataFrame({"a": [1.0, 2.0], "kind": pd.Categorical(["x", "y"])}, index=["s1", "s2"])
    table.to_parquet(tmp_path / "a.parquet")
    data = read(tmp_path / "a.parquet", label="kind")
    assert data.sample_names == ("s1", "s2")
    assert data.labels.tolist() == ["x", "y"]


def test_columns_that_are_not_numbers_are_refused_by_name(tmp_path):
    path = save(tmp_path / "a.parquet", a=[1.0], day=pa.array([0], pa.date32()))
    with pytest.raises(FormatError, match="column 'day': values of type date32"):
        read(path)
    assert read(path, ignore="day").feature_names == ("a",)


def test_limits_and_damage(tmp_path, write):
    path = save(tmp_path / "a.parquet", a=np.arange(1000.0))
    with pytest.raises(FormatError, match="limit"):
        read(path, limits=Limits(rows=10))
    content = path.read_bytes()
    for size in (10, 500, len(content) - 3):
        with pytest.raises(FormatError, match=r"cut\.parquet"):
            read(write("cut.parquet", content[:size]))
