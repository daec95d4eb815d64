"""History: one record per epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class EpochRecord:
    """Results of one epoch.

    Epochs are numbered from 0, over all cycles of a training.  Times are in seconds.  A rewiring
    that is due after an epoch takes place at the beginning of the next, and is counted there.
    """

    epoch: int
    loss: float
    learning_rate: float
    n_connections: int
    density: float
    rewired: int
    train_seconds: float
    rewire_seconds: float
    evaluate_seconds: float = 0.0
    train_score: float | None = None
    validation_score: float | None = None
    validation_loss: float | None = None


@dataclass
class History:
    """The records of a training, oldest first.

    Examples
    --------
    >>> history = History()
    >>> history.append(EpochRecord(0, 0.7, 0.1, 900, 0.02, 0, 1.0, 0.0))
    >>> len(history), history.column("loss")
    (1, [0.7])
    """

    records: list[EpochRecord] = field(default_factory=list)

    def append(self, record: EpochRecord) -> None:
        """Add the record of an epoch."""
        self.records.append(record)

    def column(self, name: str) -> list[Any]:
        """Return one quantity over all epochs."""
        return [getattr(record, name) for record in self.records]

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per record, for JSON or a data frame."""
        return [asdict(record) for record in self.records]

    @classmethod
    def from_rows(cls, rows: list[dict[str, Any]]) -> History:
        """Return the history of such dictionaries, which must not have unknown keys."""
        names = {item.name for item in fields(EpochRecord)}
        for row in rows:
            if unknown := set(row) - names:
                raise ValueError(f"unknown fields in history: {sorted(unknown)}")
        return cls([EpochRecord(**row) for row in rows])

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[EpochRecord]:
        return iter(self.records)

    def __getitem__(self, index: int) -> EpochRecord:
        return self.records[index]


def duration(seconds: float) -> str:
    """Return a time in a suitable unit, with two significant digits.

    Examples
    --------
    >>> [duration(seconds) for seconds in (0.000_123, 0.056, 2.44, 117, 242, 9_000, 400_000)]
    ['0.12 ms', '56 ms', '2.4 s', '120 s', '4.0 min', '2.5 h', '4.6 days']
    """
    for size, unit in ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"), (1.0, "s")):
        if seconds >= 2.0 * size or (unit == "s" and seconds >= 1.0):
            return f"{_two_digits(seconds / size)} {unit}"
    return f"{_two_digits(seconds * 1e3)} ms"


def _two_digits(value: float) -> str:
    """Round to two significant digits, and write them without an exponent."""
    if value <= 0.0:
        return "0"
    if not math.isfinite(value):  # of a damaged file
        return str(value)
    decimals = 1 - math.floor(math.log10(value))
    return f"{round(value, decimals):.{max(decimals, 0)}f}"
