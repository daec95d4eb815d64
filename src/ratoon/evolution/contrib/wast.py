"""WAST, sparse training guided by the importance of neurons (Sokar et al., NeurIPS 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.evolution.base import LayerState, ScheduledFraction, State, StatefulStrategy, layer_seed
from ratoon.evolution.clock import Clock
from ratoon.evolution.grow import grow_largest_gradients, grow_uniformly, signals_of
from ratoon.evolution.prune import strongest_of_each_sign
from ratoon.topology import Rewiring

SENSITIVITIES = ("gradient", "reconstruction")

Importance = NDArray[np.float64]


@dataclass(frozen=True)
class WAST(ScheduledFraction, StatefulStrategy):
    """Move connections to important inputs and outputs, after every minibatch: to select features.

    Every rewiring adds to the importance of each input and each output of the network

    ``sensitivity_weight * sum_b |g_b| + (1 - sensitivity_weight) * sum |w|``,

    where g_b is the gradient of the loss at the neuron for sample b of the next minibatch and the
    second sum is over the neuron's connections.  Hidden neurons are equally important.  In the
    first and the last layer, of each sign the fraction ``zeta(t)`` of the connections with the
    smallest ``|w|`` times the importance of their ends is pruned; as many are grown at the empty
    positions with the largest product of the importance of both ends, with weights of 0.  Layers
    between hidden neurons prune the smallest ``|w|`` of each sign and grow at random.

    Parameters
    ----------
    zeta : float, default=0.3
        Fraction of a layer's connections replaced at each rewiring.
    sensitivity_weight : float, default=0.9
        Weight of the gradients in the importance, from 0 to 1 (lambda in the paper).
    sensitivity : {"gradient", "reconstruction"}, default="gradient"
        What g_b is at an input: the gradient of the loss, or, in an autoencoder as in the paper,
        the gradient at the output of the same number.  An input without connections has no
        gradient, but is reconstructed.
    every : int, default=1
        Steps between two rewirings.
    until : float, default=1.0
        Fraction of training after which the topology no longer changes.
    anneal : {"constant", "linear", "cosine"}, default="constant"
        How zeta falls to 0 by then.

    Notes
    -----
    The paper trains a denoising autoencoder with one hidden layer.  With the default sensitivity
    the strategy also works in classifiers and regressors; there an input that has lost all its
    connections seldom returns.

    Cost per rewiring: one more forward and backward pass, and about 0.1 microseconds per
    connection; with ``every=1`` steps take several times as long.

    Examples
    --------
    >>> WAST().schedule
    RewiringSchedule(every=1, unit='step', until=1.0, anneal='constant')
    """

    unit = "step"

    zeta: float = 0.3
    sensitivity_weight: float = 0.9
    sensitivity: str = "gradient"
    every: int = 1
    until: float = 1.0
    anneal: str = "constant"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.sensitivity_weight <= 1.0:
            raise InvalidParameterError(
                f"WAST: `sensitivity_weight` must be in [0, 1], got {self.sensitivity_weight!r}."
            )
        if self.sensitivity not in SENSITIVITIES:
            raise InvalidParameterError(
                f"WAST: `sensitivity` must be one of {SENSITIVITIES}, got {self.sensitivity!r}."
            )

    def start_state(self, layers: Sequence[LayerState], seed: int) -> State:
        """Return an importance of 0 for every input and output."""
        del seed
        n_inputs, n_outputs = layers[0].topology.shape[0], layers[-1].topology.shape[1]
        if self.sensitivity == "reconstruction" and n_inputs != n_outputs:
            raise InvalidInputError(
                f"WAST: sensitivity='reconstruction' is for autoencoders, but the network has"
                f" {n_inputs} inputs and {n_outputs} outputs.\n  Use sensitivity='gradient'."
            )
        return {"inputs": np.zeros(n_inputs), "outputs": np.zeros(n_outputs)}

    def rewire_from(
        self, state: State, layers: Sequence[LayerState], clock: Clock, seed: int
    ) -> tuple[list[Rewiring], State]:
        """Return one rewiring per layer, with the same number of connections."""
        inputs, outputs = importance_of_ends(layers, self.sensitivity_weight, self.sensitivity)
        after: State = {
            "inputs": state["inputs"] + inputs,
            "outputs": state["outputs"] + outputs,
        }
        rewirings = []
        for index, layer in enumerate(layers):
            is_first, is_last = index == 0, index == len(layers) - 1
            n_in, n_out = layer.topology.shape
            ends = (
                after["inputs"] if is_first else np.ones(n_in),
                after["outputs"] if is_last else np.ones(n_out),
            )
            if layer.is_full:
                rewirings.append(Rewiring.unchanged(layer.topology))
                continue
            rows, columns = layer.topology.pairs()
            scores = layer.weights * ends[0][rows] * ends[1][columns]
            kept = strongest_of_each_sign(scores, self.fraction(clock))
            n_grown = layer.topology.n_connections - kept.size
            key = layer_seed(seed, index)
            if is_first or is_last:
                factors = (ends[0][:, None], ends[1][:, None])
                rewirings.append(grow_largest_gradients(layer, kept, n_grown, key, factors=factors))
            else:
                rewirings.append(grow_uniformly(layer, kept, n_grown, key))
        return rewirings, after


def importance_of_ends(
    layers: Sequence[LayerState], sensitivity_weight: float, sensitivity: str = "gradient"
) -> tuple[Importance, Importance]:
    """Return the importance of the inputs and outputs of a network, for the next minibatch.

    Examples
    --------
    >>> from ratoon.topology import Topology
    >>> signals = np.ones((2, 1)), np.array([[2.0], [-1.0]])
    >>> layer = LayerState(
    ...     Topology.from_pairs((2, 2), [0, 1], [0, 0]),
    ...     np.array([1.0, -3.0]),
    ...     signals=lambda: signals,
    ... )
    >>> [side.tolist() for side in importance_of_ends([layer], 0.5)]
    [[1.5, 4.5], [3.0, 0.5]]
    """
    first, last = layers[0], layers[-1]
    at_outputs = np.abs(signals_of(last)[1]).sum(axis=1)
    if sensitivity == "gradient":
        errors = signals_of(first)[1]
        at_inputs = np.abs(first.topology.to_csr(first.weights) @ errors).sum(axis=1)
    else:
        at_inputs = at_outputs
    inputs, outputs = (
        sensitivity_weight * np.asarray(at, dtype=np.float64)
        + (1.0 - sensitivity_weight)
        * np.bincount(neurons, weights=np.abs(layer.weights), minlength=at.size)
        for at, neurons, layer in (
            (at_inputs, first.topology.rows, first),
            (at_outputs, last.topology.columns, last),
        )
    )
    return inputs, outputs
