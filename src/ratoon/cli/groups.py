"""Prior knowledge on the command line: a file of groups becomes the first layer of a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ratoon.cli.output import say
from ratoon.datasets import Dataset, read_groups
from ratoon.errors import InvalidInputError, InvalidParameterError


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
