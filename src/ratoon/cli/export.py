"""`ratoon export` and `ratoon slim`: models for other programs, and smaller models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ratoon.cli.options import (
    DataFile,
    JsonOption,
    LabelOption,
    MissingOption,
    ModelFile,
    QuietOption,
    ReadingOption,
    input_errors,
)
from ratoon.cli.output import check_file
from ratoon.cli.samples import (
    load_model,
    matched,
    read_samples,
    score_name,
    task_of,
    with_labels,
)
from ratoon.cli.terminal import count, megabytes, print_json, print_note, print_table
from ratoon.datasets import MIN_COVERAGE
from ratoon.errors import InvalidParameterError


def export(
    model: ModelFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="ONNX file to write.")],
    weights: Annotated[
        str | None,
        typer.Option(help="Store weights in fewer bits: bfloat16 or int8."),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Write a model as an ONNX file, which stays sparse.

    For example:

      ratoon export lung.ratoon -o lung.onnx

      ratoon export lung.ratoon -o lung.onnx --weights int8
    """
    from ratoon.export import to_onnx

    check_file(output)
    estimator = load_model(model)
    try:
        to_onnx(estimator, output, weights=weights)
    except ImportError as error:
        raise InvalidParameterError(str(error)) from None
    except InvalidParameterError:
        raise InvalidParameterError(f"--weights must be bfloat16 or int8, got {weights}.") from None
    if not quiet:
        before, after = model.stat().st_size, output.stat().st_size
        print_note(f"{output}: {megabytes(after)}; the model file has {megabytes(before)}.")


def slim(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Model file to write.")
    ] = None,
    prune: Annotated[
        str,
        typer.Option(
            help="Fractions of the connections to remove. With -o the first one is written."
        ),
    ] = "0,0.25,0.5,0.75",
    weights: Annotated[
        str | None, typer.Option(help="bfloat16: keep the weights in 16 bits.")
    ] = None,
    label: LabelOption = None,
    missing: MissingOption = "error",
    reading: ReadingOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Remove the weakest connections of a model, and show score and size side by side.

    Samples that were used in training give scores that are too high.

    For example:

      ratoon slim lung.ratoon validation.csv

      ratoon slim lung.ratoon validation.csv --prune 0.5 --weights bfloat16 -o small.ratoon
    """
    from ratoon.export import compare_slim
    from ratoon.export import slim as make_slim

    fractions = _fractions(prune)
    if weights not in (None, "bfloat16"):
        raise InvalidParameterError(f"--weights must be bfloat16, got {weights}.")
    if output is not None:
        check_file(output)
    estimator = load_model(model)
    quiet = quiet or as_json
    samples = read_samples(
        data,
        label,
        missing,
        quiet=quiet,
        task=task_of(estimator),
        reading=reading,
        model=estimator,
        needs_labels=True,
    )
    samples = matched(
        estimator,
        with_labels(samples, data),
        data,
        min_coverage=MIN_COVERAGE,
        id_map=None,
        quiet=quiet,
    )
    with input_errors():
        rows = compare_slim(estimator, samples, samples.labels, prune=fractions, weights=(weights,))
        if output is not None:
            make_slim(estimator, prune=fractions[0], weights=weights).save(output)
    _show(rows, estimator, samples.n_samples, as_json=as_json)
    if output is not None and not quiet:
        print_note(f"The model with {fractions[0]:g} of its connections removed is in {output}.")


def _show(rows: list[Any], estimator: Any, n_samples: int, *, as_json: bool) -> None:
    if as_json:
        print_json([vars(row) for row in rows])
        return
    score = score_name(estimator)
    print_table(
        f"copies of the model, scored on {count(n_samples, 'sample')}",
        ["removed", "weights", "connections", "file", score, "as the model"],
        [
            [
                f"{row.prune:g}",
                row.weights or str(estimator.network_.dtype),
                f"{row.n_connections:,}",
                megabytes(row.file_bytes),
                f"{row.score:.4f}",
                f"{row.agreement:.4f}",
            ]
            for row in rows
        ],
    )


def _fractions(text: str) -> list[float]:
    try:
        fractions = [float(part) for part in text.split(",")]
    except ValueError:
        fractions = []
    if not fractions or not all(0.0 <= fraction < 1.0 for fraction in fractions):
        raise InvalidParameterError(
            f"--prune must be fractions in [0, 1) separated by commas, such as 0.5,0.75; got"
            f" {text!r}."
        )
    return fractions
