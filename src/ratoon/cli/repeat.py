"""How to repeat a command: its words, and the same in Python."""

from __future__ import annotations

import shlex
import sys
from contextvars import ContextVar
from typing import Any

from ratoon.datasets import Dataset

ARGUMENTS: ContextVar[list[str] | None] = ContextVar("ARGUMENTS", default=None)
"""Arguments of the command that runs, where they are not those of the process."""


def command_line() -> str:
    """Return the command as it was typed."""
    given = ARGUMENTS.get()
    return shlex.join(["ratoon", *(sys.argv[1:] if given is None else given)])


def training_code(
    estimator: Any, reading: str, samples: Dataset, *, test: float, seed: int, cv: str
) -> str:
    """Return Python code that repeats a training and its score.

    Parameters
    ----------
    estimator : estimator
        With the parameters of the training.
    reading : str
        Expression that reads the data.
    samples : Dataset
        The samples, whose labels and groups determine the split.
    test : float
        Fraction of the samples that was held out; 0 for none.
    seed : int
        Seed of the split and of the folds.
    cv : str
        Cross-validation, or ``none``.
    """
    from ratoon.report.sections.repeat import constructor

    made = constructor(estimator)
    used = ["Prepare"] if "prepare=Prepare(" in made else []
    imports = [f"from ratoon import {', '.join([*used, type(estimator).__name__])}"]
    imports.append(f"from ratoon.datasets import {reading.partition('(')[0]}")
    folds = cv not in ("none", "own")
    names = [*(["cross_validate"] if folds else []), *(["split_rows"] if test else [])]
    if names:
        imports.append(f"from ratoon.experiments import {', '.join(names)}")
    lines = [*imports, "", f"data = {reading}"]
    training = "data"
    if test:
        how = "" if samples.groups is None else ", groups=data.groups"
        if samples.class_names is None and not samples.is_survival:
            how += ", stratify=False"
        y = "data.y['event'].astype(int)" if samples.is_survival else "data.y"
        lines.append(f"rows, held_out = split_rows({y}, {test!r}, seed={seed}{how})")
        lines.append("training, test = data.take(rows), data.take(held_out)")
        training = "training"
    lines.append(f"model = {made}")
    if folds:
        lines.append(f"print(cross_validate(model, {training}, cv={cv!r}, seed={seed}))")
    lines.append(f"model.fit({training})")
    if test:
        lines.append("print(model.score(test, test.labels))")
    return "\n".join(lines)


def reading_code(function: str, path: str, arguments: dict[str, Any]) -> str:
    """Return the call that reads a data file.

    Examples
    --------
    >>> reading_code("read", "genes.csv", {"label": "outcome", "missing": None})
    "read('genes.csv', label='outcome')"
    """
    given = "".join(f", {name}={value!r}" for name, value in arguments.items() if value is not None)
    return f"{function}({path!r}{given})"
