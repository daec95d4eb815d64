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
    event, time = np.asarray(event, dtype=bool), np.asarray(time, dtype=np.float64)
    risk = np.asarray(risk, dtype=np.float64)
    order = np.lexsort((event, -time))  # latest first; at equal times the censored first
    later: list[float] = []
    concordant = comparable = 0.0
    position = 0
    while position < order.size:
        here = order[position]
        stop = position
        while stop < order.size and time[order[stop]] == time[here]:
            stop += 1
        same = order[position:stop]
        for row in same[~event[same]].tolist():
            insort(later, risk[row])
        with_event = same[event[same]].tolist()
        for row in with_event:
            weight = 1.0 if weights is None else float(weights[row])
            below, upto = bisect_left(later, risk[row]), bisect_right(later, risk[row])
            concordant += weight * (below + 0.5 * (upto - below))
            comparable += weight * len(later)
        for row in with_event:
            insort(later, risk[row])
        position = stop
    if comparable == 0:
        raise InvalidInputError(
            "no two samples can be compared: an event before the time of another sample is needed."
        )
    return concordant / comparable


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
