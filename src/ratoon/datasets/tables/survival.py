"""Survival targets: from columns with times and events to one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.datasets.tables.labels import is_missing_label
from ratoon.errors import InvalidInputError

SURVIVAL = np.dtype([("event", np.bool_), ("time", np.float64)])
"""One event and one time per sample, as scikit-survival has them."""

OBSERVED = ("1", "1.0", "true", "t", "yes", "y", "event", "dead", "deceased", "death", "died")
"""Texts for an event that was observed, in any case."""

CENSORED = ("0", "0.0", "false", "f", "no", "n", "censored", "alive", "living", "none")
"""Texts for an event that was not observed."""

_MORE_OBSERVED = ("relapse", "relapsed", "recurrence", "recurred", "progression", "progressed")


def survival_from(
    times: Sequence[Any], events: Sequence[Any], source: str, time: str, event: str
) -> NDArray[Any]:
    """Return one event and one time per sample from two columns of numbers or text.

    Labels such as ``1:DECEASED`` of cBioPortal count by the part before the colon.

    Examples
    --------
    >>> survival_from([5, "7.5"], ["dead", "0:LIVING"], "a.csv", "months", "status").tolist()
    [(True, 5.0), (False, 7.5)]
    """
    found = np.empty(len(times), dtype=SURVIVAL)
    known = {**dict.fromkeys((*OBSERVED, *_MORE_OBSERVED), True), **dict.fromkeys(CENSORED, False)}
    for row, (when, what) in enumerate(zip(times, events, strict=True)):
        if is_missing_label(when) or is_missing_label(what):
            column = time if is_missing_label(when) else event
            raise InvalidInputError(
                f"{source}: sample {row + 1} has no value in column {column!r}.\n"
                "  Remove the sample from the file; survival needs a time and an event of each."
            )
        try:
            found["time"][row] = float(when)
        except (TypeError, ValueError):
            raise InvalidInputError(
                f"{source}: column {time!r} has {str(when)[:40]!r} for sample {row + 1}; times must"
                " be numbers."
            ) from None
        text = str(what).strip().lower()
        text = text if text in known else text.partition(":")[0].strip()
        if text not in known:
            raise InvalidInputError(
                f"{source}: column {event!r} has {str(what)[:40]!r} for sample {row + 1}, which is"
                " neither an event nor a censored observation.\n"
                f"  Events are written {', '.join(OBSERVED)}, ...; censored observations"
                f" {', '.join(CENSORED)}."
            )
        found["event"][row] = known[text]
    if not np.isfinite(found["time"]).all() or (found["time"] < 0).any():
        raise InvalidInputError(
            f"{source}: column {time!r} has times that are negative or infinite."
        )
    if not found["event"].any():
        raise InvalidInputError(
            f"{source}: no sample has the event (column {event!r}), so nothing can be learned."
        )
    return found
