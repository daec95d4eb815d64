"""`ratoon train`: from a data file to a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ratoon.cli.config import use_config
from ratoon.cli.groups import topology_from
from ratoon.cli.guard import blaming_the_data
from ratoon.cli.output import density_text, print_json, print_table, say
from ratoon.cli.ranks import communicator_for, tell_what_if, together
from ratoon.cli.samples import (
    DataFile,
    JsonOption,
    LabelOption,
    MissingOption,
    QuietOption,
    ReadingOption,
    labels_of,
    read_samples,
    widths_from,
    without_names,
)
from ratoon.datasets import Dataset
from ratoon.errors import InvalidInputError, InvalidParameterError

NETWORK = "Network"
TRAINING = "Training"
RUN = "Run"


def train(
    data: DataFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Model file to write.")
    ] = None,
    label: LabelOption = None,
    task: Annotated[
        str, typer.Option(help="classify, regress, or auto: by what the labels are.")
    ] = "auto",
    missing: MissingOption = "error",
    reading: ReadingOption = None,
    test: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Hold this fraction back and score on it.")
    ] = 0.0,
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with any of these options in a table called train.",
            callback=use_config,
            is_eager=True,
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="paper, fast or large; without it, the default recipe.", rich_help_panel=NETWORK
        ),
    ] = None,
    hidden: Annotated[
        str | None,
        typer.Option(
            help="Widths of hidden layers, as in 3000,3000; 0 for none.", rich_help_panel=NETWORK
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="About epsilon * (inputs + outputs) connections in a layer.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    density: Annotated[
        float | None,
        typer.Option(
            help="Instead of epsilon: fraction of possible connections, in (0, 1].",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    evolution: Annotated[
        str | None,
        typer.Option(
            help="How connections change: set, annealed_set, guided_set, static, rigl, gse, ...",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    zeta: Annotated[
        float | None,
        typer.Option(
            help="Fraction of connections replaced at a rewiring.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    dropout: Annotated[
        float | None, typer.Option(help="Dropout of hidden layers.", rich_help_panel=NETWORK)
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option(
            help="GMT file or edge list (feature, group): start with a neuron per group, connected"
            " to its members.",
            exists=True,
            dir_okay=False,
            rich_help_panel=NETWORK,
        ),
    ] = None,
    within: Annotated[
        bool,
        typer.Option(
            "--within",
            help="With --groups: neurons are never connected to others than their members.",
            rich_help_panel=NETWORK,
        ),
    ] = False,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the data.", rich_help_panel=TRAINING)
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Samples per step.", rich_help_panel=TRAINING)
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(help="Learning rate; giving one means SGD.", rich_help_panel=TRAINING),
    ] = None,
    momentum: Annotated[
        float | None, typer.Option(help="Momentum of SGD.", rich_help_panel=TRAINING)
    ] = None,
    class_weight: Annotated[
        str | None,
        typer.Option(
            help="balanced: all classes count the same, however rare.", rich_help_panel=TRAINING
        ),
    ] = None,
    early_stopping: Annotated[
        bool,
        typer.Option(
            "--early-stopping",
            help="Hold a tenth back; stop when its score no longer rises.",
            rich_help_panel=TRAINING,
        ),
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Same seed, same model.", rich_help_panel=RUN)
    ] = 0,
    threads: Annotated[
        int | None, typer.Option(min=1, help="They do not change results.", rich_help_panel=RUN)
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder of checkpoints, to go on after a stop.", rich_help_panel=RUN),
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(min=1, help="Epochs between checkpoints, 10 by default.", rich_help_panel=RUN),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on from the newest checkpoint, if any.", rich_help_panel=RUN
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only say what memory and time it takes.", rich_help_panel=RUN
        ),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(help="Also write a report: one HTML page.", rich_help_panel=RUN),
    ] = None,
    distributed: Annotated[
        str | None,
        typer.Option(help="mpi: train together with the other ranks.", rich_help_panel=RUN),
    ] = None,
    average_every: Annotated[
        str | None,
        typer.Option(
            help="With ranks: steps between averages; gradients: add them up at every step, as one"
            " rank would; auto, the default: by what sending costs.",
            rich_help_panel=RUN,
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a network on a data file and write a model file.

    For example:

      ratoon train lung.mat -o lung.ratoon

      ratoon train genes.csv --label outcome --test 0.3 --class-weight balanced

      ratoon train big.npz --preset paper --hidden 30000,30000 --dry-run

      ratoon train genes.csv --groups hallmark.gmt --within -o pathways.ratoon

      ratoon train genes.csv --config experiment.toml --checkpoint run1 --resume

      mpiexec -n 4 ratoon train big.npz --hidden 30000,30000 --distributed mpi
    """
    del config
    if every is not None and checkpoint is None:
        raise InvalidParameterError(
            "--every counts epochs between checkpoints: --checkpoint FOLDER."
        )
    if average_every is not None and distributed is None:
        raise InvalidParameterError("--average-every needs several ranks: --distributed mpi.")
    world = communicator_for(distributed)
    speaks = world is None or world.rank == 0
    remark = None if quiet or not speaks else say
    quiet = quiet or as_json or not speaks
    given: dict[str, Any] = {
        "preset": preset,
        "hidden_layer_sizes": widths_from(hidden),
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
    checkpoints = _checkpoints(checkpoint, every or 10, resume=resume) if speaks else []
    samples = labels_of(
        read_samples(data, label, missing, quiet=quiet, task=task, reading=reading), data
    )
    given["topology"] = topology_from(
        samples, groups, given["hidden_layer_sizes"], within=within, quiet=quiet
    )
    estimator = make_estimator(samples, given)
    if dry_run:
        _show_plan(estimator, samples, as_json=as_json)
        return
    train_rows, test_rows = _held_out(samples, test, seed)
    if remark is not None:
        tell_what_if(world, checkpoint)
    try:
        with together(world, average_every or "auto", tell=remark) as following:
            callbacks = [*checkpoints, *following]
            fit(estimator, samples.take(train_rows), callbacks, verbose=not quiet)
    except KeyboardInterrupt:
        if checkpoints:
            raise KeyboardInterrupt(
                f"The same command with --resume goes on from {checkpoint}."
            ) from None
        raise
    if not speaks:
        return
    if output is not None:
        estimator.save(output)
    _report(estimator, samples, train_rows, test_rows, output, as_json=as_json, quiet=quiet)
    if report is not None:
        from ratoon.cli.report import report_training

        report_training(estimator, samples, test_rows, report, quiet=quiet)


def make_estimator(samples: Dataset, given: dict[str, Any]) -> Any:
    """Return the unfitted estimator for these labels with the options that were given."""
    from ratoon import SparseMLPClassifier, SparseMLPRegressor

    options = {name: value for name, value in given.items() if value is not None}
    if samples.class_names is not None:
        return SparseMLPClassifier(**options)
    if "class_weight" in options:
        raise InvalidParameterError("--class-weight is for classification; the labels are numbers.")
    return SparseMLPRegressor(**options)


def fit(estimator: Any, samples: Dataset, callbacks: list[Any], *, verbose: bool) -> None:
    """Fit with callbacks and a progress bar that are not kept as parameters."""
    # The bar is not given as a callback: who gives one wants a network trained by epochs.
    estimator.set_params(callbacks=callbacks or None, verbose=int(verbose))
    try:
        with blaming_the_data():
            estimator.fit(samples.X, samples.labels)
    finally:
        estimator.set_params(callbacks=None, verbose=0)
    if samples.feature_names is not None:
        estimator.feature_names_in_ = np.array(samples.feature_names, dtype=object)


def _checkpoints(folder: Path | None, every: int, *, resume: bool) -> list[Any]:
    if folder is None:
        if resume:
            raise InvalidParameterError("--resume needs the folder: --checkpoint FOLDER.")
        return []
    from ratoon.storage import Checkpoint, CheckpointDirectory

    if not resume and CheckpointDirectory(folder).numbers():
        raise InvalidInputError(
            f"{folder} holds checkpoints of an earlier training.\n"
            f"  Go on from them with --resume, or name an empty folder."
        )
    return [Checkpoint(folder, every=every, resume=resume)]


def _held_out(samples: Dataset, fraction: float, seed: int) -> tuple[Any, Any]:
    from ratoon.experiments import split_rows

    assert samples.y is not None
    rows = np.arange(samples.n_samples)
    if fraction == 0.0:
        return rows, rows[:0]
    return split_rows(samples.y, fraction, seed, stratify=samples.class_names is not None)


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
    quiet: bool,
) -> None:
    score = None
    if len(test_rows):
        held = samples.take(test_rows)
        with without_names():
            score = float(estimator.score(held.X, held.labels))
    layers = [
        {
            "inputs": layer.n_in,
            "outputs": layer.n_out,
            "connections": layer.n_connections,
            "requested_density": layer.requested_density,
            "density": layer.achieved_density,
        }
        for layer in estimator.report_.layers
    ]
    if as_json:
        print_json(
            {
                "model": None if output is None else str(output),
                "samples": len(train_rows),
                "solver": estimator.solver_,
                "reason": estimator.settings_.reason,
                "epochs": estimator.n_iter_,
                "loss": estimator.loss_,
                "test_samples": len(test_rows),
                "test_score": score,
                "layers": layers,
            }
        )
        return
    print_table(
        "network",
        ["inputs", "outputs", "connections", "requested density", "achieved"],
        [
            [
                f"{x['inputs']:,}",
                f"{x['outputs']:,}",
                f"{x['connections']:,}",
                density_text(x["requested_density"]),
                f"{x['density']:.3g}",
            ]
            for x in layers
        ],
    )
    print(estimator.report_.how)
    if score is not None:
        kind = "accuracy" if samples.class_names is not None else "R squared"
        print(f"{kind} on {len(test_rows)} held-out samples: {score:.4f}")
    if quiet:
        return
    if output is not None:
        say(f"The model is in {output}.")
    else:
        say("No model was written; name a file with -o MODEL.")
