"""Feature ranking: features with the largest connection strength."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ratoon.errors import InvalidInputError
from ratoon.report.style import BLUE, GREY, literal, new_axes, tidy


@dataclass(eq=False)
class FeatureRankingDisplay:
    """The strongest features in decreasing order, with error bars where known.

    Parameters
    ----------
    names : sequence of str
        Names of the features, strongest first.
    strength : ndarray
        Strength of every feature, not negative.
    spread : ndarray, optional
        Standard deviation of each strength over seeds or folds.

    Examples
    --------
    >>> display = FeatureRankingDisplay.from_strength([0.1, 0.7, 0.2], names=["a", "b", "c"], top=2)
    >>> display.names, display.strength.tolist()
    (['b', 'c'], [0.7, 0.2])
    """

    names: Sequence[str]
    strength: NDArray[np.float64]
    spread: NDArray[np.float64] | None = None
    figure_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_strength(
        cls,
        strength: ArrayLike,
        *,
        names: Sequence[str] | None = None,
        spread: ArrayLike | None = None,
        top: int = 20,
    ) -> FeatureRankingDisplay:
        """Rank features by strength and keep the first ``top``."""
        values = np.asarray(strength, dtype=np.float64)
        if values.ndim != 1 or values.size == 0:
            raise InvalidInputError(
                f"strengths must be a one-dimensional array with one number per feature, got"
                f" shape {values.shape}."
            )
        if names is not None and len(names) != values.size:
            raise InvalidInputError(
                f"got {len(names)} names for {values.size} features; give one name per feature."
            )
        first = np.argsort(-values, kind="stable")[:top]
        labels = [f"feature {j}" if names is None else str(names[j]) for j in first]
        return cls(labels, values[first], None if spread is None else np.asarray(spread)[first])

    @classmethod
    def from_estimator(cls, estimator: Any, *, top: int = 20) -> FeatureRankingDisplay:
        """Rank the features of a fitted estimator or selector."""
        names = getattr(estimator, "feature_names_in_", None)
        strength = getattr(estimator, "strength_", None)
        if strength is None:
            strength = estimator.feature_importances_
        spread = getattr(estimator, "strength_spread_", None)
        return cls.from_strength(strength, names=names, spread=spread, top=top)

    def plot(self, ax: Any | None = None) -> FeatureRankingDisplay:
        """Draw one bar per feature."""
        n = len(self.names)
        self.figure_, self.ax_ = new_axes(ax, figsize=(6.0, max(1.6, 0.6 + 0.22 * n)))
        places = np.arange(n)
        self.ax_.barh(places, self.strength, color=BLUE, height=0.72)
        if self.spread is not None:
            self.ax_.errorbar(
                self.strength, places, xerr=self.spread, fmt="none", ecolor=GREY, elinewidth=1
            )
        self.ax_.set_yticks(places, [literal(_short(name)) for name in self.names])
        self.ax_.invert_yaxis()
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set_xlabel("connection strength")
        tidy(self.ax_)
        self.ax_.grid(visible=False, axis="y")
        self.ax_.grid(axis="x", color="0.9", linewidth=0.8)
        return self


def _short(name: str, max_length: int = 28) -> str:
    return name if len(name) <= max_length else name[: max_length - 1] + "…"
