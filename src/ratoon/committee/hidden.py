"""The sparse hidden layer of a member: few inputs per neuron, drawn by their prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ratoon.arrays import Array

N_NEURONS, FAN_IN = 4000, 10


@dataclass(frozen=True, eq=False)
class HiddenLayer:
    """Connections (features x neurons) with fixed weights, and a bias per neuron."""

    weights: Any  # SciPy CSC array
    bias: Array

    @classmethod
    def draw(
        cls,
        prior: Array,
        z: Any,
        rng: np.random.Generator,
        *,
        with_bias: bool,
        origin: Array | None = None,
    ) -> HiddenLayer:
        """Draw `FAN_IN` inputs per neuron with probability proportional to the root of the prior.

        Weights are normal and scaled so that a neuron's expected response to a feature follows the
        prior, as it would in a dense layer whose weights had the prior as their variance.  A pair
        that is drawn twice is one connection.  With ``with_bias`` neurons bend at different
        places, which products of features need and small samples do not support.  ``origin`` is
        where means lie that z still has: biases take them out.
        """
        n_features = prior.size
        chance = np.sqrt(prior)
        chance = chance / chance.sum()
        # One draw from each of equal parts of the range: counts as even as chance allows.
        n_draws = N_NEURONS * FAN_IN
        levels = (np.arange(n_draws) + rng.random(n_draws)) / n_draws
        inputs = np.minimum(np.searchsorted(np.cumsum(chance), levels), n_features - 1)
        inputs = rng.permutation(inputs)
        scale = np.sqrt(prior[inputs] / (chance[inputs] * n_features) / FAN_IN)
        values = rng.standard_normal(inputs.size) * scale
        neurons = np.repeat(np.arange(N_NEURONS), FAN_IN)
        weights = scipy.sparse.csc_array(
            (values.astype(np.float32), (inputs, neurons)), shape=(n_features, N_NEURONS)
        )
        weights.sum_duplicates()
        bias = np.zeros(N_NEURONS) if origin is None else -(origin @ weights)
        if with_bias:
            size = np.sqrt(np.mean(np.square(_sums(z, weights) + bias)))
            bias = bias + rng.standard_normal(N_NEURONS) * size
        return cls(weights, bias.astype(np.float32))

    def respond(self, z: Any) -> Array:
        """Return what the neurons make of samples: (samples, neurons)."""
        return np.asarray(np.maximum(_sums(z, self.weights) + self.bias, 0.0))


def _sums(z: Any, weights: Any) -> Array:
    if scipy.sparse.issparse(z):
        return np.asarray((z @ weights).toarray())
    return np.asarray((weights.T @ z.T).T)
