"""Runs of strategies side by side, and the lines of a table that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.experiments.compare import Comparison

BASELINE = "static"
TEST_SHARE = 1 / 3


@dataclass(frozen=True)
class StrategyRun:
    """One strategy on one split.

    ``accuracy`` is not a number where training diverged.  ``array_bytes`` is what the network's
    indices, weights, momentum and biases took at their largest, ``state_bytes`` what the strategy
    remembered in the end.  ``explored`` is the share of all positions that were ever connected
    (the ITOP rate), where it was recorded.
    """

    strategy: str
    split: int
    accuracy: float
    seconds: float
    n_rewirings: int
    seconds_per_rewiring: float
    n_connections: int
    array_bytes: int
    state_bytes: int
    explored: float | None = None


@dataclass(frozen=True)
class StrategyLine:
    """One strategy over all splits.

    ``gain`` is the mean difference in accuracy to the network that never rewires, over the splits
    on which neither diverged, with ``gain_error`` its standard error over these splits and ``p``
    from a paired t test corrected for overlapping training rows.  Times are those of the quickest
    split: other processes can only make a run slower.
    """

    strategy: str
    accuracy: float
    deviation: float
    gain: float | None
    gain_error: float | None
    p: float | None
    n_splits: int
    n_diverged: int
    n_rewirings: int
    seconds_per_rewiring: float | None
    seconds: float
    explored: float | None
    n_connections: int
    array_bytes: int
    state_bytes: int


@dataclass(frozen=True)
class StrategyComparison:
    """All runs, in any order."""

    runs: Sequence[StrategyRun]

    def names(self) -> list[str]:
        """Return the strategies in the order in which they first ran."""
        return list(dict.fromkeys(run.strategy for run in self.runs))

    def accuracies(self, name: str) -> dict[int, float]:
        """Return the accuracy on every split on which training did not diverge."""
        return {
            run.split: run.accuracy
            for run in self.runs
            if run.strategy == name and np.isfinite(run.accuracy)
        }

    def gains(self, name: str) -> NDArray[np.float64]:
        """Return the differences to the network that never rewires, split by split.

        Examples
        --------
        >>> def run(name, split, accuracy):
        ...     return StrategyRun(name, split, accuracy, 1.0, 3, 0.01, 900, 11_000, 0)
        >>> found = StrategyComparison([run("static", 0, 0.7), run("set", 0, 0.8)])
        >>> found.gains("set").round(2)
        array([0.1])
        """
        ours, base = self.accuracies(name), self.accuracies(BASELINE)
        return np.array([ours[split] - base[split] for split in sorted(ours.keys() & base.keys())])

    def lines(self) -> list[StrategyLine]:
        """Return one line per strategy."""
        return [self._line(name) for name in self.names()]

    def _line(self, name: str) -> StrategyLine:
        runs = [run for run in self.runs if run.strategy == name]
        ended = np.array(list(self.accuracies(name).values()))
        # A recorder slows rewirings down; its runs are timed only where there are no others.
        timed = [run for run in runs if run.explored is None] or runs
        gain, error, p = self._against_baseline(name)
        recorded = [run.explored for run in runs if run.explored is not None]
        return StrategyLine(
            strategy=name,
            accuracy=float(ended.mean()) if ended.size else float("nan"),
            deviation=float(ended.std()) if ended.size else float("nan"),
            gain=gain,
            gain_error=error,
            p=p,
            n_splits=len(runs),
            n_diverged=len(runs) - ended.size,
            n_rewirings=runs[0].n_rewirings,
            seconds_per_rewiring=(
                min(run.seconds_per_rewiring for run in timed) if runs[0].n_rewirings else None
            ),
            seconds=min(run.seconds for run in timed),
            explored=float(np.mean(recorded)) if recorded else None,
            n_connections=runs[-1].n_connections,
            array_bytes=max(run.array_bytes for run in runs),
            state_bytes=max(run.state_bytes for run in runs),
        )

    def _against_baseline(self, name: str) -> tuple[float | None, float | None, float | None]:
        gains = self.gains(name)
        if name == BASELINE or gains.size == 0:
            return None, None, None
        scores: dict[str, NDArray[Any]] = {name: gains, BASELINE: np.zeros(gains.size)}
        mean, p = Comparison(scores, {}, {}, TEST_SHARE).against(name, BASELINE)
        if gains.size < 2:
            return mean, None, None
        return mean, float(gains.std(ddof=1) / np.sqrt(gains.size)), p
