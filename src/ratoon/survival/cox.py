"""Cox's partial likelihood, its gradient, and the baseline hazard.

With risk scores eta, the contribution of an event at time t is its score minus the logarithm of
``S(t)``, the sum of ``exp(eta)`` over all samples with a time of at least t.  Events at the same
time count as Breslow (Biometrics 30:89-99, 1974) or Efron (J. Am. Stat. Assoc. 72:557-565, 1977)
proposed.  Everything takes O(n log n) for sorting once and O(n) for each evaluation, and sums are
of logarithms, so that no score is too large.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.errors import InvalidParameterError

TIES = ("efron", "breslow")

Floats = NDArray[np.float64]


class CoxLoss:
    """Minus the logarithm of the partial likelihood, as a function of the risk scores.

    Parameters
    ----------
    event : ndarray of bool
        Whether each sample has the event, or is censored.
    time : ndarray
        When; only the order counts.
    weights : ndarray, optional
        Sample weights.  With Efron's method, events at the same time have their mean weight.
    ties : {"efron", "breslow"}
        How events at the same time count.

    Examples
    --------
    >>> loss = CoxLoss(np.array([True, True, False]), np.array([1.0, 2.0, 3.0]))
    >>> value, gradient = loss(np.zeros(3))
    >>> round(value, 4), gradient.round(3).tolist()
    (1.7918, [-0.667, -0.167, 0.833])
    """

    def __init__(
        self,
        event: Array,
        time: Array,
        weights: Array | None = None,
        *,
        ties: str = "efron",
    ) -> None:
        if ties not in TIES:
            raise InvalidParameterError(f"`ties` must be one of {TIES}, got {ties!r}.")
        n = len(event)
        self.order = np.argsort(time, kind="stable")
        event = np.asarray(event, dtype=bool)[self.order]
        ranks = np.asarray(time)[self.order]
        weight = np.ones(n) if weights is None else np.asarray(weights, np.float64)[self.order]
        event &= weight > 0
        self._group = np.cumsum(np.concatenate([[0], ranks[1:] != ranks[:-1]]))[:n]
        self._first = np.searchsorted(self._group, np.arange(self._group[-1] + 1 if n else 0))
        with np.errstate(divide="ignore"):
            self._log_weight = np.log(weight)
        self._event, self._weight, self.ties = event, weight, ties
        # Every event is one term of the sum; `_tie_share` is what Efron takes away of it.
        self._of_event = np.flatnonzero(event)
        groups = self._group[self._of_event]
        n_groups = self._first.size
        counts = np.bincount(groups, minlength=n_groups)
        term_weight = weight[self._of_event]
        if ties == "efron":
            mean = np.bincount(groups, term_weight, n_groups) / np.maximum(counts, 1)
            term_weight = mean[groups]
            starts = np.cumsum(counts) - counts
            self._tie_share = (np.arange(groups.size) - starts[groups]) / counts[groups]
        else:
            self._tie_share = np.zeros(groups.size)
        self._groups_of_terms, self._term_weight = groups, term_weight
        self.n_events = float(weight[self._of_event].sum())
        """Number of events, counted by weight."""

    def __call__(self, scores: Array) -> tuple[float, Floats]:
        """Return the loss and its gradient by the scores; both are sums, not means."""
        n = self.order.size
        gradient = np.zeros(n)
        if self._of_event.size == 0:
            return 0.0, gradient
        eta = np.asarray(scores, dtype=np.float64)[self.order]
        at_risk, tied, log_terms = self._log_sums(eta)
        value = float(self._term_weight @ log_terms) - float(
            self._weight[self._of_event] @ eta[self._of_event]
        )
        with np.errstate(divide="ignore"):
            log_parts = np.log(self._term_weight) - log_terms
        del at_risk, tied
        # Of sample j: w exp(eta) times the sum of 1 / S over all event times up to its own.
        sums = _log_sums_of(log_parts, self._groups_of_terms, self._first.size)
        hazard = np.logaddexp.accumulate(sums)[self._group]
        own = np.exp(self._log_weight + eta + hazard)
        if self.ties == "efron":
            with np.errstate(divide="ignore"):
                log_shares = np.log(self._tie_share) + log_parts
            taken = _log_sums_of(log_shares, self._groups_of_terms, self._first.size)
            own -= self._event * np.exp(self._log_weight + eta + taken[self._group])
        own[self._of_event] -= self._weight[self._of_event]
        gradient[self.order] = own
        return value, gradient

    def log_increments(self, scores: Array) -> tuple[NDArray[np.intp], Floats]:
        """Return for every distinct time the place of a sample with it, and log of the hazard.

        The increments of the baseline hazard are 0 (their logarithm minus infinity) at times
        without an event.
        """
        eta = np.asarray(scores, dtype=np.float64)[self.order]
        _, _, log_terms = self._log_sums(eta)
        with np.errstate(divide="ignore"):
            log_parts = np.log(self._term_weight) - log_terms
        found = _log_sums_of(log_parts, self._groups_of_terms, self._first.size)
        return self.order[self._first], found

    def _log_sums(self, eta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return log S of every time, log of its part by tied events, and log of every term."""
        log_size = self._log_weight + eta
        at_risk = np.logaddexp.accumulate(log_size[::-1])[::-1][self._first]
        log_terms = at_risk[self._groups_of_terms]
        if self.ties == "breslow":
            return at_risk, at_risk, log_terms
        of_events = np.where(self._event, log_size, -np.inf)
        tied = _log_sums_of(of_events, self._group, self._first.size)
        part = np.exp(tied - at_risk)[self._groups_of_terms]
        return at_risk, tied, log_terms + np.log1p(-self._tie_share * np.minimum(part, 1.0))


def _log_sums_of(logs: Floats, groups: Array, n_groups: int) -> Floats:
    """Return the logarithm of the sum of exponentials in every group; ``groups`` ascend."""
    found = np.full(n_groups, -np.inf)
    np.maximum.at(found, groups, logs)
    finite = np.where(np.isfinite(found), found, 0.0)
    sums = np.bincount(groups, np.exp(logs - finite[groups]), minlength=n_groups)
    with np.errstate(divide="ignore"):
        return np.asarray(finite + np.log(sums))


def martingale_residuals(
    event: Array, time: Array, weights: Array | None = None, scores: Array | None = None
) -> Floats:
    """Return minus the gradient of the loss: the events that the model does not expect.

    Examples
    --------
    >>> martingale_residuals(np.array([True, False]), np.array([1.0, 2.0])).tolist()
    [0.5, -0.5]
    """
    loss = CoxLoss(event, time, weights, ties="breslow")
    return -loss(np.zeros(len(event)) if scores is None else scores)[1]


def baseline_hazard(
    event: Array,
    time: Array,
    scores: Array,
    weights: Array | None = None,
    *,
    ties: str = "efron",
) -> tuple[Floats, Floats]:
    """Return the distinct times, ascending, and the cumulative baseline hazard at each.

    The probability to have no event until t is ``exp(-H(t) * exp(score))``.

    Examples
    --------
    >>> event, time = np.array([True, False, True]), np.array([1.0, 2.0, 3.0])
    >>> times, hazard = baseline_hazard(event, time, np.zeros(3))
    >>> times.tolist(), hazard.round(3).tolist()
    ([1.0, 2.0, 3.0], [0.333, 0.333, 1.333])
    """
    loss = CoxLoss(event, time, weights, ties=ties)
    places, logs = loss.log_increments(scores)
    return np.asarray(time, dtype=np.float64)[places], np.cumsum(np.exp(logs))
