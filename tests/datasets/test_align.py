"""Features are matched by name, and features that are not matched are reported."""

import gzip

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from ratoon.datasets import Dataset, align, read_id_map
from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError

X = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]], dtype=np.float32)
NAMES = ("a", "b", "c", "d")


def data(sparse=False, names=NAMES, source=""):
    return Dataset(scipy.sparse.csr_array(X) if sparse else X, feature_names=names, source=source)


def dense(found):
    return found.X.toarray() if found.is_sparse else found.X


def test_identical_features_are_returned_without_a_copy():
    given = data()
    found, how = align(given, NAMES)
    assert found.X is given.X
    assert how.is_exact
    assert (how.coverage, how.missing, how.extra) == (1.0, (), ())


@pytest.mark.parametrize("sparse", [False, True])
def test_order_extra_and_missing_features_are_corrected_and_reported(sparse):
    wanted = ("d", "new", "a")
    found, how = align(data(sparse), wanted, min_coverage=0.5)
    assert_array_equal(dense(found), [[4, 0, 1], [8, 0, 5]])
    assert found.feature_names == wanted
    assert found.is_sparse == sparse
    assert found.X.dtype == np.float32
    assert (how.missing, how.extra, how.reordered) == (("new",), ("b", "c"), True)
    assert how.coverage == pytest.approx(2 / 3)
    assert "2 of 3 features found (66.7%); 1 missing (new); 2 extra left out (b, c)" in str(how)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_missing_feature_gets_its_fill_value(sparse):
    found, _ = align(data(sparse), ("a", "new"), min_coverage=0, fill=np.array([9.0, 0.25]))
    assert_array_equal(dense(found), [[1, 0.25], [5, 0.25]])


def test_an_id_map_renames_only_the_names_it_contains():
    found, how = align(data(), ("TP53", "b"), id_map={"c": "TP53", "elsewhere": "b"})
    assert_array_equal(found.X, [[3, 2], [7, 6]])
    assert (how.n_renamed, how.reordered, how.extra) == (1, True, ("a", "d"))


@pytest.mark.parametrize("sparse", [False, True])
def test_several_columns_of_one_feature_are_averaged(sparse):
    found, how = align(data(sparse), ("TP53", "d"), id_map={"a": "TP53", "c": "TP53"})
    assert_array_equal(dense(found), [[2, 4], [6, 8]])
    assert how.n_averaged == 1
    assert "1 combined from several columns" in str(how)


def test_a_repeated_name_is_refused_only_if_it_is_required():
    twice = data(names=("a", "b", "a", "d"), source="twice.csv")
    with pytest.raises(
        InvalidInputError, match=r"twice.csv: several columns are named 'a': \[1, 3\]"
    ):
        align(twice, ("a",))
    assert align(twice, ("d", "b"))[1].coverage == 1.0


def test_too_few_features_are_an_error_with_examples_of_both_kinds_of_name():
    with pytest.raises(InvalidInputError) as caught:
        align(data(source="probes.csv"), ("a", "b", "c", "x", "y", "z", "q"), min_coverage=0.5)
    message = str(caught.value)
    assert "probes.csv: 3 of the 7 required features are present (42.9%)" in message
    assert "missing: x, y, z and 1 more" in message
    assert "--id-map" in message
    assert "a, b, c and 1 more" in message


def test_a_coverage_equal_to_the_minimum_is_accepted():
    assert align(data(), ("a", "b", "c", "x"), min_coverage=0.75)[1].coverage == 0.75
    with pytest.raises(InvalidInputError):
        align(data(), ("a", "b", "c", "x"), min_coverage=0.76)


def test_unnamed_features_and_impossible_minimums_are_refused():
    with pytest.raises(InvalidInputError, match="cannot be matched by name"):
        align(Dataset(X), NAMES)
    with pytest.raises(InvalidParameterError, match=r"in \[0, 1\]"):
        align(data(), NAMES, min_coverage=90)


@pytest.mark.parametrize("mark", ["\t", ",", ";", "  "])
def test_pairs_are_read_with_any_separator(tmp_path, mark):
    path = tmp_path / "map.txt"
    lines = ["# probes of a chip", f"1007_s_at{mark}DDR1{mark}extra", "", f'"121_at"{mark}PAX8']
    path.write_text("\r\n".join(lines), encoding="utf-8")
    assert read_id_map(path) == {"1007_s_at": "DDR1", "121_at": "PAX8"}


def test_gzipped_maps_are_read(tmp_path):
    path = tmp_path / "map.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n"))
    assert read_id_map(path) == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\nlonely\n", "line 2: not a pair of names: 'lonely'"),
        ("a,b\nc,\n", "line 2: not a pair"),
        ("# nothing\n", "no pairs of names"),
    ],
)
def test_a_malformed_map_is_refused_with_the_line(tmp_path, text, message):
    path = tmp_path / "map.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=message) as caught:
        read_id_map(path)
    assert str(path) in str(caught.value)


def test_a_repeated_pair_is_accepted(tmp_path):
    path = tmp_path / "map.csv"
    path.write_text("a,b\na,b\n", encoding="utf-8")
    assert read_id_map(path) == {"a": "b"}
