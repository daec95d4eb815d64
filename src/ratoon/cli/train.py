"""`ratoon train`: from a data file to a model file."""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from ratoon.cli.estimate import (
    AUTO,
    NONE,
    CvOption,
    checked_cv,
    estimated,
    planned_cv,
)
from ratoon.cli.logs import epochs_not_logged, logged
from ratoon.cli.options import (
    CenterOption,
    DataFile,
    DuplicatesOption,
    EventOption,
    GroupOption,
    JsonOption,
    LabelOption,
    MissingOption,
    NormalizeOption,
    PrepareLog2Option,
    QuietOption,
    ReadingOption,
    TaskOption,
    TimeOption,
    TrainingIdMapOption,
    evolution_from,
    input_errors,
    prepare_from,
    shell_words,
    use_config,
    widths_from,
    with_columns,
)
from ratoon.cli.output import check_new_folder, check_report
from ratoon.cli.ranks import communicator_for, distributed, print_what_happens_on_failure
from ratoon.cli.repeat import training_code
from ratoon.cli.samples import (
    read_samples,
    split,
    topology_from_groups,
    with_labels,
)
from ratoon.cli.split import check_split, train_split
from ratoon.cli.terminal import (
    print_note,
    until_the_end,
)
from ratoon.cli.train_result import (
    Result,
    reading_expression,
    scores_of_test,
    show_result,
    show_training_plan,
)
from ratoon.datasets import Dataset
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.samples.augment import as_augment
from ratoon.storage.atomic import SaveError, check_target
from ratoon.storage.directory import KEPT

NETWORK = "Network"
TRAINING = "Training"
RUN = "Run"


