import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def two_classes(rng):
    """90 samples of 8 features; the class is the sign of the first."""
    X = rng.normal(size=(90, 8))
    return X, (X[:, 0] > 0).astype(int)


@pytest.fixture
def equal_networks():
    """Compare two networks to the last bit, optimizer state included."""

    def compare(one, other):
        assert one.widths == other.widths
        for a, b in zip(one.layers, other.layers, strict=True):
            assert a.topology == b.topology
            pairs = [(a.weights, b.weights), (a.bias, b.bias)]
            pairs += list(zip(a.state, b.state, strict=True))
            pairs += list(zip(a.bias_state, b.bias_state, strict=True))
            for left, right in pairs:
                np.testing.assert_array_equal(left, right)
        return True

    return compare
