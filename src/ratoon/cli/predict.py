"""`ratoon predict` and `ratoon evaluate`: what a model says about new samples."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ratoon.cli.output import print_json, print_table
from ratoon.cli.samples import (
    DataFile,
    JsonOption,
    LabelOption,
    MissingOption,
    QuietOption,
    labels_of,
    read_samples,
)
from ratoon.datasets import Dataset

ModelFile = Annotated[
    Path, typer.Argument(help="Model file written by train.", exists=True, dir_okay=False)
]


def predict(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file; without it, to the screen.")
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", "-p", help="Add a column per class.")
    ] = False,
    label: LabelOption = None,
    missing: MissingOption = "error",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict the samples of a file: one line each, as CSV.

    For example:

      ratoon predict lung.ratoon new.csv > labels.csv

      ratoon predict lung.ratoon new.csv --probabilities -o labels.csv
    """
    estimator, samples = _opened(model, data, label, missing, quiet=quiet)
    predicted = estimator.predict(samples.X)
    names = samples.sample_names or tuple(str(i + 1) for i in range(samples.n_samples))
    header = ["sample", *_target_names(predicted)]
    columns = [list(names), *np.atleast_2d(predicted.T).tolist()]
    if probabilities and hasattr(estimator, "predict_proba"):
        header += [f"p({name})" for name in estimator.classes_]
        columns += np.asarray(estimator.predict_proba(samples.X)).T.tolist()
    rows = list(zip(*columns, strict=True))
    if as_json:
        print_json([dict(zip(header, row, strict=True)) for row in rows])
        return
    if output is None:
        _write_csv(sys.stdout, header, rows)
        return
    with output.open("w", newline="", encoding="utf-8") as file:
        _write_csv(file, header, rows)


def evaluate(
    model: ModelFile,
    data: DataFile,
    label: LabelOption = None,
    missing: MissingOption = "error",
    picture: Annotated[
        Path | None, typer.Option(help="Draw the confusion matrix into this file.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a model on samples whose labels are known.

    For example:

      ratoon evaluate lung.ratoon test.csv --label outcome --picture confusion.png
    """
    estimator, samples = _opened(model, data, label, missing, quiet=quiet)
    truth = labels_of(samples, data).labels
    score = float(estimator.score(samples.X, truth))
    result: dict[str, Any] = {"samples": samples.n_samples, "score": score}
    if hasattr(estimator, "classes_"):
        from ratoon.report import ConfusionMatrixDisplay

        display = ConfusionMatrixDisplay.from_predictions(
            np.asarray(truth, dtype=str), estimator.predict(samples.X).astype(str)
        )
        result["classes"] = list(display.class_names)
        result["confusion_rows_predicted"] = display.matrix.tolist()
        if picture is not None:
            display.plot().figure_.savefig(picture, dpi=130)
    if as_json:
        print_json(result)
        return
    name = "accuracy" if "classes" in result else "R squared"
    print_table("", ["samples", name], [[samples.n_samples, f"{score:.4f}"]])
    if "classes" in result:
        rows = [
            [name, *counts]
            for name, counts in zip(
                result["classes"], result["confusion_rows_predicted"], strict=True
            )
        ]
        print_table("confusion: rows predicted, columns true", ["", *result["classes"]], rows)


def _opened(
    model: Path, data: Path, label: str | None, missing: str, *, quiet: bool
) -> tuple[Any, Dataset]:
    import ratoon

    estimator = ratoon.load(model)
    return estimator, read_samples(data, label, missing, quiet=quiet)


def _target_names(predicted: Any) -> list[str]:
    if predicted.ndim == 1:
        return ["prediction"]
    return [f"prediction_{i + 1}" for i in range(predicted.shape[1])]


def _write_csv(file: Any, header: list[str], rows: list[tuple[Any, ...]]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
