"""`reproduce`: compute a table or figure of the paper, next to the values in the paper."""

from __future__ import annotations

from collections.abc import Callable

from ratoon.errors import InvalidParameterError
from ratoon.paper.reproduction import Reproduction
from ratoon.paper.runs import Effort
from ratoon.paper.sets import PAPER_SETS
from ratoon.paper.tables_accuracy import (
    accuracy,
    confusion,
    curves,
    dropout,
    layers,
    no_hidden,
)
from ratoon.paper.tables_cost import connections, extreme, rewiring, time_per_epoch

TABLES: dict[str, Callable[[Effort], Reproduction]] = {
    "accuracy": accuracy,
    "curves": curves,
    "confusion": confusion,
    "connections": connections,
    "time": time_per_epoch,
    "extreme": extreme,
    "layers": layers,
    "dropout": dropout,
    "no-hidden": no_hidden,
    "rewiring": rewiring,
}
"""The functions that compute a table or figure, by name."""


def reproduce(table: str, effort: Effort) -> Reproduction:
    """Compute a table or figure of the paper.

    Parameters
    ----------
    table : str
        One of `TABLES`.
    effort : Effort
        Number of trials and epochs, data sets, seed.

    Examples
    --------
    >>> found = reproduce("connections", Effort(sets=("CLL-SUB-111",)))
    >>> found.rows[0][:2]
    ['CLL-SUB-111', '409,033']
    """
    if table not in TABLES:
        raise InvalidParameterError(f"there is no table {table!r}; there are {', '.join(TABLES)}.")
    if unknown := set(effort.sets) - set(PAPER_SETS):
        raise InvalidParameterError(
            f"there is no data set {sorted(unknown)[0]!r}; the paper has {', '.join(PAPER_SETS)}."
        )
    return TABLES[table](effort)
