"""Reading data files for commands, with what the reader decided told on stderr."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ratoon.cli.options import MISSING, TASKS, explaining_read, reading_options
from ratoon.cli.terminal import say
from ratoon.datasets import Dataset, read, read_groups
from ratoon.datasets.stored import can_stay_on_disk, open_stored
from ratoon.errors import InvalidInputError, InvalidParameterError


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


def features_for(
    estimator: Any,
    data: Dataset,
    path: Path,
    *,
    min_coverage: float,
    id_map: Path | None,
    quiet: bool,
) -> Any:
    """Return the samples with the features the estimator was trained on, in that order.

    Where both know their features by name, the names decide, and what was missing, extra or in
    another order is told.  Elsewhere the number of features must agree.
    """
    from ratoon.estimators.names import align_samples, filling

    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and data.feature_names is not None:
        # Errors name the file as the user did.
        given = replace(data, source=str(path))
        aligned, how = align_samples(estimator, given, id_map=id_map, min_coverage=min_coverage)
        if not (quiet or how.is_exact):
            told = f"{how}; {filling(estimator)}" if how.missing else str(how)
            say(f"{path.name}: {told}.")
        return aligned.X
    if id_map is not None:
        who = "the model" if known is None else str(path)
        raise InvalidInputError(f"--id-map needs names of features, and {who} has none.")
    if data.n_features != estimator.n_features_in_:
        raise InvalidInputError(
            f"{path}: {data.n_features} features; the model was trained on"
            f" {estimator.n_features_in_}."
        )
    return data.X


def topology_from(
    samples: Dataset,
    file: Path | None,
    hidden: tuple[int, ...] | None,
    *,
    within: bool,
    quiet: bool,
) -> list[Any] | None:
    """Return what an estimator takes as ``topology=``, with one hidden neuron per group.

    Where the first hidden layer is wider than there are groups, the rest starts unconnected.
    """
    if file is None:
        if within:
            raise InvalidParameterError("--within needs the groups to keep to: --groups FILE.")
        return None
    if samples.feature_names is None:
        raise InvalidInputError(
            f"--groups {file} names features, and the data have no names for theirs.\n"
            f"  Use a format with names, such as CSV with a header, h5ad or a series matrix."
        )
    groups = read_groups(file, samples.feature_names)
    n_groups = len(groups.names)
    extra = 0 if hidden is None else hidden[0] - n_groups if hidden else -n_groups
    if extra < 0 or (within and extra > 0):
        raise InvalidParameterError(
            f"--groups {file} has {n_groups} groups with members among the features, each a neuron"
            f" of the first hidden layer; --hidden begins with {hidden[0] if hidden else 0}.\n"
            f"  Leave --hidden out, or let it begin with {n_groups}"
            + (
                ": with --within a neuron without a group could have no connection."
                if within
                else " or more: further neurons start unconnected and grow into what is not known."
            )
        )
    if not quiet:
        unknown = f"; {groups.n_unknown:,} members are no features" if groups.n_unknown else ""
        say(f"{file}: {groups!r}{unknown}")
    return groups.within() if within else groups.topology(extra)
