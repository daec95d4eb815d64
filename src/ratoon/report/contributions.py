"""Contributions of features to one prediction, as a bar chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.report.style import BLUE, GREY, literal, new_axes, tidy

VERMILION = "#d55e00"


@dataclass(eq=False)
class ContributionDisplay:
    """The largest contributions to one output, and the sum of all others.

    Parameters
    ----------
    names : sequence of str
        Names of the features, the largest contribution first; the last bar is that of all others.
    contributions : ndarray
        Positive ones raise the output.
    base : float
        Output for the baseline.
    output : float
        Output for the sample.
    title : str
        Name of the sample, and what is explained.

    Examples
    --------
    >>> from ratoon.explain import Explanation
    >>> found = Explanation(
    ...     np.array([[0.5, -2.0, 0.1]]), np.array([1.0]), np.array([-0.4]), ("ill",),
    ...     np.zeros((1, 3)), ("TP53", "MDM2", "ATM"))
    >>> display = ContributionDisplay.from_explanation(found, 0, top=1)
    >>> display.names, display.contributions.round(1).tolist()
    (['MDM2', 'all others'], [-2.0, 0.6])
    """

    names: Sequence[str]
    contributions: NDArray[np.float64]
    base: float
    output: float
    title: str = ""
    figure_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_explanation(
        cls, explanation: Any, sample: int | str = 0, *, top: int = 15
    ) -> ContributionDisplay:
        """Take the largest contributions to one sample from an `Explanation`."""
        row = explanation.row(sample)
        first = explanation.top(top, row)
        total = float(explanation.of_sample(row).sum())
        parts = [part for _, part, _ in first]
        names = explanation.sample_names
        name = f"sample {row + 1}" if names is None else names[row]
        return cls(
            [*(feature for feature, _, _ in first), "all others"],
            np.array([*parts, total - sum(parts)]),
            float(explanation.base_values[row]),
            float(explanation.outputs[row]),
            f"{name}: {explanation.targets[row]}",
        )

    def plot(self, ax: Any | None = None) -> ContributionDisplay:
        """Draw one bar per feature, to the right where it raises the output."""
        n = len(self.names)
        self.figure_, self.ax_ = new_axes(ax, figsize=(6.0, max(1.8, 0.9 + 0.24 * n)))
        places = np.arange(n)
        colours = [BLUE if part >= 0 else VERMILION for part in self.contributions]
        colours[-1] = GREY
        self.ax_.barh(places, self.contributions, color=colours, height=0.72)
        self.ax_.axvline(0.0, color="0.4", linewidth=0.8)
        self.ax_.set_yticks(places, [literal(name[:40]) for name in self.names])
        self.ax_.invert_yaxis()
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set_xlabel(f"contribution (base {self.base:.3g}, output {self.output:.3g})")
        self.ax_.set_title(literal(self.title), loc="left", fontsize=10)
        tidy(self.ax_)
        self.ax_.grid(visible=False, axis="y")
        self.ax_.grid(axis="x", color="0.9", linewidth=0.8)
        return self
