"""Kaplan-Meier curves, the log-rank test, and step functions of time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StepFunction:
    """A function that changes at given times only, such as a survival function.

    Parameters
    ----------
    x, y : ndarray
        Times, ascending, and the value from each of them on.
    start : float
        The value before the first time.

    Examples
    --------
    >>> curve = StepFunction(np.array([1.0, 3.0]), np.array([0.8, 0.5]), start=1.0)
    >>> curve([0.5, 1.0, 2.0, 9.0]).tolist()
    [1.0, 0.8, 0.8, 0.5]
    """

    x: Floats
    y: Floats
    start: float

    def __call__(self, times: Any) -> Any:
        """Return the value at some times."""
        places: Any = np.searchsorted(self.x, np.asarray(times, dtype=np.float64), side="right")
        found = np.concatenate([[self.start], self.y])[places]
        return float(found) if np.ndim(times) == 0 else found


@dataclass(frozen=True, eq=False)
class KaplanMeier:
    """A Kaplan-Meier curve.

    Parameters
    ----------
    times : ndarray
        Times of events, ascending.
    survival : ndarray
        Probability to have no event until and including each time.
    low, high : ndarray
        95 % confidence limits, by Greenwood's variance of log(-log S).
    at_risk : ndarray
        Number of samples under observation just before each time.
    n_samples, n_events : int
        Samples, and events among them.
    last : float
        Last time of any sample, where the curve ends.
    """

    times: Floats
    survival: Floats
    low: Floats
    high: Floats
    at_risk: Floats
    n_samples: int
    n_events: int
    last: float

    @property
    def curve(self) -> StepFunction:
        """The probability as a function of time."""
        return StepFunction(self.times, self.survival, 1.0)

    def before(self, times: Array) -> Floats:
        """Return the probability to have no event before some times."""
        places = np.searchsorted(self.times, times, side="left")
        return np.asarray(np.concatenate([[1.0], self.survival])[places])

    @property
    def median(self) -> float | None:
        """First time at which the probability is at most one half; None if it stays above."""
        found = np.flatnonzero(self.survival <= 0.5)
        return float(self.times[found[0]]) if found.size else None


def kaplan_meier(event: Array, time: Array, *, events_first: Array | None = None) -> KaplanMeier:
    """Return the Kaplan-Meier curve of samples (J. Am. Stat. Assoc. 53:457-481, 1958).

    Parameters
    ----------
    event, time : ndarray of shape (n_samples,)
        Whether and when the event was observed, or when the sample was censored.
    events_first : ndarray of bool, optional
        Samples that are no longer at risk at their own time, because something else happened first:
        of a curve of censoring times, those with the event.

    Examples
    --------
    >>> found = kaplan_meier(np.array([True, False, True]), np.array([1.0, 2.0, 3.0]))
    >>> found.times.tolist(), found.survival.round(3).tolist(), found.median
    ([1.0, 3.0], [0.667, 0.0], 3.0)
    """
    event, time = np.asarray(event, dtype=bool), np.asarray(time, dtype=np.float64)
    times, counts = np.unique(time[event], return_counts=True)
    ordered = np.sort(time)
    at_risk = (time.size - np.searchsorted(ordered, times, side="left")).astype(np.float64)
    if events_first is not None:
        gone = np.sort(time[np.asarray(events_first, dtype=bool)])
        at_risk -= np.searchsorted(gone, times, "right") - np.searchsorted(gone, times, "left")
    survival: Floats = np.cumprod(1.0 - counts / at_risk, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.cumsum(counts / (at_risk * (at_risk - counts)))
        half = 1.959964 * np.sqrt(variance) / np.abs(np.log(survival))
        low, high = survival ** np.exp(half), survival ** np.exp(-half)
    is_end = survival <= 0
    low[is_end], high[is_end] = 0.0, np.nan
    last = float(time.max(initial=0.0))
    return KaplanMeier(times, survival, low, high, at_risk, time.size, int(event.sum()), last)


def log_rank(event: Array, time: Array, groups: Array) -> tuple[float, float]:
    """Return the statistic and the p value of the log-rank test that all groups have one curve.

    Examples
    --------
    >>> time = np.arange(1.0, 9.0)
    >>> statistic, p = log_rank(np.ones(8, bool), time, np.repeat([0, 1], 4))
    >>> round(statistic, 3), round(p, 4)
    (7.344, 0.0067)
    """
    event, time = np.asarray(event, dtype=bool), np.asarray(time, dtype=np.float64)
    names, codes = np.unique(groups, return_inverse=True)
    times, places = np.unique(time[event], return_inverse=True)
    k = names.size
    deaths = np.zeros((times.size, k))
    np.add.at(deaths, (places, codes[event]), 1.0)
    at_risk = np.stack(
        [
            np.count_nonzero(codes == code)
            - np.searchsorted(np.sort(time[codes == code]), times, side="left")
            for code in range(k)
        ],
        axis=1,
    ).astype(np.float64)
    total, died = at_risk.sum(axis=1), deaths.sum(axis=1)
    expected = at_risk * (died / total)[:, None]
    excess = (deaths - expected).sum(axis=0)[:-1]
    share = at_risk / total[:, None]
    factor = died * (total - died) / np.maximum(total - 1.0, 1.0)
    covariance = (
        np.diag((factor[:, None] * share).sum(axis=0)) - (share * factor[:, None]).T @ share
    )
    if k < 2 or not times.size:
        return 0.0, 1.0
    statistic = float(excess @ np.linalg.pinv(covariance[:-1, :-1]) @ excess)
    return statistic, chi2_tail(statistic, k - 1)


def chi2_tail(value: float, degrees: int) -> float:
    """Return the probability that a chi-squared variable is larger.

    Examples
    --------
    >>> round(chi2_tail(3.841459, 1), 4), round(chi2_tail(5.991465, 2), 4)
    (0.05, 0.05)
    """
    half, k = max(value, 0.0) / 2, degrees
    if k % 2:
        tail = math.erfc(math.sqrt(half))
        term, start = math.exp(-half) / math.sqrt(math.pi), 1
        parts = [term * half ** (i / 2) / math.gamma(1 + i / 2) * math.sqrt(math.pi)
                 for i in range(start, k - 1, 2)]  # fmt: skip
        return float(min(1.0, tail + sum(parts)))
    return min(1.0, sum(math.exp(-half) * half**i / math.factorial(i) for i in range(k // 2)))
