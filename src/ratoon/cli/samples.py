"""Reading data files for commands, with what the reader decided told on stderr."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ratoon.cli.output import say
from ratoon.cli.reading import explaining_read, reading_options
from ratoon.datasets import Dataset, can_stay_on_disk, open_stored, read
from ratoon.errors import InvalidInputError, InvalidParameterError

MISSING = ("error", "mean", "median", "zero", "drop", "drop_samples")
TASKS = {"auto": "auto", "classify": "classification", "regress": "regression"}

DataFile = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, .npz, .mat, libsvm, GEO, .h5ad, .parquet, 10x; .npy, .h5 stay on disk"
    ),
]
LabelOption = Annotated[
    str | None, typer.Option("--label", help="Name of the column or variable with the labels.")
]
MissingOption = Annotated[
    str,
    typer.Option(
        "--missing", help="Missing values: error, mean, median, zero, drop or drop_samples."
    ),
]
ReadingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="KEY=VALUE",
        help="How to read the file, as in sample_sheet=sheet.csv or duplicates=keep; may be"
        " repeated.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no remarks.")]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs", help="Fits at the same time, -1 for one per core; results do not depend on it."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print results as JSON.")]


def read_samples(
    path: Path,
    label: str | None,
    missing: str,
    *,
    quiet: bool,
    task: str = "auto",
    reading: list[str] | None = None,
) -> Dataset:
    """Read a data file and tell what was decided on the way."""
    if missing not in MISSING:
        raise InvalidParameterError(
            f"--missing must be one of {', '.join(MISSING)}; got {missing!r}."
        )
    if task not in TASKS:
        raise InvalidParameterError(f"--task must be one of {', '.join(TASKS)}; got {task!r}.")
    if can_stay_on_disk(path):
        return _left_on_disk(path, label, missing, quiet=quiet, task=task, reading=reading)
    with explaining_read():
        data = read(
            path,
            label=label,
            missing=missing,  # type: ignore[arg-type]
            task=TASKS[task],  # type: ignore[arg-type]
            **reading_options(reading),
        )
    if not quiet:
        for note in data.notes:
            say(f"{path.name}: {note}")
    return data


def _left_on_disk(
    path: Path,
    label: str | None,
    missing: str,
    *,
    quiet: bool,
    task: str,
    reading: list[str] | None,
) -> Dataset:
    if missing != "error":
        raise InvalidParameterError(
            f"--missing {missing} needs all samples at once, and those of {path.name} stay on"
            f" disk.\n  Fill what is missing in the file itself."
        )
    options = reading_options(reading)
    matrix = options.pop("matrix", None)
    if options:
        raise InvalidParameterError(
            f"--read {next(iter(options))}=... is not for {path.name}, whose samples stay on disk."
        )
    data = open_stored(path, label=label, matrix=matrix, task=TASKS[task])  # type: ignore[arg-type]
    if not quiet:
        for note in data.notes:
            say(f"{path.name}: {note}")
    return data


def labels_of(data: Dataset, path: Path) -> Dataset:
    """Return the data if it has labels, or say how to name them."""
    if data.y is None:
        raise InvalidInputError(
            f"{path}: no labels were found.\n"
            f"  Name their column or variable with --label NAME; `ratoon data show {path.name}`"
            f" lists what there is."
        )
    return data


@contextmanager
def without_names() -> Iterator[None]:
    """Let an estimator that knows names take an array without: they have been compared here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield


def widths_from(text: str | None) -> tuple[int, ...] | None:
    """Return hidden widths from text such as ``3000,3000``; ``0`` is no hidden layer.

    Examples
    --------
    >>> widths_from("3000,1000"), widths_from("0"), widths_from(None)
    ((3000, 1000), (), None)
    """
    if text is None:
        return None
    try:
        widths = tuple(int(part) for part in str(text).split(","))
    except ValueError:
        widths = (-1,)
    if widths != (0,) and min(widths) < 1:
        raise InvalidParameterError(
            f"--hidden must be whole numbers with commas between, as in 3000,3000, or 0 for no"
            f" hidden layer; got {text!r}."
        )
    return () if widths == (0,) else widths


def shares_from(text: str | None) -> list[float] | None:
    """Return numbers from text such as ``0.9,0.1``.

    Examples
    --------
    >>> shares_from("0.9,0.1")
    [0.9, 0.1]
    """
    if text is None:
        return None
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        shares = []
    if not shares or not np.isfinite(shares).all() or min(shares) <= 0:
        raise InvalidParameterError(
            f"--shares must be positive numbers with commas between, as in 0.9,0.1; got {text!r}."
        )
    return shares
