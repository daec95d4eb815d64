"""`ratoon predict` and `ratoon evaluate`: use a model file on other samples."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ratoon.cli.options import (
    CoverageOption,
    DataFile,
    IdMapOption,
    JsonOption,
    LabelOption,
    MissingOption,
    QuietOption,
    ReadingOption,
)
from ratoon.cli.samples import features_for, labels_of, read_samples, without_names
from ratoon.cli.terminal import blaming_the_data, print_json, print_table, say
from ratoon.datasets import Dataset
from ratoon.datasets.align import MIN_COVERAGE
from ratoon.errors import InvalidParameterError

ModelFile = Annotated[Path, typer.Argument(help="Model file written by train.")]


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
    reading: ReadingOption = None,
    min_coverage: CoverageOption = MIN_COVERAGE,
    id_map: IdMapOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict the samples of a file: one line each, as CSV.

    Features are found by name where the file and the model have names:
    columns may stand in any order, others are left out, and a few may be
    missing, which is told.  Labels, if there are any, are not used.

    For example:

      ratoon predict lung.ratoon new.csv > labels.csv

      ratoon predict lung.ratoon new.csv --probabilities -o labels.csv

      ratoon predict lung.ratoon other.csv --id-map probes.csv --min-coverage 0.8
    """
    estimator, samples = _opened(model, data, label, missing, reading, quiet=quiet or as_json)
    if probabilities and not hasattr(estimator, "classes_"):
        raise InvalidParameterError("--probabilities is for classifiers; this model is none.")
    x = features_for(
        estimator,
        samples,
        data,
        min_coverage=min_coverage,
        id_map=id_map,
        quiet=quiet or as_json,
    )
    with blaming_the_data(), without_names():
        predicted = estimator.predict(x)
        names = samples.sample_names or tuple(str(i + 1) for i in range(samples.n_samples))
        header = ["sample", *_target_names(predicted)]
        columns = [list(names), *np.atleast_2d(predicted.T).tolist()]
        if probabilities:
            header += [f"p({name})" for name in estimator.classes_]
            columns += np.asarray(estimator.predict_proba(x)).T.tolist()
    rows = list(zip(*columns, strict=True))
    if as_json:
        print_json([dict(zip(header, row, strict=True)) for row in rows])
        return
    if output is None:
        _write_csv(sys.stdout, header, rows)
        return
    with output.open("w", newline="", encoding="utf-8") as file:
        _write_csv(file, header, rows)
    if not quiet:
        say(f"{len(rows)} predictions are in {output}.")


def evaluate(
    model: ModelFile,
    data: DataFile,
    label: LabelOption = None,
    missing: MissingOption = "error",
    reading: ReadingOption = None,
    min_coverage: CoverageOption = MIN_COVERAGE,
    id_map: IdMapOption = None,
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
    estimator, samples = _opened(model, data, label, missing, reading, quiet=quiet or as_json)
    truth = labels_of(samples, data).labels
    x = features_for(
        estimator,
        samples,
        data,
        min_coverage=min_coverage,
        id_map=id_map,
        quiet=quiet or as_json,
    )
    if not hasattr(estimator, "classes_"):
        if picture is not None:
            raise InvalidParameterError("--picture is for classifiers; this model is none.")
        with blaming_the_data(), without_names():
            score = float(estimator.score(x, truth))
        _show({"samples": samples.n_samples, "score": score}, as_json=as_json)
        return
    from ratoon.report import ConfusionMatrixDisplay

    with blaming_the_data(), without_names():
        predicted = estimator.predict(x)
    # A model fitted on numbers meets labels read as text; as text they are the same.
    display = ConfusionMatrixDisplay.from_predictions(
        np.asarray(truth, dtype=str), predicted.astype(str)
    )
    if picture is not None:
        display.plot().figure_.savefig(picture, dpi=130)
    result = {
        "samples": samples.n_samples,
        "score": display.accuracy,
        "classes": list(display.class_names),
        "confusion_rows_predicted": display.matrix.tolist(),
    }
    _show(result, as_json=as_json)


def _show(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    name = "accuracy" if "classes" in result else "R squared"
    print_table("", ["samples", name], [[result["samples"], f"{result['score']:.4f}"]])
    if "classes" in result:
        counts = zip(result["classes"], result["confusion_rows_predicted"], strict=True)
        rows = [[name, *row] for name, row in counts]
        print_table("confusion: rows predicted, columns true", ["", *result["classes"]], rows)


def _opened(
    model: Path,
    data: Path,
    label: str | None,
    missing: str,
    reading: list[str] | None,
    *,
    quiet: bool,
) -> tuple[Any, Dataset]:
    import ratoon

    estimator = ratoon.load(model)
    task = "classify" if hasattr(estimator, "classes_") else "regress"
    return estimator, read_samples(data, label, missing, quiet=quiet, task=task, reading=reading)


def _target_names(predicted: Any) -> list[str]:
    if predicted.ndim == 1:
        return ["prediction"]
    return [f"prediction_{i + 1}" for i in range(predicted.shape[1])]


def _write_csv(file: Any, header: list[str], rows: list[tuple[Any, ...]]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
