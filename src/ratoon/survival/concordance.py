"""The concordance index: how often the sample with the higher risk has the event first."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.survival.curves import kaplan_meier


def concordance_index(
    event: Array, time: Array, risk: Array, weights: Array | None = None
) -> float:
    """Return Harrell's C; 0.5 for random risks, 1 for a perfect order.

    A pair can be compared if the sample with the shorter time has the event; at equal times, if
    one has the event and the other is censored.  Equal risks count one half.

    Parameters
    ----------
    event, time : ndarray of shape (n_samples,)
        Whether and when the event was observed, or when the sample was censored.
    risk : ndarray of shape (n_samples,)
        Higher for an earlier event.
    weights : ndarray of shape (n_samples,), optional
        Weight of every event; with those of `uno_weights` this is Uno's C.

    Raises
    ------
    InvalidInputError
        If no pair can be compared.

    Examples
    --------
    >>> event, time = np.array([True, True, False]), np.array([1.0, 2.0, 3.0])
    >>> concordance_index(event, time, np.array([3.0, 1.0, 2.0]))
    0.6666666666666666
    """
    concordant, comparable = _pairs_of_events(event, time, risk)
    if weights is not None:
        concordant, comparable = concordant * weights, comparable * weights
    if not comparable.any():
        raise InvalidInputError(
            "no two samples can be compared: an event before the time of another sample is needed."
        )
    return float(concordant.sum() / comparable.sum())


def concordance_pairs(
    event: Array, time: Array, risk: Array
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for every sample its concordant pairs and all its pairs that can be compared.

    A pair counts for both of its samples.  The standard error of the concordance follows from these
    counts, as in the package survival of R.

    Examples
    --------
    >>> event, time = np.array([True, True, False]), np.array([1.0, 2.0, 3.0])
    >>> concordant, comparable = concordance_pairs(event, time, np.array([3.0, 1.0, 2.0]))
    >>> concordant.tolist(), comparable.tolist()
    ([2.0, 1.0, 1.0], [2.0, 2.0, 2.0])
    """
    first = _pairs_of_events(event, time, risk)
    second = _pairs_of_later(event, time, risk)
    return first[0] + second[0], first[1] + second[1]


def _pairs_of_events(event: Array, time: Array, risk: Array) -> tuple[Array, Array]:
    """Return for every event the later samples with a lower risk, and all later samples."""
    event, time = np.asarray(event, dtype=bool), np.asarray(time, dtype=np.float64)
    risk = np.asarray(risk, dtype=np.float64)
    concordant, comparable = np.zeros(time.size), np.zeros(time.size)
    seen: list[float] = []
    for same in _by_time(time, latest_first=True):
        for row in same[~event[same]].tolist():  # at equal times the censored are later
            insort(seen, risk[row])
        for row in same[event[same]].tolist():
            below, upto = bisect_left(seen, risk[row]), bisect_right(seen, risk[row])
            concordant[row] = below + 0.5 * (upto - below)
            comparable[row] = len(seen)
        for row in same[event[same]].tolist():
            insort(seen, risk[row])
    return concordant, comparable


def _pairs_of_later(event: Array, time: Array, risk: Array) -> tuple[Array, Array]:
    """Return for every sample the earlier events with a higher risk, and all earlier events."""
    event, time = np.asarray(event, dtype=bool), np.asarray(time, dtype=np.float64)
    risk = np.asarray(risk, dtype=np.float64)
    concordant, comparable = np.zeros(time.size), np.zeros(time.size)
    seen: list[float] = []

    def count(row: int) -> None:
        below, upto = bisect_left(seen, risk[row]), bisect_right(seen, risk[row])
        concordant[row] = len(seen) - upto + 0.5 * (upto - below)
        comparable[row] = len(seen)

    for same in _by_time(time, latest_first=False):
        for row in same[event[same]].tolist():
            count(row)
        for row in same[event[same]].tolist():
            insort(seen, risk[row])
        for row in same[~event[same]].tolist():
            count(row)
    return concordant, comparable


def _by_time(time: Array, *, latest_first: bool) -> list[Array]:
    """Return the samples of every distinct time."""
    order = np.argsort(-time if latest_first else time, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(time[order])) + 1)


def uno_weights(
    event: Array, time: Array, train_event: Array, train_time: Array
) -> NDArray[np.float64]:
    """Return the weights of Uno's C: 1 over the squared probability not to be censored until then.

    That probability is the Kaplan-Meier estimate of the censoring times in the training samples.
    Events after the last of these have weight 0 (Uno et al., Statistics in Medicine 30:1105-1117,
    2011).

    Examples
    --------
    >>> event, time = np.array([True, False, True]), np.array([1.0, 2.0, 3.0])
    >>> uno_weights(event, time, event, time).tolist()
    [1.0, 0.0, 4.0]
    """
    train_event = np.asarray(train_event, dtype=bool)
    time = np.asarray(time, dtype=np.float64)
    curve = kaplan_meier(~train_event, train_time, events_first=train_event)
    probability = curve.curve(time)
    found = np.zeros(len(time))
    used = np.asarray(event, dtype=bool) & (probability > 0)
    found[used] = 1.0 / np.square(probability[used])
    return found
