"""95 % intervals that remain inside the range of the score, also at its ends.

A prediction of the same sample in several repeats of a cross-validation is no new evidence: every
sample counts once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.optimize
import scipy.stats

from ratoon.arrays import Array
from ratoon.rng import derive_generator

Z = float(scipy.stats.norm.ppf(0.975))
N_RESAMPLES = 1000
_MAX_DRAWN = 20_000_000


@dataclass(frozen=True)
class Score:
    """A score and its 95 % interval; None where it is not defined.

    Examples
    --------
    >>> str(Score(0.9, 0.8123, 0.9512))
    '0.900 (0.812 to 0.951)'
    """

    value: float | None
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        if self.value is None:
            return "-"
        if self.low is None or self.high is None:
            return f"{self.value:.3f}"
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"

    def percent(self) -> str:
        """Return the score as text in per cent.

        Examples
        --------
        >>> Score(0.9, 0.8123, 0.9512).percent()
        '90.0 % (81.2 to 95.1)'
        """
        if self.value is None:
            return "-"
        text = f"{100 * self.value:.1f} %"
        if self.low is None or self.high is None:
            return text
        return f"{text} ({100 * self.low:.1f} to {100 * self.high:.1f})"


UNDEFINED = Score(None)


def wilson(share: float, n: float) -> Score:
    """Return a proportion of ``n`` samples with Wilson's interval (JASA 22, 1927).

    Examples
    --------
    >>> str(wilson(1.0, 20))
    '1.000 (0.839 to 1.000)'
    """
    if n <= 0 or math.isnan(share):
        return UNDEFINED
    centre = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return Score(share, min(max(centre - half, 0.0), share), max(min(centre + half, 1.0), share))


def from_variance(value: float, variance: float, most: float) -> Score:
    """Return a value in [0, 1] with Wilson's interval for as many samples as give this variance.

    At most ``most`` samples: a variance of 0 does not mean certainty.

    Examples
    --------
    >>> str(from_variance(0.75, 0.75 * 0.25 / 40, 100)), str(from_variance(1.0, 0.0, 20))
    ('0.750 (0.598 to 0.858)', '1.000 (0.839 to 1.000)')
    """
    spread = value * (1.0 - value)
    return wilson(value, most if variance * most <= spread else spread / variance)


def mean_of(scores: list[Score]) -> Score:
    """Return the mean of independent proportions with Zou and Donner's interval.

    It takes the distances to the limits of each (Statistics in Medicine 27, 2008).

    Examples
    --------
    >>> str(mean_of([wilson(1.0, 20), wilson(0.5, 20)]))
    '0.750 (0.621 to 0.850)'
    """
    known = [score for score in scores if score.value is not None]
    if not known:
        return UNDEFINED
    values = np.array([(s.value, s.low, s.high) for s in known], dtype=np.float64)
    mean = float(values[:, 0].mean())
    below = float(np.sqrt(np.square(values[:, 0] - values[:, 1]).sum())) / len(known)
    above = float(np.sqrt(np.square(values[:, 2] - values[:, 0]).sum())) / len(known)
    return Score(mean, max(mean - below, 0.0), min(mean + above, 1.0))


def area(value: float, n_positive: int, n_negative: int) -> Score:
    """Return an area under the ROC curve with Newcombe's interval.

    It solves for the areas at which the distance to the value is 1.96 standard errors (method 5
    of Statistics in Medicine 25, 2006), so an area of 1 from few samples is not certain.

    Examples
    --------
    >>> str(area(1.0, 10, 10))
    '1.000 (0.800 to 1.000)'
    """
    if n_positive == 0 or n_negative == 0 or math.isnan(value):
        return UNDEFINED
    sizes = (n_positive, n_negative)
    # The standard error of an area is that of its difference to 1.
    return Score(value, _lower_limit(value, *sizes), 1.0 - _lower_limit(1.0 - value, *sizes))


def _lower_limit(value: float, n_positive: int, n_negative: int) -> float:
    """Return the area below a value at which the distance is 1.96 standard errors."""
    if value <= 0.0:
        return 0.0
    size = (n_positive + n_negative) / 2 - 1

    def distance(theta: float) -> float:
        factor = 1 + size * (1 - theta) / (2 - theta) + size * theta / (1 + theta)
        variance = theta * (1 - theta) * factor / (n_positive * n_negative)
        return value - theta - Z * math.sqrt(variance)

    # At 1 the standard error is 0 as well, which is not the solution.
    return float(scipy.optimize.brentq(distance, 0.0, min(value, 1.0 - 1e-9)))


def mean_loss(losses: Array) -> Score:
    """Return the mean of losses that are not negative, with Student's interval.

    Examples
    --------
    >>> str(mean_loss(np.array([0.1, 0.3, 0.2])))
    '0.200 (0.000 to 0.448)'
    """
    if losses.size == 0:
        return UNDEFINED
    mean = float(losses.mean())
    if losses.size < 2:
        return Score(mean)
    half = float(scipy.stats.t.ppf(0.975, losses.size - 1) * losses.std(ddof=1))
    half /= math.sqrt(losses.size)
    return Score(mean, max(mean - half, 0.0), mean + half)


def bootstrap(statistic: Callable[[Array], Array], n: int) -> tuple[float, float] | None:
    """Return percentile limits over resamples of ``n`` samples; always the same ones.

    Parameters
    ----------
    statistic : callable
        Called with counts, (resamples, n): how often each sample was drawn.  Returns one value per
        row.
    n : int
        Number of samples; None is returned for fewer than 3.

    Examples
    --------
    >>> values = np.arange(10.0)
    >>> bootstrap(lambda counts: counts @ values / 10, 10)
    (2.8, 6.2)
    """
    if n < 3:
        return None
    rng = derive_generator(0, "bootstrap")
    step = max(1, min(N_RESAMPLES, _MAX_DRAWN // (8 * n)))
    found = []
    for first in range(0, N_RESAMPLES, step):
        rows = min(step, N_RESAMPLES - first)
        drawn = rng.integers(0, n, size=(rows, n)) + n * np.arange(rows)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n)
        found.append(statistic(counts.astype(np.float64)))
    values = np.concatenate(found)
    values = values[np.isfinite(values)]
    if values.size < N_RESAMPLES // 2:
        return None
    low, high = np.quantile(values, (0.025, 0.975)).tolist()
    return float(low), float(high)
