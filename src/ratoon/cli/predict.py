"""`ratoon predict` and `ratoon evaluate`: use a model file on other samples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ratoon.cli.options import (
    CoverageOption,
    DataFile,
    FormulaOption,
    IdMapOption,
    JsonOption,
    LabelOption,
    MissingOption,
    ModelFile,
    QuietOption,
    ReadingOption,
    input_errors,
    times_from,
)
from ratoon.cli.output import check_file, check_picture, print_csv, save_picture, write_csv
from ratoon.cli.samples import (
    load_model,
    matched,
    read_samples,
    score_name,
    task_of,
    with_labels,
)
from ratoon.cli.terminal import count, print_json, print_note, print_table
from ratoon.datasets import MIN_COVERAGE, Dataset
from ratoon.errors import InvalidParameterError


def predict(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file to write instead of stdout.")
    ] = None,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities", "-p", help="Add a column with the probability of each class."
        ),
    ] = False,
    survival_at: Annotated[
        str | None,
        typer.Option(
            "--survival-at",
            help="For a survival model: add the probability to have no event until these times,"
            " such as 12,24.",
        ),
    ] = None,
    label: LabelOption = None,
    missing: MissingOption = "error",
    reading: ReadingOption = None,
    min_coverage: CoverageOption = MIN_COVERAGE,
    id_map: IdMapOption = None,
    escape_formulas: FormulaOption = True,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict the samples of a file, one line per sample, as CSV.

    If the file and the model have feature names, features are matched by name:
    columns may be in any order, additional columns are ignored, and a few
    features may be missing.  Labels in the file are not used.

    For example:

      ratoon predict lung.ratoon new.csv > labels.csv

      ratoon predict lung.ratoon new.csv --probabilities -o labels.csv

      ratoon predict survival.ratoon new.csv --survival-at 12,24,60

      ratoon predict lung.ratoon other.csv --id-map probes.csv --min-coverage 0.8
    """
    if output is not None:
        check_file(output)
    estimator, samples = _opened(model, data, label, missing, reading, quiet=quiet or as_json)
    if probabilities and not hasattr(estimator, "classes_"):
        raise InvalidParameterError(
            "--probabilities needs a classifier; this model is a regressor."
        )
    times = times_from(survival_at)
    if survival_at is not None and not hasattr(estimator, "event_times_"):
        raise InvalidParameterError("--survival-at needs a survival model; this is another model.")
    samples = matched(
        estimator,
        samples,
        data,
        min_coverage=min_coverage,
        id_map=id_map,
        quiet=quiet or as_json,
    )
    with input_errors():
        predicted = estimator.predict(samples)
        names = samples.sample_names or tuple(str(i + 1) for i in range(samples.n_samples))
        is_survival = hasattr(estimator, "event_times_")
        header = ["sample", *(["risk"] if is_survival else _target_names(predicted))]
        columns = [list(names), *np.atleast_2d(predicted.T).tolist()]
        if probabilities:
            header += [f"p({name})" for name in estimator.classes_]
            columns += np.asarray(estimator.predict_proba(samples)).T.tolist()
        if survival_at is not None:
            functions = estimator.predict_survival_function(samples)
            for moment in times:
                header.append(f"S({moment:g})")
                columns.append([function(moment) for function in functions])
    rows = list(zip(*columns, strict=True))
    if as_json:
        print_json([dict(zip(header, row, strict=True)) for row in rows])
        return
    if output is None:
        print_csv(header, rows, escape_formulas=escape_formulas)
        return
    write_csv(output, header, rows, escape_formulas=escape_formulas)
    if not quiet:
        print_note(f"{count(len(rows), 'prediction')} written to {output}.")


def evaluate(
    model: ModelFile,
    data: DataFile,
    label: LabelOption = None,
    missing: MissingOption = "error",
    reading: ReadingOption = None,
    min_coverage: CoverageOption = MIN_COVERAGE,
    id_map: IdMapOption = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the confusion matrix to this file.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a model on samples with known labels.

    For example:

      ratoon evaluate lung.ratoon test.csv --label outcome --picture confusion.png
    """
    if picture is not None:
        check_picture(picture)
    estimator, samples = _opened(
        model, data, label, missing, reading, quiet=quiet or as_json, needs_labels=True
    )
    samples = matched(
        estimator,
        with_labels(samples, data),
        data,
        min_coverage=min_coverage,
        id_map=id_map,
        quiet=quiet or as_json,
    )
    if not hasattr(estimator, "classes_"):
        if picture is not None:
            raise InvalidParameterError("--picture needs a classifier; this model is a regressor.")
        with input_errors():
            score = float(estimator.score(samples, samples.labels))
        found: dict[str, Any] = {"samples": samples.n_samples, "score": score}
        _show(found, name=score_name(estimator), as_json=as_json)
        return
    from ratoon.report import ConfusionMatrixDisplay

    with input_errors():
        predicted = estimator.predict(samples)
    # Labels read from a file are text; those of a model trained in Python may be numbers.
    display = ConfusionMatrixDisplay.from_predictions(
        np.asarray(samples.labels, dtype=str), predicted.astype(str)
    )
    if picture is not None:
        save_picture(display.plot().figure_, picture, dpi=130)
    result = {
        "samples": samples.n_samples,
        "score": display.accuracy,
        "classes": list(display.class_names),
        "confusion_rows_predicted": display.matrix.tolist(),
    }
    _show(result, as_json=as_json)


def _show(result: dict[str, Any], *, as_json: bool, name: str = "accuracy") -> None:
    if as_json:
        print_json(result)
        return
    print_table("", ["samples", name], [[result["samples"], f"{result['score']:.4f}"]])
    if "classes" in result:
        counts = zip(result["classes"], result["confusion_rows_predicted"], strict=True)
        rows = [[name, *row] for name, row in counts]
        print_table(
            "confusion matrix: rows predicted, columns true", ["", *result["classes"]], rows
        )


def _opened(
    model: Path,
    data: Path,
    label: str | None,
    missing: str,
    reading: list[str] | None,
    *,
    quiet: bool,
    needs_labels: bool = False,
) -> tuple[Any, Dataset]:
    estimator = load_model(model)
    task = task_of(estimator) if needs_labels else "auto"  # labels are not used
    samples = read_samples(
        data,
        label,
        missing,
        quiet=quiet,
        task=task,
        reading=reading,
        model=estimator,
        needs_labels=needs_labels,
    )
    return estimator, samples


def _target_names(predicted: Any) -> list[str]:
    if predicted.ndim == 1:
        return ["prediction"]
    return [f"prediction_{i + 1}" for i in range(predicted.shape[1])]
