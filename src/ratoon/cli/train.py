"""`ratoon train`: from a data file to a model file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ratoon.cli.config import use_config
from ratoon.cli.output import print_json, print_table, say
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
from ratoon.errors import InvalidParameterError


def train(
    data: DataFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Model file to write.")
    ] = None,
    label: LabelOption = None,
    task: Annotated[
        str, typer.Option(help="classify, regress, or auto: by what the labels are.")
    ] = "auto",
    preset: Annotated[
        str | None, typer.Option(help="paper, fast or large; without it, the default recipe.")
    ] = None,
    hidden: Annotated[
        str | None, typer.Option(help="Widths of hidden layers, as in 3000,3000; 0 for none.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="About epsilon * (inputs + outputs) connections a layer.")
    ] = None,
    density: Annotated[
        float | None, typer.Option(help="Instead: fraction of possible connections, in (0, 1].")
    ] = None,
    evolution: Annotated[
        str | None, typer.Option(help="set, static, rigl, ...: how the topology evolves.")
    ] = None,
    zeta: Annotated[
        float | None, typer.Option(help="Fraction of connections replaced at a rewiring.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the data.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Samples per step.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    momentum: Annotated[float | None, typer.Option(help="Momentum of SGD.")] = None,
    dropout: Annotated[float | None, typer.Option(help="Dropout of hidden layers.")] = None,
    class_weight: Annotated[
        str | None, typer.Option(help="balanced: rare classes count more.")
    ] = None,
    early_stopping: Annotated[
        bool, typer.Option("--early-stopping", help="Hold rows back, stop when they say so.")
    ] = False,
    test: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Hold this fraction back and score on it.")
    ] = 0.0,
    missing: MissingOption = "error",
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder for checkpoints, to go on after an interruption.")
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Epochs between checkpoints.")] = 10,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the newest checkpoint.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same model.")] = 0,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; does not change results.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what it would take.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with any of these options under [train].",
            callback=use_config,
            is_eager=True,
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a network on a data file and write a model file.

    For example:

      ratoon train lung.mat -o lung.ratoon

      ratoon train genes.csv --label outcome --test 0.3 --class-weight balanced

      ratoon train big.npz --hidden 30000,30000 --epsilon 10 --preset paper --dry-run

      ratoon train genes.csv --config experiment.toml --checkpoint run1 --resume
    """
    del config
    quiet = quiet or as_json
    samples = labels_of(read_samples(data, label, missing, quiet=quiet), data)
    given = {
        "preset": preset,
        "hidden_layer_sizes": _widths(hidden),
        "epsilon": epsilon,
        "density": density,
        "evolution": evolution,
        "zeta": zeta,
        "max_iter": epochs,
        "batch_size": batch_size,
        "learning_rate_init": learning_rate,
        "momentum": momentum,
        "dropout": dropout,
        "class_weight": class_weight,
        "early_stopping": early_stopping or None,
        "random_state": seed,
        "n_jobs": threads,
    }
    estimator = make_estimator(samples, task, given)
    if dry_run:
        _show_plan(estimator, samples, as_json=as_json)
        return
    train_rows, test_rows = _held_out(samples, test, seed)
    callbacks: list[Any] = []
    if not quiet:
        from ratoon.training.progress import ProgressBar

        callbacks.append(ProgressBar("training", file=sys.stderr))
    if checkpoint is not None:
        from ratoon.storage import Checkpoint

        callbacks.append(Checkpoint(checkpoint, every=every, resume=resume))
    fit(estimator, samples.take(train_rows), callbacks)
    if output is not None:
        estimator.save(output)
    _report(estimator, samples, train_rows, test_rows, output, as_json=as_json)


def make_estimator(samples: Dataset, task: str, given: dict[str, Any]) -> Any:
    """Return the unfitted estimator for these labels with the options that were given."""
    from ratoon import SparseMLPClassifier, SparseMLPRegressor

    if task not in ("auto", "classify", "regress"):
        raise InvalidParameterError(f"--task must be auto, classify or regress, got {task!r}.")
    kind = task if task != "auto" else "classify" if samples.class_names else "regress"
    if kind == "regress" and given.pop("class_weight", None):
        raise InvalidParameterError("--class-weight is for classification.")
    options = {name: value for name, value in given.items() if value is not None}
    return (SparseMLPClassifier if kind == "classify" else SparseMLPRegressor)(**options)


def fit(estimator: Any, samples: Dataset, callbacks: list[Any]) -> None:
    """Fit with callbacks that are not kept as parameters."""
    estimator.set_params(callbacks=callbacks or None)
    try:
        estimator.fit(samples.X, samples.labels)
    finally:
        estimator.set_params(callbacks=None)
    if samples.feature_names is not None:
        estimator.feature_names_in_ = np.array(samples.feature_names, dtype=object)


def _widths(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        widths = tuple(int(part) for part in str(text).split(",") if part.strip())
    except ValueError:
        raise InvalidParameterError(
            f"--hidden must be whole numbers with commas between, as in 3000,3000; got {text!r}."
        ) from None
    return () if widths == (0,) else widths


def _held_out(samples: Dataset, fraction: float, seed: int) -> tuple[Any, Any]:
    rows = np.arange(samples.n_samples)
    if fraction == 0.0:
        return rows, rows[:0]
    if samples.class_names is None:
        order = np.random.default_rng(seed).permutation(rows)
        n_test = max(1, round(fraction * rows.size))
        return np.sort(order[n_test:]), np.sort(order[:n_test])
    from ratoon.experiments import split_rows

    assert samples.y is not None
    return split_rows(samples.y, fraction, seed)


def _show_plan(estimator: Any, samples: Dataset, *, as_json: bool) -> None:
    from ratoon.cli.plan import show_plan

    n_outputs = max(samples.n_classes, 1)
    planned = estimator.plan(samples.n_features, n_samples=samples.n_samples, n_outputs=n_outputs)
    show_plan(planned, as_json=as_json)


def _report(
    estimator: Any,
    samples: Dataset,
    train_rows: Any,
    test_rows: Any,
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    network = estimator.network_
    held = samples.take(test_rows)
    score = float(estimator.score(held.X, held.labels)) if len(test_rows) else None
    layers = [
        {"inputs": s.n_in, "outputs": s.n_out, "connections": s.n_connections, "density": s.density}
        for s in network.summary()
    ]
    if as_json:
        print_json(
            {
                "model": None if output is None else str(output),
                "samples": len(train_rows),
                "epochs": estimator.n_iter_,
                "loss": estimator.loss_,
                "test_score": score,
                "layers": layers,
            }
        )
        return
    print_table(
        "network",
        ["inputs", "outputs", "connections", "density"],
        [
            [
                f"{x['inputs']:,}",
                f"{x['outputs']:,}",
                f"{x['connections']:,}",
                f"{x['density']:.3g}",
            ]
            for x in layers
        ],
    )
    if score is not None:
        say(f"score on {len(test_rows)} held-out samples: {score:.4f}")
    if output is not None:
        say(f"model written to {output}")
    else:
        say("no model was written; name a file with -o MODEL.")
