import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.datasets import make_interactions
from ratoon.errors import InvalidParameterError


@pytest.mark.parametrize("kind", ["product", "xor"])
@pytest.mark.parametrize("order", [2, 3])
def test_the_product_tells_the_classes_apart_and_no_single_feature_does(kind, order):
    data, informative = make_interactions(2000, 30, order=order, kind=kind, random_state=1)
    assert informative.size == order
    product = data.X[:, informative].prod(axis=1)
    assert_array_equal(data.y, product > 0)
    single = [abs(np.corrcoef(data.X[:, j], data.y)[0, 1]) for j in range(30)]
    # The correlation of independent values over 2000 samples has deviation 0.022.
    assert max(single) < 5 * 0.022
    assert 0.4 < data.y.mean() < 0.6


def test_the_same_seed_gives_the_same_bits():
    first, again = (make_interactions(random_state=3)[0] for _ in range(2))
    assert_array_equal(first.X, again.X)
    assert_array_equal(first.y, again.y)


def test_as_many_labels_are_turned_round_as_asked():
    clean, _ = make_interactions(1000, 10, random_state=5)
    noisy, _ = make_interactions(1000, 10, label_noise=0.1, random_state=5)
    assert (clean.y != noisy.y).sum() == 100


def test_several_groups_use_distinct_features():
    _, informative = make_interactions(50, 20, 4, order=3, noise=0.5)
    assert np.unique(informative).size == 12


@pytest.mark.parametrize(
    "wrong", [{"n_features": 1}, {"label_noise": 0.5}, {"kind": "sum"}, {"n_interactions": 0}]
)
def test_impossible_requests_are_refused(wrong):
    with pytest.raises(InvalidParameterError):
        make_interactions(**wrong)
