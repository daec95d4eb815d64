"""Results of a comparison of strategies: runs, and the lines of a table."""

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
    """The result of one strategy on one split.

    ``accuracy`` is NaN if training diverged.  ``array_bytes`` is the largest size of the network's
    indices, weights, momentum and biases, ``state_bytes`` the size of the strategy's state at the
    end.  ``explored`` is the fraction of all positions that were ever connected (the ITOP rate), if
    it was recorded.
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
    """The result of one strategy over all splits.

    ``gain`` is the mean difference in accuracy to the network that never rewires, over the splits
    in which neither diverged; ``gain_error`` is its standard error over these splits, and ``p`` is
    from a paired t test corrected for overlapping training rows; it is None with too few splits.
    Times are those of the fastest split, because other processes can only make a run slower.
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
    """The runs of a comparison, in any order."""

    runs: Sequence[StrategyRun]

    def names(self) -> list[str]:
        """Return the strategies in the order in which they first ran."""
        return list(dict.fromkeys(run.strategy for run in self.runs))

    def accuracies(self, name: str) -> dict[int, float]:
        """Return the accuracy on every split in which training did not diverge."""
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

    def interval(self, name: str) -> tuple[float, float, float] | None:
        """Return the mean gain and its 95 % limits; None for `static` and without gains."""
        gains = self.gains(name)
        if name == BASELINE or gains.size == 0:
            return None
        scores: dict[str, NDArray[Any]] = {name: gains, BASELINE: np.zeros(gains.size)}
        return Comparison(scores, {}, {}, TEST_SHARE).interval(name, BASELINE)

    def lines(self) -> list[StrategyLine]:
        """Return one line per strategy."""
        return [self._line(name) for name in self.names()]

    def _line(self, name: str) -> StrategyLine:
        runs = [run for run in self.runs if run.strategy == name]
        finished = np.array(list(self.accuracies(name).values()))
        # Recording slows rewiring; recorded runs are timed only if there are no others.
        timed = [run for run in runs if run.explored is None] or runs
        gain, error, p = self._against_baseline(name)
        recorded = [run.explored for run in runs if run.explored is not None]
        return StrategyLine(
            strategy=name,
            accuracy=float(finished.mean()) if finished.size else float("nan"),
            deviation=float(finished.std()) if finished.size else float("nan"),
            gain=gain,
            gain_error=error,
            p=p,
            n_splits=len(runs),
            n_diverged=len(runs) - finished.size,
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
        error = float(gains.std(ddof=1) / np.sqrt(gains.size))
        return mean, error, None if np.isnan(p) else p
