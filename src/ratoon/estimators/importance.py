"""Which features a network listens to, told by its connections."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.network import SparseMLP


def feature_strength(network: SparseMLP, *, propagate: bool = False) -> NDArray[np.float64]:
    """Return for every feature the summed magnitude of its connections' weights.

    Parameters
    ----------
    network : SparseMLP
        A trained network.
    propagate : bool, default=False
        Count each connection by the strength of the neuron it leads to, which in turn is that of
        its own connections, and so on up to the outputs.

    Returns
    -------
    ndarray of shape (n_features,)
        Not negative.  0 for features that were constant in training: they are always read as 0.

    Examples
    --------
    >>> from ratoon.topology import Topology
    >>> wiring = Topology.from_pairs((2, 2), [0, 1], [0, 1]), Topology.from_pairs((2, 1), [1], [0])
    >>> network = SparseMLP.start((2, 2, 1), density=1.0, seed=0, topologies=wiring)
    >>> network.layers[0].weights[:], network.layers[1].weights[:] = (-3, 1), 10
    >>> feature_strength(network).tolist(), feature_strength(network, propagate=True).tolist()
    ([3.0, 1.0], [0.0, 10.0])
    """
    layers = network.layers if propagate else network.layers[:1]
    strength: Array = np.ones(layers[-1].shape[1])
    for layer in reversed(layers):
        inputs, outputs = layer.topology.pairs()
        magnitude = np.abs(layer.weights).astype(np.float64) * strength[outputs]
        strength = np.bincount(inputs, weights=magnitude, minlength=layer.shape[0])
    if network.scaling.scale is not None:
        strength[np.asarray(network.scaling.scale) == 0] = 0.0
    return strength


def shares(strength: Array) -> NDArray[np.float64]:
    """Return strengths divided by their sum.

    Examples
    --------
    >>> shares(np.array([1.0, 3.0])).tolist()
    [0.25, 0.75]
    """
    total = float(strength.sum())
    return np.asarray(strength / total if total > 0 else strength, dtype=np.float64)
