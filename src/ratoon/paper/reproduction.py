"""A table of the paper, computed again: rows, notes, and what there is to draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from ratoon.paper.runs import VALIDATION, Effort
from ratoon.paper.sets import PAPER_SETS, STAND_IN, PaperSet

OPTIMISTIC = (
    '"best test epoch" is the paper\'s protocol; it chooses the epoch on the test rows and is'
    " optimistic. The last epoch is what a user gets; the validation-chosen epoch is found on a"
    f" fifth ({VALIDATION:.0%}) of the training rows, in a training of its own."
)


@dataclass
class Reproduction:
    """A table of the paper, computed again; `kinds` says what the data of each set are."""

    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    curves: dict[str, dict[str, list[list[float]]]] = field(default_factory=dict)
    confusion: dict[str, tuple[NDArray[Any], NDArray[Any], tuple[str, ...]]] = field(
        default_factory=dict
    )
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)

    def to_markdown(self) -> str:
        """Return the table with its notes, as Markdown."""
        lines = [f"## {self.title}", "", f"| {' | '.join(self.columns)} |"]
        lines.append("|" + "---|" * len(self.columns))
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines).rstrip() + "\n"


def what_it_is(found: Reproduction, effort: Effort, *, paper_epochs: int = 500) -> Reproduction:
    """Add what the figures were computed on."""
    if STAND_IN in found.kinds.values():
        found.notes.insert(
            0,
            f'"{STAND_IN}" is data made by `ratoon data make` in the shape of the real set:'
            " its accuracies cannot be compared with the paper's. Put the real file into the"
            " folder that `ratoon data fetch` names, or give it with --data.",
        )
    found.notes += effort.remarks
    effort.remarks.clear()
    epochs = paper_epochs if effort.epochs is None else effort.epochs
    found.notes.append(
        f"{effort.trials} trial(s) of {epochs} epochs; the paper: 5 of {paper_epochs}."
    )
    if effort.scale != 1.0:
        found.notes.append(f"widths and features scaled by {effort.scale:g}; the paper: 1.")
    return found


def paper_sets(effort: Effort) -> list[PaperSet]:
    """Return the sets that were asked for."""
    return [PAPER_SETS[name] for name in effort.sets]
