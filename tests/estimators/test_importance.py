import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from ratoon import SparseMLPClassifier
from ratoon.explain import feature_strength, relative_strength


def test_propagated_strength_is_the_product_of_magnitudes(two_classes):
    model = SparseMLPClassifier((10, 5), density=0.5, max_iter=3, random_state=0)
    network = model.fit(*two_classes).network_
    first, *others = [np.abs(layer.to_csr().toarray()) for layer in network.layers]
    expected = first @ np.linalg.multi_dot([*others, np.ones(2)])
    assert_allclose(feature_strength(network, propagate=True), expected)
    assert_allclose(feature_strength(network), first.sum(axis=1))
    assert_allclose(model.feature_strength(), first.sum(axis=1))


def test_importances_are_fractions_and_find_the_informative_feature(two_classes):
    model = SparseMLPClassifier((50,), max_iter=100, random_state=0).fit(*two_classes)
    assert_allclose(model.feature_importances_.sum(), 1.0)
    assert model.feature_importances_.argmax() == 0
    assert model.feature_strength(propagate=True).argmax() == 0


def test_importances_of_a_network_without_connections_are_zero():
    assert relative_strength(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]


def test_attributes_raise_an_error_before_fitting():
    for name in ("feature_importances_", "coefs_", "intercepts_", "report_"):
        with pytest.raises(NotFittedError):
            getattr(SparseMLPClassifier(), name)
