"""Smaller models: connections with weights near 0 removed, and weights in 16 bits."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError, InvalidParameterError, check_fraction
from ratoon.evolution.prune import strongest
from ratoon.kernels import Scaling
from ratoon.kernels.bfloat16 import narrow
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP
from ratoon.storage import Document, document_to_bytes
from ratoon.topology import Rewiring
from ratoon.training import TrainingState

WEIGHTS = (None, "bfloat16")


def slim(model: Any, *, prune: float = 0.0, weights: str | None = None) -> Any:
    """Return a smaller copy of a fitted classifier or regressor.

    The connections with the smallest weights of each layer are removed, then those that lead to
    neurons without outgoing connections, which changes no prediction.  The state of the optimizer
    is dropped.  `partial_fit` of the copy trains it further.

    Parameters
    ----------
    model : SparseMLPClassifier or SparseMLPRegressor
        Fitted; not changed.
    prune : float, default=0.0
        Fraction of the connections of each layer to remove, in [0, 1).
    weights : {None, "bfloat16"}, default=None
        ``"bfloat16"`` keeps weights in 16 bits and computes in float32.

    Returns
    -------
    estimator
        Of the same class.

    Examples
    --------
    >>> import numpy as np
    >>> from ratoon import SparseMLPClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 10))
    >>> model = SparseMLPClassifier((50,), density=0.5, max_iter=20, random_state=0)
    >>> small = slim(model.fit(X, X[:, 0] > 0), prune=0.5)
    >>> model.network_.n_connections, small.network_.n_connections
    (300, 63)
    """
    check_fraction("prune", prune, owner="slim")
    if weights not in WEIGHTS:
        raise InvalidParameterError(f"slim: `weights` must be one of {WEIGHTS}, got {weights!r}.")
    if not hasattr(model, "_publish") or not hasattr(model, "network_"):
        raise InvalidInputError(
            f"slim needs a fitted SparseMLPClassifier or SparseMLPRegressor, got"
            f" {type(model).__name__}."
        )
    found = copy.copy(model)
    network = _pruned(model.network_, prune)
    if weights == "bfloat16":
        network = _in_bfloat16(network)
        found.settings_ = replace(model.settings_, dtype="bfloat16")
        found.dtype = "bfloat16"
    state: TrainingState = model._state
    found._publish(
        replace(
            state.snapshot(),
            network=network,
            stopping=None,
            evolution_state=None,
        )
    )
    # Epochs were trained and scored, though their best network is not kept.
    found.validation_scores_, found.best_iteration_ = (
        model.validation_scores_,
        model.best_iteration_,
    )
    return found


def _pruned(network: SparseMLP, fraction: float) -> SparseMLP:
    layers = [_bare(layer) for layer in network.layers]
    if fraction > 0.0:
        for layer in layers:
            n_pruned = math.floor(fraction * layer.n_connections)
            _keep(layer, strongest(layer.weights, n_pruned))
    for before, after in reversed(list(pairwise(layers))):
        is_used = after.topology.degrees()[0] > 0
        _keep(before, np.flatnonzero(is_used[before.topology.columns]))
    return SparseMLP(layers, network.scaling)


def _bare(layer: SparseLayer) -> SparseLayer:
    return replace(layer.copy(), state=[], bias_state=[])


def _keep(layer: SparseLayer, slots: Array) -> None:
    if slots.size < layer.n_connections:
        none = np.empty(0, dtype=np.int64)
        layer.apply(Rewiring.between(layer.topology, np.sort(slots), none))


def _in_bfloat16(network: SparseMLP) -> SparseMLP:
    def single(values: Array | None) -> Array | None:
        return None if values is None else values.astype(np.float32)

    layers = [
        replace(
            layer,
            stored=narrow(layer.weights.astype(np.float32)),
            bias=layer.bias.astype(np.float32),
        )
        for layer in network.layers
    ]
    scaling = network.scaling
    return SparseMLP(layers, Scaling(single(scaling.shift), single(scaling.scale), scaling.clip))


@dataclass(frozen=True)
class SlimModel:
    """One row of `compare_slim`.

    ``agreement`` is the fraction of samples with the same class as the whole model; for a
    regressor, R squared with the predictions of the whole model as the truth.
    """

    prune: float
    weights: str | None
    n_connections: int
    file_bytes: int
    score: float
    agreement: float


def compare_slim(
    model: Any,
    X: Any,
    y: Any,
    *,
    prune: Sequence[float] = (0.0, 0.5, 0.75, 0.9),
    weights: Sequence[str | None] = WEIGHTS,
) -> list[SlimModel]:
    """Score smaller copies of a model, with the sizes of their files.

    Samples that were used in training, or that choose the copy to keep, make scores too optimistic.

    Parameters
    ----------
    model : SparseMLPClassifier or SparseMLPRegressor
        Fitted.
    X, y : array-like
        Samples and targets to score on.
    prune, weights : sequence
        Values of the parameters of `slim`; every combination is a row.

    Returns
    -------
    list of SlimModel
    """
    whole = model.predict(X)
    rows = []
    for kind in weights:
        for fraction in prune:
            small = slim(model, prune=fraction, weights=kind)
            document = Document({}, {}, [small.network_])
            found = small.predict(X)
            rows.append(
                SlimModel(
                    fraction,
                    kind,
                    small.network_.n_connections,
                    len(document_to_bytes(document)),
                    float(small.score(X, y)),
                    _agreement(whole, found, is_classifier=hasattr(model, "classes_")),
                )
            )
    return rows


def _agreement(whole: Array, found: Array, *, is_classifier: bool) -> float:
    if is_classifier:
        same = whole == found
        return float(np.mean(same if same.ndim == 1 else same.all(axis=1)))
    spread = np.square(whole - whole.mean(axis=0)).sum()
    lost = np.square(whole - found).sum()
    return float(1.0 - lost / spread) if spread > 0 else float(lost == 0)
