"""What `ratoon train` prints: its plan, the network, and the scores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ratoon.cli.estimate import NONE, OWN, n_equal_rows, planned_cv, show_estimate, show_held_out
from ratoon.cli.options import ON_DISK, TASKS, in_shell_words, reading_options, shell_words
from ratoon.cli.repeat import reading_code
from ratoon.cli.samples import known_file, print_preparation
from ratoon.cli.terminal import density_text, print_json, print_note, print_table, print_text
from ratoon.datasets import Dataset, can_stay_on_disk
from ratoon.report.context import HELD_OUT, ReportContext, sample_names, with_predictions


@dataclass(frozen=True)
class Result:
    """Samples of a training, and what is known of its score on others."""

    training: Dataset
    held_out: Dataset | None
    estimate: Any
    scores: Any


def scores_of_test(estimator: Any, training: Dataset, held_out: Dataset | None) -> Any:
    """Return the scores on held-out samples; None without any."""
    if held_out is None:
        return None
    context = ReportContext(estimator, held_out, basis=HELD_OUT, training=training)
    return with_predictions(context).scores


def reading_expression(
    data: Path, label: str | None, missing: str, task: str, reading: list[str] | None
) -> str:
    """Return the Python expression that reads the data as the command did."""
    options = reading_options(reading)
    on_disk = options.pop(ON_DISK, "auto")
    data, label = known_file(data, label)
    kind = None if task == "auto" else TASKS[task]
    if can_stay_on_disk(data, on_disk=on_disk):
        given = {"label": label, "task": kind, **options}
        return reading_code("open_stored", str(data), given)
    treat = None if missing == "error" else missing
    return reading_code(
        "read", str(data), {"label": label, "missing": treat, "task": kind} | options
    )


def show_training_plan(
    estimator: Any, samples: Dataset, cv: str, *, has_test: bool, as_json: bool
) -> None:
    """Print memory and time of the training that the same command does without --dry-run."""
    from ratoon.cli.cost import show_plan
    from ratoon.experiments.estimate import folds_of

    with shell_words():
        planned = estimator.plan(
            samples.n_features, n_samples=samples.n_samples, n_outputs=max(samples.n_classes, 1)
        )
    show_plan(planned, as_json=as_json)
    folds = planned_cv(cv, estimator, samples, has_test=has_test).cv
    if not as_json and folds not in (NONE, OWN):
        n_folds, n_repeats = folds_of(folds)
        print_note(
            f"Cross-validation (--cv {folds}) fits {n_folds * n_repeats} more networks to"
            f" {n_folds - 1} of {n_folds} parts of the samples."
        )


def show_result(
    estimator: Any, result: Result, output: Path | None, *, as_json: bool, quiet: bool
) -> None:
    """Print the network and the scores of a training."""
    held_out, scores, estimate = result.held_out, result.scores, result.estimate
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
        names = None if held_out is None else list(sample_names(held_out))
        print_json(
            {
                "model": None if output is None else str(output),
                "samples": result.training.n_samples,
                "solver": estimator.solver_,
                "reason": estimator.settings_.reason,
                "epochs": estimator.n_iter_,
                "loss": estimator.loss_,
                "test_samples": 0 if held_out is None else held_out.n_samples,
                "test_score": None if scores is None else scores.main.value,
                "test_scores": None if scores is None else scores.to_dict(),
                "test_sample_names": names,
                "cross_validation": None if estimate is None else estimate.to_dict(),
                "layers": layers,
            }
        )
        return
    if not quiet:
        _show_network(estimator, layers)
    if not quiet:
        print_preparation(estimator)
    if held_out is not None and scores is not None:
        show_held_out(scores, n_equal_rows(estimator, held_out))
    if estimate is not None:
        show_estimate(estimate, quiet=quiet)
    if quiet:
        return
    if output is not None:
        print_note(f"The model is in {output}.")
    else:
        print_note("The model was not saved; use -o MODEL to save it.")


def _show_network(estimator: Any, layers: list[dict[str, Any]]) -> None:
    print_table(
        "network",
        ["inputs", "outputs", "connections", "requested density", "density"],
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
    print_text(in_shell_words(estimator.report_.how))
