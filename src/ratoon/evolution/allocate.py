"""Ways to share new connections out among layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ratoon.topology import IntArray


def shares(total: int, weights: Sequence[float], room: Sequence[int]) -> IntArray:
    """Split ``total`` in proportion to ``weights``, none getting more than it has room for.

    What a full layer cannot take goes to the others, again in proportion.  Rounding favours the
    largest remainders, of equal ones the first.  The sum is ``total``, or all the room there is.

    Examples
    --------
    >>> shares(10, weights=[3.0, 1.0, 1.0], room=[100, 100, 100]).tolist()
    [6, 2, 2]
    >>> shares(10, weights=[3.0, 1.0, 1.0], room=[2, 100, 100]).tolist()
    [2, 4, 4]
    """
    limits = np.asarray(room, dtype=np.int64)
    wanted = np.maximum(np.nan_to_num(np.asarray(weights, dtype=np.float64)), 0.0)
    counts = np.zeros_like(limits)
    missing = min(int(total), int(limits.sum()))
    while missing > 0:
        free = limits - counts
        claims = np.where(free > 0, wanted, 0.0)
        if claims.sum() == 0.0:  # nobody left with a claim: by room
            claims = free.astype(np.float64)
        exact = missing * (claims / claims.sum())
        given = np.minimum(np.floor(exact).astype(np.int64), free)
        if given.sum() == 0:
            # Fewer are left than layers that may take one.
            for index in np.argsort(-exact, kind="stable")[:missing]:
                given[index] = int(exact[index] > 0)
        counts += given
        missing -= int(given.sum())
    return counts


def draw_shares(total: int, room: Sequence[int], rng: np.random.Generator) -> IntArray:
    """Say how many of ``total`` places fall to each layer when all are drawn at once.

    Places are distinct and equally likely over the layers together.  They are drawn one by one
    and again where one was drawn before, so time and memory follow ``total`` and not the room.

    Examples
    --------
    >>> draw_shares(4, [2, 0, 2], np.random.default_rng(0)).tolist()
    [2, 0, 2]
    """
    limits = np.asarray(room, dtype=np.int64)
    ends = np.cumsum(limits)
    n_places = int(limits.sum())
    wanted = min(int(total), n_places)
    left_out = wanted > n_places // 2
    n_drawn = n_places - wanted if left_out else wanted
    drawn = np.empty(0, dtype=np.int64)
    while drawn.size < n_drawn:
        more = rng.integers(n_places, size=n_drawn - drawn.size)
        drawn = np.unique(np.concatenate((drawn, more)))
    layer = np.searchsorted(ends, drawn, side="right")
    counts = np.bincount(layer, minlength=ends.size).astype(np.int64)
    return limits - counts if left_out else counts
