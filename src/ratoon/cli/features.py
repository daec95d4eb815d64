"""The features a model was trained on, found by name in the samples of a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ratoon.cli.output import say
from ratoon.datasets import Dataset
from ratoon.errors import InvalidInputError

CoverageOption = Annotated[
    float,
    typer.Option(
        "--min-coverage",
        min=0.0,
        max=1.0,
        help="Share of the model's features that the file must have; the others get their"
        " training mean.",
    ),
]
IdMapOption = Annotated[
    Path | None,
    typer.Option(
        "--id-map", help="File of two columns: a feature's name in the data, its name in the model."
    ),
]


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
