import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from ratoon.datasets import Dataset, treat_missing
from ratoon.errors import InvalidInputError, InvalidParameterError

nan = np.nan
X = np.array([[1.0, nan, 3.0], [5.0, nan, 7.0], [nan, nan, 2.0], [0.0, nan, 8.0]])
NAMES = {"feature_names": ("a", "b", "c"), "sample_names": ("p", "q", "r", "s")}


@pytest.mark.parametrize(("how", "filled"), [("mean", 2.0), ("median", 1.0), ("zero", 0.0)])
def test_missing_values_are_filled_per_feature_and_empty_features_with_zero(how, filled):
    data = treat_missing(Dataset(X, **NAMES), how)
    assert data.X[2, 0] == filled
    assert_array_equal(data.X[:, 1], 0)
    assert_array_equal(data.X[:, 2], X[:, 2])
    assert "filled 5 missing values" in data.notes[-1]
    assert np.isnan(X[2, 0]), "the original is left alone"


def test_features_or_samples_with_missing_values_are_dropped():
    assert treat_missing(Dataset(X, **NAMES), "drop").feature_names == ("c",)
    part = Dataset(X[:, [0, 2]], sample_names=NAMES["sample_names"])
    assert treat_missing(part, "drop_samples").sample_names == ("p", "q", "s")
    with pytest.raises(InvalidInputError, match="all samples have a missing value"):
        treat_missing(Dataset(X), "drop_samples")


def test_by_default_the_error_names_the_first_missing_value():
    with pytest.raises(InvalidInputError, match=r"5 values.*sample 'p', feature 'b'"):
        treat_missing(Dataset(X, **NAMES))
    with pytest.raises(InvalidInputError, match="sample 1, feature 2"):
        treat_missing(Dataset(X))


def test_missing_values_can_be_kept():
    assert np.isnan(treat_missing(Dataset(X), "keep").X).sum() == 5


def test_infinities_are_refused_for_every_option():
    with pytest.raises(InvalidInputError, match="1 values are infinite"):
        treat_missing(Dataset(np.array([[np.inf, 1.0]])), "keep")


def test_missing_values_of_a_sparse_matrix_become_zero_or_are_dropped():
    matrix = sp.csr_matrix(np.array([[1.0, nan, 0.0], [0.0, 2.0, 0.0]]))
    data = Dataset(matrix, **{"feature_names": ("a", "b", "c")})
    assert_array_equal(treat_missing(data, "zero").X.toarray(), [[1, 0, 0], [0, 2, 0]])
    assert treat_missing(data, "drop").feature_names == ("a", "c")
    assert treat_missing(data, "drop_samples").n_samples == 1
    with pytest.raises(InvalidInputError, match="sample 1, feature 'b'"):
        treat_missing(data)
    with pytest.raises(InvalidInputError, match="'zero'"):
        treat_missing(data, "mean")


def test_an_unknown_option_is_refused_with_the_valid_ones():
    with pytest.raises(InvalidParameterError, match="one of error, mean"):
        treat_missing(Dataset(X), "knn")


def test_the_values_filled_in_are_kept_for_all_features():
    data = Dataset(np.array([[1.0, np.nan, 5.0], [3.0, 4.0, np.nan], [5.0, 5.0, 8.0]]))
    assert treat_missing(data, "mean").naming.fill.tolist() == [3.0, 4.5, 6.5]
    assert treat_missing(data, "median").naming.fill.tolist() == [3.0, 4.5, 6.5]
    assert treat_missing(data, "zero").naming.fill.tolist() == [0.0, 0.0, 0.0]
    assert treat_missing(data, "drop_samples").naming is None
