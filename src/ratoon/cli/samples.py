"""Reading data files for commands, with what the reader decided told on stderr."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ratoon.cli.output import say
from ratoon.datasets import Dataset, read
from ratoon.errors import InvalidInputError, InvalidParameterError

MISSING = ("error", "mean", "median", "zero", "drop", "drop_samples")

DataFile = Annotated[
    Path, typer.Argument(help="CSV, TSV, .npz, .mat, libsvm, GEO, h5ad, parquet, 10x ...")
]
LabelOption = Annotated[
    str | None, typer.Option("--label", help="Name of the column or variable with the labels.")
]
MissingOption = Annotated[
    str, typer.Option("--missing", help="Missing values: error, mean, median, zero or drop.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no remarks.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print results as JSON.")]


def read_samples(path: Path, label: str | None, missing: str, *, quiet: bool) -> Dataset:
    """Read a data file and tell what was decided on the way."""
    if missing not in MISSING:
        raise InvalidParameterError(f"--missing must be one of {MISSING}, got {missing!r}.")
    data = read(path, label=label, missing=missing)  # type: ignore[arg-type]  # checked above
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