def train(
    data: DataFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Model file to write.")
    ] = None,
    label: LabelOption = None,
    task: TaskOption = "auto",
    missing: MissingOption = "error",
    reading: ReadingOption = None,
    duplicates: DuplicatesOption = None,
    id_map: TrainingIdMapOption = None,
    log2: PrepareLog2Option = "no",
    normalize: NormalizeOption = "none",
    group: GroupOption = None,
    center_groups: CenterOption = False,
    time: TimeOption = None,
    event: EventOption = None,
    test: Annotated[
        float,
        typer.Option(
            min=0.0, max=0.9, help="Hold out this fraction of the samples and score on them."
        ),
    ] = 0.0,
    cv: CvOption = AUTO,
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
            help="Parameters to start from: paper, fast or large.", rich_help_panel=NETWORK
        ),
    ] = None,
    hidden: Annotated[
        str | None,
        typer.Option(
            help="Widths of the hidden layers, such as 3000,3000; 0 for none.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="Sparsity: about epsilon * (inputs + outputs) connections in a layer.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    density: Annotated[
        float | None,
        typer.Option(
            help="Instead of --epsilon: fraction of possible connections, in (0, 1].",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    evolution: Annotated[
        str | None,
        typer.Option(
            help="How connections change: set, annealed_set, guided_set, static, rigl, gse, ..., a"
            " strategy of an installed package, or package.module:Class, also with parameters:"
            " rigl(every=20).",
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
        float | None,
        typer.Option(help="Dropout rate of the hidden layers.", rich_help_panel=NETWORK),
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option(
            help="GMT file or edge list (feature, group). The first hidden layer starts with one"
            " neuron per group, connected to its members.",
            exists=True,
            dir_okay=False,
            rich_help_panel=NETWORK,
        ),
    ] = None,
    within: Annotated[
        bool,
        typer.Option(
            "--within",
            help="With --groups: a neuron is only ever connected to the members of its group.",
            rich_help_panel=NETWORK,
        ),
    ] = False,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Number of passes over the samples.", rich_help_panel=TRAINING),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Samples per training step.", rich_help_panel=TRAINING)
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(help="Learning rate of SGD.", rich_help_panel=TRAINING),
    ] = None,
    momentum: Annotated[
        float | None, typer.Option(help="Momentum of SGD.", rich_help_panel=TRAINING)
    ] = None,
    augment: Annotated[
        str | None,
        typer.Option(
            help="Shift and flip images at random while training: shift, shift=4,flip, or with the"
            " shape of the images, shift,shape=3x32x32.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    class_weight: Annotated[
        str | None,
        typer.Option(
            help="balanced: all classes have the same total weight.", rich_help_panel=TRAINING
        ),
    ] = None,
    early_stopping: Annotated[
        bool,
        typer.Option(
            "--early-stopping",
            help="Hold out a tenth of the samples; stop when their score stops improving.",
            rich_help_panel=TRAINING,
        ),
    ] = False,
    seed: Annotated[
        int,
        typer.Option(
            min=0, help="Random seed. The same seed gives the same model.", rich_help_panel=RUN
        ),
    ] = 0,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of threads. Does not change results.", rich_help_panel=RUN
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder for checkpoints, to resume from.", rich_help_panel=RUN),
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(min=1, help="Epochs between checkpoints; 10 by default.", rich_help_panel=RUN),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue from the latest checkpoint, if there is one.",
            rich_help_panel=RUN,
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show memory and time, and do not train.", rich_help_panel=RUN
        ),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(help="Also write a report to this HTML file.", rich_help_panel=RUN),
    ] = None,
    no_fingerprints: Annotated[
        bool,
        typer.Option(
            "--no-fingerprints",
            help="Leave out of the model the fingerprints of the training samples, by which"
            " evaluate and report know them.",
            rich_help_panel=RUN,
        ),
    ] = False,
    distributed_by: Annotated[
        str | None,
        typer.Option("--distributed", help="mpi: train on all MPI ranks.", rich_help_panel=RUN),
    ] = None,
    average_every: Annotated[
        str | None,
        typer.Option(
            help="With --distributed: steps between averages of the weights; gradients to sum"
            " gradients at every step, as one rank would; auto to choose by communication cost.",
            rich_help_panel=RUN,
        ),
    ] = None,
    split_by: Annotated[
        str | None,
        typer.Option(
            "--split",
            help="With --distributed: neurons, to give every rank a part of each layer, for"
            " networks larger than one machine. --checkpoint is then the folder of the model.",
            rich_help_panel=RUN,
        ),
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With --split: parts of each layer, by default as many as ranks; any number of"
            " ranks up to it can continue.",
            rich_help_panel=RUN,
        ),
    ] = None,
    rank_groups: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With --split: groups of ranks that each hold the whole network and train on a"
            " share of every minibatch.",
            rich_help_panel=RUN,
        ),
    ] = None,
    log_json: Annotated[
        bool,
        typer.Option(
            "--log-json",
            help="Write the log to stderr as JSON, one object per line: every epoch, checkpoints,"
            " notes, warnings and errors.",
            rich_help_panel=RUN,
        ),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a network on a data file and write a model file.

    For example:

      ratoon train lung.mat -o lung.ratoon

      ratoon train genes.csv --label outcome --test 0.3 --class-weight balanced

      ratoon train array.txt --id-map probes.tsv --log2 auto --normalize quantile

      ratoon train genes.csv --label outcome --group patient --test 0.3

      ratoon train tumours.csv --time months --event status -o survival.ratoon

      ratoon train genes.csv --label outcome --cv 10x5 --report page.html

      ratoon train big.npz --preset paper --hidden 30000,30000 --dry-run

      ratoon train genes.csv --groups hallmark.gmt --within -o pathways.ratoon

      ratoon train genes.csv --config experiment.toml --checkpoint run1 --resume

      mpiexec -n 4 ratoon train big.npz --hidden 30000,30000 --distributed mpi

      mpiexec -n 4 ratoon train big.npz --hidden 10000000 --distributed mpi
      --split neurons --checkpoint model
    """
    del config
    if every is not None and checkpoint is None:
        raise InvalidParameterError(
            "--every sets the epochs between checkpoints; add --checkpoint FOLDER."
        )
    if average_every is not None and distributed_by is None:
        raise InvalidParameterError("--average-every needs several ranks; add --distributed mpi.")
    cv = checked_cv(cv)
    if distributed_by is not None:
        if cv not in (AUTO, NONE):
            raise InvalidParameterError(
                "--cv does not work with --distributed; use --test, or --cv none."
            )
        cv = NONE
    reading = with_columns(
        reading, group=group, time=time, event=event, duplicates=duplicates, id_map=id_map
    )
    world = communicator_for(distributed_by)
    is_first = world is None or world.rank == 0
    print_cost = None if quiet or not is_first else print_note
    quiet = quiet or as_json or not is_first
    if is_first:
        # Until the command ends, so that its error is logged as well.
        until_the_end(logged(as_json=log_json, quiet=quiet))
    given: dict[str, Any] = {
        "preset": preset,
        "hidden_layer_sizes": widths_from(hidden),
        "epsilon": epsilon,
        "density": density,
        "evolution": evolution_from(evolution),
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
        "prepare": prepare_from(log2, normalize, center=center_groups, group=group),
    }
    if no_fingerprints and output is None:
        raise InvalidParameterError("--no-fingerprints is about the model file; add -o MODEL.")
    if split_by is None and (parts is not None or rank_groups is not None):
        raise InvalidParameterError("--parts and --rank-groups need --split neurons.")
    check_split(
        split_by,
        world,
        {
            "checkpoint": checkpoint,
            "output": output,
            "report": report,
            "average-every": average_every,
            "every": every,
            "early-stopping": early_stopping,
            "groups": groups,
            "augment": augment,
            "dry-run": dry_run,
        },
    )
    if is_first:
        _check_outputs(output, report, checkpoint)
    folder, checkpoint = (checkpoint, None) if split_by is not None else (None, checkpoint)
    checkpoints = (
        _checkpoints(checkpoint, every or 10, resume=resume)
        if is_first and split_by is None
        else []
    )
    samples = with_labels(
        read_samples(data, label, missing, quiet=quiet, task=task, reading=reading),
        data,
    )
    if samples.is_survival and world is not None:
        raise InvalidParameterError(
            "--distributed does not work with survival times: their loss needs all samples of a"
            " minibatch on one rank."
        )
    given["topology"] = topology_from_groups(
        samples, groups, given["hidden_layer_sizes"], within=within, quiet=quiet
    )
    with shell_words():
        chosen = as_augment(augment)
        if chosen is not None:  # a plan does not see the data set, which knows the shape
            chosen = chosen.for_features(samples.n_features, samples.image_shape)
    given["augment"] = chosen
    estimator = make_estimator(samples, given)
    if dry_run:
        show_training_plan(estimator, samples, cv, has_test=test > 0.0, as_json=as_json)
        return
    if is_first and split_by is None:
        _check_space(estimator, samples, output, checkpoint)
    training, held_out = samples, None
    if test > 0.0:
        training_rows, test_rows = split(samples, test, seed)
        training, held_out = samples.take(training_rows), samples.take(test_rows)
    if split_by is not None:
        assert folder is not None
        train_split(
            estimator,
            training,
            held_out,
            folder,
            world,
            n_groups=rank_groups or 1,
            n_parts=parts,
            resume=resume,
            as_json=as_json,
            quiet=quiet,
        )
        return
    if print_cost is not None:
        print_what_happens_on_failure(world, checkpoint)
    try:
        with distributed(world, average_every or "auto", log=print_cost) as rank_callbacks:
            fit(
                estimator,
                training,
                [*checkpoints, *rank_callbacks],
                verbose=not quiet and not log_json,
            )
    except KeyboardInterrupt:
        if checkpoints:
            raise KeyboardInterrupt(
                f"The same command with --resume continues from {checkpoint}."
            ) from None
        raise
    if not is_first:
        return
    if output is not None:
        save(estimator, output, fingerprints=not no_fingerprints)
    planned = planned_cv(cv, estimator, training, has_test=held_out is not None)
    with epochs_not_logged():
        estimate = estimated(planned.cv, estimator, training, seed=seed, quiet=quiet)
    result = Result(training, held_out, estimate, scores_of_test(estimator, training, held_out))
    show_result(estimator, result, output, as_json=as_json, quiet=quiet)
    if planned.reason and not quiet:
        print_note(planned.reason)
    if report is not None:
        from ratoon.cli.report import report_training

        code = training_code(
            estimator,
            reading_expression(data, label, missing, task, reading),
            samples,
            test=test,
            seed=seed,
            cv=planned.cv,
        )
        report_training(estimator, training, held_out, report, estimate, code, quiet=quiet)


def make_estimator(samples: Dataset, given: dict[str, Any]) -> Any:
    """Return the unfitted estimator for these labels with the options that were given."""
    from ratoon import SparseMLPClassifier, SparseMLPRegressor, SparseMLPSurvival

    options = {name: value for name, value in given.items() if value is not None}
    if samples.is_survival:
        if "class_weight" in options:
            raise InvalidParameterError("--class-weight is for classification, not for survival.")
        return SparseMLPSurvival(**options)
    if samples.class_names is not None:
        return SparseMLPClassifier(**options)
    if "class_weight" in options:
        raise InvalidParameterError("--class-weight is for classification; the labels are numbers.")
    return SparseMLPRegressor(**options)


def fit(estimator: Any, samples: Dataset, callbacks: list[Any], *, verbose: bool) -> None:
    """Fit with callbacks and progress output that are not kept as parameters."""
    # Progress is not a callback here: callbacks imply iterative training.
    estimator.set_params(callbacks=callbacks or None, verbose=int(verbose))
    try:
        with input_errors():
            estimator.fit(samples)
    finally:
        estimator.set_params(callbacks=None, verbose=0)


def _check_outputs(output: Path | None, report: Path | None, checkpoint: Path | None) -> None:
    """Raise before anything is read or trained if its results could not be written."""
    if output is not None:
        check_target(output)
    if report is not None:
        check_report(report)
    if checkpoint is not None:
        check_new_folder(checkpoint)
    if output is not None and report is not None and output.absolute() == report.absolute():
        raise InvalidParameterError(f"--output and --report name the same file, {output}.")


def _check_space(
    estimator: Any, samples: Dataset, output: Path | None, checkpoint: Path | None
) -> None:
    """Raise if the model and the checkpoints would not fit on the disk."""
    from ratoon.estimators.planning import checkpoint_bytes, file_bytes

    shape = (samples.n_features, samples.n_samples, max(samples.n_classes, 1))
    if output is not None:
        with shell_words():
            n_bytes = file_bytes(estimator, *shape)
        check_target(output, n_bytes)
    if checkpoint is not None:
        with shell_words():
            n_bytes = checkpoint_bytes(estimator, *shape)
        present = [path.stat().st_size for path in checkpoint.glob("*.ratoon") if path.is_file()]
        # One more file while the oldest is replaced.
        n_bytes = n_bytes * (KEPT + 1) - sum(present)
        check_new_folder(checkpoint, n_bytes, f"the last {KEPT} checkpoints and the next one need")


def save(estimator: Any, path: Path, *, fingerprints: bool = True) -> None:
    """Save a trained estimator; if that fails, save it in another folder and raise."""
    try:
        estimator.save(path, fingerprints=fingerprints)
    except OSError as error:
        reason = error.strerror or str(error)
        for folder in (Path(tempfile.gettempdir()), Path.home(), Path.cwd()):
            rescue = folder / f"ratoon-rescue-{secrets.token_hex(4)}.ratoon"
            try:
                estimator.save(rescue, fingerprints=fingerprints)
            except OSError:
                continue
            raise SaveError(
                error.errno, f"{reason}.\n  The model was saved in {rescue} instead", str(path)
            ) from None
        raise


def _checkpoints(folder: Path | None, every: int, *, resume: bool) -> list[Any]:
    if folder is None:
        if resume:
            raise InvalidParameterError(
                "--resume needs the folder with the checkpoints: --checkpoint FOLDER."
            )
        return []
    from ratoon.storage import Checkpoint, CheckpointDirectory

    if not resume and CheckpointDirectory(folder).numbers():
        raise InvalidInputError(
            f"{folder} contains checkpoints of an earlier training.\n"
            f"  Continue from them with --resume, or use an empty folder."
        )
    return [Checkpoint(folder, every=every, resume=resume)]
