"""`--split neurons`: a network whose parts are on several MPI ranks, and folders with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ratoon.cli.options import input_errors
from ratoon.cli.terminal import count, print_json, print_note, print_text
from ratoon.datasets import Dataset
from ratoon.errors import FormatError, InvalidParameterError
from ratoon.history import EpochRecord

ESTIMATOR = "estimator.ratoon"
SPLITS = ("neurons",)


def check_split(split: str | None, world: Any | None, given: dict[str, Any]) -> None:
    """Raise unless the options fit a network whose parts are on several ranks."""
    if split is None:
        return
    if split not in SPLITS:
        raise InvalidParameterError(f"--split must be {' or '.join(SPLITS)}; got {split!r}.")
    if world is None:
        raise InvalidParameterError("--split needs several ranks; add --distributed mpi.")
    if given.get("checkpoint") is None:
        raise InvalidParameterError(
            "--split neurons writes one file per part of the network; add --checkpoint FOLDER."
        )
    for name, value in given.items():
        if name != "checkpoint" and value:
            raise InvalidParameterError(f"--{name} cannot be used with --split neurons.")


def train_split(
    estimator: Any,
    training: Dataset,
    held_out: Dataset | None,
    folder: Path,
    world: Any,
    *,
    n_groups: int,
    n_parts: int | None,
    resume: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Train the parts of this rank together with the other ranks; write them to a folder."""
    from ratoon.distributed import RankFailedError
    from ratoon.distributed.split import SplitFolder, SplitNetwork, SplitTraining
    from ratoon.estimators.job import adopt, stand_in, training_job

    ranks, replicas = world.groups(n_groups)
    target = SplitFolder(folder)
    if target.exists and not resume:
        raise InvalidParameterError(
            f"{folder} contains a network.\n"
            f"  Continue its training with --resume, or use an empty folder."
        )
    with input_errors():
        job = training_job(estimator, training, reason="`--split` was given")
    settings = job.settings
    network = SplitNetwork.start(
        job.widths,
        n_parts or ranks.size,
        ranks,
        seed=job.seed,
        epsilon=settings.epsilon,
        density=settings.density,
        init=settings.init,
        output_init=settings.output_init,
        activation=settings.activation,
        slope=settings.slope,
        dropout=settings.dropout,
        scaling=job.scaling,
        dtype=settings.dtype,
        n_threads=settings.n_threads,
    )
    is_first = world.rank == 0
    log = None if quiet or not is_first else _print_record
    run = SplitTraining(
        network,
        job.samples,
        job.targets,
        job.plan,
        weights=job.weights,
        replicas=replicas,
        folder=target,
        log=log,
    )
    if is_first and not quiet:
        print_note(
            f"{count(world.size, 'rank')} {'holds' if world.size == 1 else 'hold'}"
            f" {count(network.n_parts, 'part')} of"
            f" {' - '.join(f'{width:,}' for width in job.widths)}. If one is killed, all end: the"
            f" same command with --resume continues from {folder}, on any number of ranks."
        )
    try:
        run.run()
    except RankFailedError:
        if is_first:
            raise
        raise SystemExit(1) from None
    adopt(estimator, job, run.history, stand_in(job))
    estimator.network_ = network
    score = None
    if held_out is not None:
        with input_errors():
            score = float(estimator.score(held_out, held_out.labels))
    if is_first:
        _write_estimator(estimator, folder)
        _show(run, estimator, training, held_out, score, folder, as_json=as_json, quiet=quiet)


def load_split(folder: Path, communicator: Any | None = None) -> Any:
    """Return an estimator whose network is in a folder, to predict with.

    Raises
    ------
    FormatError
        If the folder does not hold a network that `ratoon train --split neurons` has completed.
    """
    from ratoon.distributed import SingleRank
    from ratoon.distributed.split import SplitFolder
    from ratoon.estimators.state import from_state
    from ratoon.storage import read_document

    path = folder / ESTIMATOR
    if not path.exists() and not SplitFolder(folder).exists:
        raise FormatError(f"{folder} is a folder without a network, not a regular file.")
    if not path.exists():
        raise FormatError(
            f"{folder} has no {ESTIMATOR}: its training has not ended.\n"
            f"  Continue it with --resume."
        )
    document = read_document(path)
    estimator: Any = from_state(document.config, document.arrays, document.networks)
    network = SplitFolder(folder).load(communicator or SingleRank())
    expected = (estimator.n_features_in_, estimator._n_outputs())
    if (network.widths[0], network.widths[-1]) != expected:
        raise FormatError(f"{folder}: {ESTIMATOR} and the parts are of different networks.")
    estimator.network_ = network
    return estimator


def _write_estimator(estimator: Any, folder: Path) -> None:
    from ratoon.estimators.state import to_state
    from ratoon.storage import Document, write_document

    write_document(Document(*to_state(estimator)), folder / ESTIMATOR)


def _print_record(record: EpochRecord) -> None:
    print_note(
        f"epoch {record.epoch + 1}: loss {record.loss:.4g}, {record.train_seconds:.3g} s,"
        f" {record.rewired:,} rewired"
    )


def _show(
    run: Any,
    estimator: Any,
    training: Dataset,
    held_out: Dataset | None,
    score: float | None,
    folder: Path,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    last = run.history.records[-1]
    if as_json:
        print_json(
            {
                "model": str(folder),
                "samples": training.n_samples,
                "reason": estimator.settings_.reason,
                "epochs": len(run.history),
                "loss": last.loss,
                "connections": last.n_connections,
                "parts": run.network.n_parts,
                "test_samples": 0 if held_out is None else held_out.n_samples,
                "test_score": score,
            }
        )
        return
    widths = " - ".join(f"{width:,}" for width in run.network.widths)
    print_text(f"{widths}: {last.n_connections:,} connections, training loss {last.loss:.4g}")
    if held_out is not None:
        kind = "accuracy" if training.class_names is not None else "R squared"
        print_text(f"{kind} on {count(held_out.n_samples, 'held-out sample')}: {score:.4f}")
    if not quiet:
        print_note(f"The model is in {folder}; `ratoon predict {folder} DATA` uses it.")
