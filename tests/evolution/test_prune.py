"""Choosing connections to prune, compared with a sort."""

import numpy as np
import pytest

from ratoon.evolution.prune import strongest, strongest_of_each_sign
from ratoon.kernels import reference


def weights_of(kind, size):
    drawn = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    return {
        "all different": drawn,
        "many equal": np.round(drawn, 1),
        "zeros of both signs": np.copysign(np.float32(0), drawn),
        "one sign": np.abs(drawn),
        "mostly no numbers": np.where(drawn < 1, np.copysign(np.float32(np.nan), drawn), drawn),
    }[kind]


KINDS = ("all different", "many equal", "zeros of both signs", "one sign", "mostly no numbers")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("zeta", [0.0, 0.3, 0.5, 0.999, 1.0])
def test_the_pruned_connections_of_each_sign_are_those_of_a_sort(kind, size, zeta):
    weights = weights_of(kind, size)
    found = strongest_of_each_sign(weights, zeta)
    assert found.tolist() == reference.strongest_of_each_sign(weights, zeta).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_pruned", [0, 1, 300, 999, 1000])
def test_the_weakest_connections_of_both_signs_together_are_pruned(kind, n_pruned):
    weights = weights_of(kind, 1000)
    weakest_first = np.argsort(np.abs(weights), kind="stable")
    assert strongest(weights, n_pruned).tolist() == sorted(weakest_first[n_pruned:].tolist())
