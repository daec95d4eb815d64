"""Size, memory and time of a committee before it is fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ratoon.committee.fit import N_FOLDS
from ratoon.committee.members import (
    FAN_IN,
    HIDDEN,
    LINEAR,
    MAX_FEATURES_FOR_PAIRS,
    MAX_NEURONS,
    MIN_NEURONS,
    MIN_SAMPLES_FOR_PAIRS,
    NEURONS_PER_SAMPLE,
)
from ratoon.committee.problem import MANY_SAMPLES

# Seconds of single fits on a computer with `_REFERENCE` float32 operations per second: per value
# of X, per hidden neuron, per activation, per cube of samples for the ten penalties of a member.
_REFERENCE = 186e9
_PER_VALUE, _PER_NEURON, _PER_ACTIVATION, _PER_CUBE = 50e-9, 1e-6, 5e-9, 2.9e-10
_FIXED = 0.05
_REGRESSION = 1.6  # the lasso and iterated ridge regression
# Copies in memory at the peak: of X, of activations in float32, of samples x samples in float64.
_COPIES_OF_X, _COPIES_OF_ACTIVATIONS, _COPIES_OF_KERNEL = 6.6, 2.5, 3.0
_OTHER_BYTES = 1_500_000


@dataclass(frozen=True)
class CommitteeCost:
    """What a committee needs: at most this width and these connections.

    ``seconds`` are those of the computer on which they were measured.
    """

    width: int
    connections: tuple[int, int]
    workspace_bytes: int
    seconds: float

    def seconds_at(self, flops_per_second: float) -> float:
        """Return the seconds of a computer with so many float32 operations per second."""
        return self.seconds * _REFERENCE / flops_per_second


def committee_cost(
    n_samples: int,
    n_features: int,
    n_outputs: int,
    *,
    is_classifier: bool,
) -> CommitteeCost:
    """Estimate what a committee needs.

    Memory was within 50 %, and time within a factor of 2, of what was measured for 30 to 2,000
    samples of 400 to 50,000 features.

    Examples
    --------
    >>> cost = committee_cost(100, 12_000, 2, is_classifier=True)
    >>> cost.width, cost.connections, round(cost.workspace_bytes / 1e6), round(cost.seconds, 1)
    (6004, (108000, 12004), 35, 0.8)
    """
    n, many = n_samples, n_samples > MANY_SAMPLES
    neurons = int(np.clip(NEURONS_PER_SAMPLE * n, MIN_NEURONS, MAX_NEURONS))
    n_linear = len(LINEAR)
    has_pairs = n > MIN_SAMPLES_FOR_PAIRS and n_features <= MAX_FEATURES_FOR_PAIRS
    n_hidden = len(HIDDEN) + has_pairs
    width = n_hidden * neurons + 2 * n_outputs
    connections = (
        min(n_hidden * neurons * FAN_IN + 2 * n_outputs * n_features, n_features * width),
        (n_hidden * neurons + 2) * n_outputs,
    )
    if many:  # one validation split, and Cholesky decompositions for five penalties
        n_fits, systems = 2, 5 * (n_linear + n_hidden) * n**3 / 3 / (0.6 * _REFERENCE)
    else:
        n_fits, systems = N_FOLDS + 1, (n_linear + n_hidden) * _PER_CUBE * n**3
    products = 2 * n_hidden * n**2 * neurons / (0.6 * _REFERENCE)
    each = (
        _PER_VALUE * n * n_features
        + n_hidden * neurons * (_PER_NEURON + _PER_ACTIVATION * n)
        + products
        + systems
    )
    seconds = (_FIXED + n_fits * each) * (1.0 if is_classifier or many else _REGRESSION)
    workspace = (
        4 * _COPIES_OF_X * n * n_features
        + 4 * _COPIES_OF_ACTIVATIONS * n * neurons
        + 8 * _COPIES_OF_KERNEL * n**2
        + _OTHER_BYTES
    )
    return CommitteeCost(width, connections, int(workspace), seconds)
