"""Checks of every topology and of every random draw."""

import numpy as np


def assert_valid(topology, n_connections):
    """Check the count, the range, and that no connection is there twice."""
    inputs, outputs = topology.pairs()
    assert topology.n_connections == inputs.size == n_connections
    if n_connections > 0:
        assert inputs.min() >= 0
        assert outputs.min() >= 0
        assert inputs.max() < topology.shape[0]
        assert outputs.max() < topology.shape[1]
    assert np.unique(topology.positions).size == n_connections


def assert_uniform(drawn, n_outcomes):
    """Check by chi-square that outcomes are equally likely.

    Its mean is the number of degrees of freedom f and its deviation sqrt(2 f); five deviations
    are exceeded with a probability below 1e-5 for the f used here.
    """
    _, counts = np.unique(drawn, return_counts=True)
    assert counts.size == n_outcomes, "every outcome comes up"
    expected = len(drawn) / n_outcomes
    chi_square = ((counts - expected) ** 2 / expected).sum()
    freedom = n_outcomes - 1
    assert abs(chi_square - freedom) < 5 * np.sqrt(2 * freedom)
