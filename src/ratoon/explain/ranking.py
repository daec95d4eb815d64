"""One ranking of features, for estimators, selectors, reports and the command line.

The importance of a feature is ``w * sqrt(1 + F / 5)``: w is the summed magnitude of its
connections' weights, F its F statistic on the training rows.  Weights alone contain what a
connection happened to start with; F alone does not know which features repeat others, and finds no
feature that counts only together with another.  An F below about 5, which is also found by chance,
changes little.  The importances of a model sum up to 1.

`docs/selecting-features.md` compares the definition with others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.errors import InvalidParameterError
from ratoon.explain.associations import Associations
from ratoon.network import SparseMLP

Float = NDArray[np.float64]

COMMON_F = 5.0
"""Of the values 1 to 50, those from 3 on recover at least as many planted features as w alone, and
with networks trained step by step small ones are better (`research/2026-11-ranking.md`)."""

COLUMNS = (
    "rank",
    "feature",
    "importance",
    "direction",
    "difference",
    "statistic",
    "p_value",
    "fdr",
)


def feature_strength(network: SparseMLP, *, propagate: bool = False) -> Float:
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
    network.require_memory_of_inputs(16)
    layers = network.layers if propagate else network.layers[:1]
    strength: Array = np.ones(layers[-1].shape[1])
    for layer in reversed(layers):
        inputs, outputs = layer.topology.pairs()
        magnitude = np.abs(layer.weights).astype(np.float64) * strength[outputs]
        strength = np.bincount(inputs, weights=magnitude, minlength=layer.shape[0])
    if network.scaling.scale is not None:
        strength[np.asarray(network.scaling.scale) == 0] = 0.0
    return strength


def neuron_strength(network: SparseMLP) -> Float:
    """Return for every neuron of the first layer the weights in, times the strength of those out.

    Examples
    --------
    >>> from ratoon.topology import Topology
    >>> wiring = Topology.from_pairs((2, 2), [0, 1], [0, 1]), Topology.from_pairs((2, 1), [1], [0])
    >>> network = SparseMLP.start((2, 2, 1), density=1.0, seed=0, topologies=wiring)
    >>> network.layers[0].weights[:], network.layers[1].weights[:] = (-3, 2), 10
    >>> neuron_strength(network).tolist()
    [0.0, 20.0]
    """
    first, *others = network.layers
    outputs = first.topology.pairs()[1]
    weights = np.abs(first.weights).astype(np.float64)
    strength: Array = np.bincount(outputs, weights=weights, minlength=first.shape[1])
    if others:
        strength = strength * feature_strength(SparseMLP(others), propagate=True)
    return np.asarray(strength, dtype=np.float64)


def relative_strength(strength: Array) -> Float:
    """Return strengths as fractions of their sum.

    Examples
    --------
    >>> relative_strength(np.array([1.0, 3.0])).tolist()
    [0.25, 0.75]
    """
    total = float(strength.sum())
    return np.asarray(strength / total if total > 0 else strength, dtype=np.float64)


def importances(network: SparseMLP, statistics: Associations | None) -> Float:
    """Return the importance of every feature, the only definition there is.

    Without statistics it is the strength of the connections alone.
    """
    strength = feature_strength(network)
    if statistics is not None:
        strength = strength * np.sqrt(1.0 + statistics.f.astype(np.float64) / COMMON_F)
    return relative_strength(strength)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Features of a model in the order of their importance, with their statistics.

    Parameters
    ----------
    importance : ndarray of shape (n_features,)
        Fractions that sum up to 1, in the order of the features.
    statistics : Associations, optional
        Of the rows that `rows` describes.
    feature_names : tuple of str, optional
        Names of the features.
    class_names : tuple of str, optional
        Names of the classes; None for numbers.
    rows : str
        On which rows the statistics were computed, in words.

    Examples
    --------
    >>> ranking = Ranking(np.array([0.2, 0.8]), None, ("a", "b"), None, "no rows")
    >>> ranking.order.tolist(), ranking.top(1)
    ([1, 0], [{'rank': 1, 'feature': 'b', 'importance': 0.8}])
    """

    importance: Float
    statistics: Associations | None
    feature_names: tuple[str, ...] | None
    class_names: tuple[str, ...] | None
    rows: str
    order: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        order = np.argsort(-self.importance, kind="stable")
        object.__setattr__(self, "order", order)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.importance.size

    @property
    def statistic_name(self) -> str:
        """``"t"`` for two classes and for numbers, ``"F"`` otherwise."""
        n_classes = None if self.class_names is None else len(self.class_names)
        is_t = self.statistics is not None and self.statistics.degrees[0] == 1
        return "t" if is_t and n_classes in (None, 2) else "F"

    @property
    def difference_name(self) -> str:
        """What the column ``difference`` holds, in words."""
        if self.class_names is None:
            return "slope of the target on the feature"
        if len(self.class_names) == 2:
            first, second = self.class_names
            return f"mean of {second} minus mean of {first}"
        return "mean of the highest class minus mean of the other samples"

    def name(self, feature: int) -> str:
        """Return the name of a feature, or ``"feature 7"`` without names."""
        return self.feature_names[feature] if self.feature_names else f"feature {feature}"

    def direction(self, feature: int) -> str:
        """Return in words in which class a feature is highest, or how the target changes."""
        if self.statistics is None or self.statistics.highest[feature] < 0:
            return ""
        code = int(self.statistics.highest[feature])
        if self.class_names is None:
            return ("falls", "rises")[code]
        return f"highest in {self.class_names[code]}"

    def top(self, k: int | None = 20) -> list[dict[str, Any]]:
        """Return one row per feature, the most important first; all rows if ``k`` is None.

        Features without any importance are left out.
        """
        wrong = isinstance(k, bool) or not isinstance(k, int | np.integer | None)
        if wrong or (k is not None and k < 0):
            raise InvalidParameterError(f"`k` must be a whole number or None, got {k!r}.")
        first = self.order if k is None else self.order[:k]
        return self.select(first[self.importance[first] > 0])

    def select(self, features: Sequence[int] | NDArray[Any]) -> list[dict[str, Any]]:
        """Return the rows of some features, in the given order."""
        ranks = np.empty(self.n_features, dtype=np.int64)
        ranks[self.order] = np.arange(1, self.n_features + 1)
        rows: list[dict[str, Any]] = [
            {
                "rank": int(ranks[j]),
                "feature": self.name(int(j)),
                "importance": float(self.importance[j]),
            }
            for j in features
        ]
        if self.statistics is None:
            return rows
        n_classes = None if self.class_names is None else len(self.class_names)
        signed = self.statistics.signed(n_classes)
        p_values = self.statistics.p_values
        fdr = self.statistics.fdr
        for row, j in zip(rows, features, strict=True):
            row["direction"] = self.direction(int(j))
            row["difference"] = float(self.statistics.difference[j])
            row["statistic"] = float(signed[j])
            row["p_value"] = float(p_values[j])
            row["fdr"] = float(fdr[j])
        return rows

    def to_frame(self) -> Any:
        """Return the ranking as a pandas DataFrame, the most important feature first."""
        import pandas as pd

        columns = COLUMNS if self.statistics is not None else COLUMNS[:3]
        return pd.DataFrame(self.select(self.order), columns=list(columns)).set_index("rank")

    def __repr__(self) -> str:
        first = ", ".join(self.name(int(j)) for j in self.order[:3])
        more = ", ..." if self.n_features > 3 else ""
        return f"Ranking({self.n_features} features: {first}{more}; {self.rows})"
