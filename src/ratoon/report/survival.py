"""Kaplan-Meier curves by predicted risk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.report.style import CYCLE, new_axes, tidy
from ratoon.survival import KaplanMeier, kaplan_meier, log_rank

NAMES = {2: ("low risk", "high risk"), 3: ("low risk", "medium risk", "high risk")}


@dataclass(eq=False)
class KaplanMeierDisplay:
    """Kaplan-Meier curves of groups of samples, with 95 % limits and the log-rank test.

    Parameters
    ----------
    curves : dict of str to KaplanMeier
        The curve of every group.
    p_value : float
        P value of the log-rank test that all curves are the same.
    last : float
        Last time of any sample, up to which curves are drawn.
    time_name : str
        Label of the horizontal axis.
    groups : ndarray of str, optional
        Name of the group of every sample.

    Examples
    --------
    >>> event, time = np.ones(8, dtype=bool), np.arange(1.0, 9.0)
    >>> display = KaplanMeierDisplay.from_risks(event, time, -time, n_groups=2)
    >>> [(name, curve.median) for name, curve in display.curves.items()]
    [('low risk', 6.0), ('high risk', 2.0)]
    >>> round(display.p_value, 3)
    0.007
    """

    curves: dict[str, KaplanMeier]
    p_value: float
    last: float
    time_name: str = "time"
    groups: NDArray[np.str_] | None = None
    figure_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_groups(
        cls, event: Array, time: Array, groups: Array, *, time_name: str = "time"
    ) -> KaplanMeierDisplay:
        """Show one curve per group, in the order in which groups sort."""
        event, time = np.asarray(event, dtype=bool), np.asarray(time, dtype=np.float64)
        groups = np.asarray(groups)
        names = np.unique(groups)
        if not event.any():
            raise InvalidInputError("no sample has the event, so there is no curve to draw.")
        curves = {str(n): kaplan_meier(event[groups == n], time[groups == n]) for n in names}
        p_value = log_rank(event, time, groups)[1]
        return cls(curves, p_value, float(time.max()), time_name, groups.astype(str))

    @classmethod
    def from_risks(
        cls,
        event: Array,
        time: Array,
        risk: Array,
        *,
        n_groups: int = 3,
        cuts: Array | None = None,
        time_name: str = "time",
    ) -> KaplanMeierDisplay:
        """Show groups by risk: equally large ones, or those between given cuts.

        Cuts should be from training samples, such as quantiles of
        ``model.cross_validated_outputs_``: then the groups do not depend on the other samples.
        """
        if n_groups not in NAMES:
            raise InvalidParameterError(f"`n_groups` must be 2 or 3, got {n_groups!r}.")
        risk = np.asarray(risk, dtype=np.float64)
        if cuts is None:
            cuts = np.quantile(risk, np.arange(1, n_groups) / n_groups)
        codes: NDArray[np.intp] = np.searchsorted(cuts, risk, side="left")
        shown = cls.from_groups(event, time, codes, time_name=time_name)
        shown.curves = {NAMES[n_groups][int(code)]: one for code, one in shown.curves.items()}
        shown.groups = np.asarray(NAMES[n_groups])[codes]
        return shown

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, n_groups: int = 3
    ) -> KaplanMeierDisplay:
        """Show samples grouped by the risks that a fitted model predicts.

        ``y`` is as in `SparseMLPSurvival.fit`; without it ``X`` is a `Dataset` with survival times.
        """
        targets = X.y if y is None else y
        labelled = estimator._check_target(targets)
        risk = estimator.predict(X)
        return cls.from_risks(labelled[:, 0] > 0, labelled[:, 1], risk, n_groups=n_groups)

    def plot(self, ax: Any | None = None) -> KaplanMeierDisplay:
        """Draw the curves."""
        self.figure_, self.ax_ = new_axes(ax)
        for (name, curve), colour in zip(self.curves.items(), CYCLE * 3, strict=False):
            x = np.concatenate([[0.0], curve.times, [curve.last]])
            steps = [
                np.concatenate([[1.0], values, values[-1:] if values.size else [1.0]])
                for values in (curve.survival, curve.low, np.nan_to_num(curve.high))
            ]
            label = f"{name}: {curve.n_samples} samples, {curve.n_events} events"
            self.ax_.step(x, steps[0], where="post", color=colour, label=label, linewidth=1.6)
            self.ax_.fill_between(x, *steps[1:], step="post", color=colour, alpha=0.12, linewidth=0)
        self.ax_.set_ylim(0.0, 1.02)
        self.ax_.set_xlim(0.0, self.last)
        self.ax_.set_xlabel(self.time_name)
        self.ax_.set_ylabel("probability without event")
        self.ax_.legend(frameon=False, fontsize=8)
        tidy(self.ax_)
        return self
