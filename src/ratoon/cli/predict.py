"""`ratoon predict` and `ratoon evaluate`: use a model file on other samples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ratoon.cli.estimate import show_scores
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
    task_of,
    with_labels,
)
from ratoon.cli.terminal import count, print_json, print_note, print_table, print_text
from ratoon.datasets import MIN_COVERAGE, Dataset
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.metrics import ClassScores
from ratoon.report.context import NEW, UNKNOWN, ReportContext, with_predictions


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

    The model knows the samples it was trained on.  The score is that of the
    others; a score on training samples does not describe new ones.

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
    is_classifier = hasattr(estimator, "classes_")
    if picture is not None and not is_classifier:
        raise InvalidParameterError(
            "--picture draws a confusion matrix and needs a classifier; this model predicts"
            f" {'risks' if hasattr(estimator, 'event_times_') else 'numbers'}."
        )
    if hasattr(estimator, "event_times_") and not samples.is_survival:
        raise InvalidInputError(
            "this is a survival model, and the times and events of the samples are not known.\n"
            "  Name their columns: --read time=COLUMN --read event=COLUMN"
        )
    with input_errors():
        seen = estimator.was_trained_on(samples)
        context = with_predictions(
            ReportContext(
                estimator, samples, basis=NEW if seen is not None else UNKNOWN, trained_on=seen
            )
        )
    predictions = context.predictions
    if predictions is None or context.scored is None:
        raise InvalidInputError("a model with several targets cannot be scored by this command.")
    if picture is not None:
        from ratoon.report import ConfusionMatrixDisplay

        counts = np.rint(context.scored.confusion()).astype(np.int64)
        display = ConfusionMatrixDisplay(counts, context.scored.classes)
        save_picture(display.plot().figure_, picture, dpi=130)
    result = _result(context)
    if as_json:
        print_json(result)
        return
    _show(context, result)


def _result(context: ReportContext) -> dict[str, Any]:
    """Return what was found as JSON values; scores are of samples the model was not trained on."""
    seen, scores = context.trained_on, context.scores
    assert context.predictions is not None
    assert context.scored is not None
    assert scores is not None
    n = context.predictions.n_samples
    n_seen = None if seen is None else int(seen.sum())
    all_seen = n_seen == n
    on_training = scores if all_seen else context.scores_on_training
    found: dict[str, Any] = {
        "samples": n,
        "training_samples": n_seen,
        "new_samples": None if n_seen is None else n - n_seen,
        "score": None if all_seen else scores.main.value,
        "scores": None if all_seen else scores.to_dict(),
        "training_score": None if on_training is None else on_training.main.value,
    }
    if context.scored.is_of_classes:
        found["classes"] = list(context.scored.classes)
        counts = np.rint(context.scored.confusion()).astype(np.int64)
        found["confusion_rows_predicted"] = counts.tolist()
    return found


def _show(context: ReportContext, result: dict[str, Any]) -> None:
    scores, n, n_seen = context.scores, result["samples"], result["training_samples"]
    assert scores is not None
    kind = scores.main_name
    if n_seen is None:
        show_scores(scores, f"scores on {count(n, 'sample')}")
        print_note(
            "It is not known whether these samples were used for training: the model has no"
            " fingerprints of its training samples."
        )
    elif n_seen == 0:
        show_scores(scores, f"scores on {count(n, 'new sample')}")
    elif n_seen == n:
        print_text(
            f"All {count(n, 'sample')} were used for training. {kind[:1].upper()}{kind[1:]} on"
            f" them: {_main(scores)}; it does not describe new samples."
        )
        print_note(
            "Estimate the score on new samples with `ratoon train --cv 5x3`, or hold out samples"
            " with --test 0.3."
        )
    else:
        assert context.scores_on_training is not None
        show_scores(scores, f"scores on {count(n - n_seen, 'new sample')}")
        print_text(
            f"{n_seen:,} of {n:,} samples were used for training; {kind} on the {n - n_seen:,}"
            f" others is {_main(scores)}, on the training samples"
            f" {_main(context.scores_on_training)} (does not describe new samples)."
        )
    if "classes" in result:
        counts = zip(result["classes"], result["confusion_rows_predicted"], strict=True)
        rows = [[name, *row] for name, row in counts]
        print_table(
            "confusion matrix: rows predicted, columns true", ["", *result["classes"]], rows
        )


def _main(scores: Any) -> str:
    value = scores.main.value
    if value is None:
        return "-"
    return f"{100 * value:.1f} %" if isinstance(scores, ClassScores) else f"{value:.4f}"


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
