"""`ratoon demo`: watch a 42,000-neuron sparse network learn."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ratoon.cli.terminal import console, megabytes, peak_memory, print_json, print_table, say
from ratoon.history import EpochRecord
from ratoon.training import ProgressBar, Training


def demo(
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of each training.")] = 100,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to put the picture.")
    ] = Path("ratoon-demo.png"),
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same result.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="They do not change results.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Watch a 42,000-neuron sparse network learn on this computer.

    Generates microarray-like data of the shape of GLI-85 (85 samples, 22,283
    genes, 2 classes) and trains the paper's network for it twice: with SET,
    which rewires after every epoch, and with a fixed topology (FixProb).  Ends
    with a table and a picture.

    For example:

      ratoon demo

      ratoon demo --epochs 20 --seed 1 -o short.png
    """
    from ratoon.datasets import make_microarray
    from ratoon.evolution import Static
    from ratoon.experiments import PaperSettings, run_trial, split_rows

    data, _ = make_microarray(random_state=seed)
    y = data.y
    assert y is not None
    train_rows, test_rows = split_rows(y, 1 / 3, seed)
    settings = PaperSettings(n_epochs=epochs)
    n_neurons = data.n_features + sum(settings.hidden) + data.n_classes
    if not as_json:
        console.print(
            f"[bold]{n_neurons:,} neurons[/bold] on generated data of the shape of GLI-85:\n"
            f"{data.n_samples} samples x {data.n_features:,} genes, {data.n_classes} classes;"
            f" {len(train_rows)} samples to train on (a fifth of\n"
            f"them for validation), {len(test_rows)} to test.",
            highlight=False,
        )
    trials = []
    for name, strategy in (("SET", settings.strategy()), ("FixProb", Static())):
        bar = NarrowBar(f"{name:>8}", file=sys.stderr)
        trials.append(
            run_trial(
                name,
                data.X,
                y,
                train_rows,
                test_rows,
                settings=settings,
                strategy=strategy,
                seed=seed,
                validation_fraction=0.2,
                n_threads=threads,
                callbacks=[] if as_json else [bar],
            )
        )
    picture = draw(trials, data.class_names, output)
    figures = [figures_of(trial) for trial in trials]
    if as_json:
        print_json({"trials": figures, "picture": str(picture)})
        return
    show(figures)
    say(f"The picture is in {picture}.")


class NarrowBar(ProgressBar):
    """A progress bar that fits 80 columns: the table at the end tells the rest."""

    def on_epoch_end(self, training: Training, record: EpochRecord) -> None:
        """Move on to the next epoch, and say how the last one went."""
        if self._bar is not None:
            told = {"epoch": record.epoch + 1, "loss": f"{record.loss:.2g}"}
            if record.validation_score is not None:
                told["score"] = f"{record.validation_score:.3g}"
            self._bar.set_postfix(told, refresh=False)
            self._move_to(training.epochs_done - self._first)


def figures_of(trial: Any) -> dict[str, Any]:
    """Return the figures of a trial as plain data."""
    network = trial.network
    dense = network.n_positions
    return {
        "method": trial.name,
        "test_accuracy_last_epoch": trial.last,
        "test_accuracy_validation_chosen_epoch": trial.chosen,
        "validation_chosen_epoch": None if trial.chosen_epoch is None else trial.chosen_epoch + 1,
        "connections": network.n_connections,
        "dense_connections": dense,
        "seconds_per_epoch": trial.seconds_per_epoch(),
        "network_bytes": sum(layer.nbytes() for layer in network.layers),
        # Weights and momentum in float32, as ours.
        "dense_network_bytes": 8 * dense,
        "peak_memory_bytes": peak_memory(),
    }


def show(figures: list[dict[str, Any]]) -> None:
    """Print the table: a row for each quantity, a column for each method and a dense network."""
    first = figures[0]

    def row(name: str, text: Any, dense: str) -> list[str]:
        return [name, *(text(f) for f in figures), dense]

    rows = [
        row("test accuracy, last epoch", lambda f: _percent(f["test_accuracy_last_epoch"]), ""),
        row(
            "at the validation-chosen epoch",
            lambda f: (
                f"{_percent(f['test_accuracy_validation_chosen_epoch'])}"
                f" ({f['validation_chosen_epoch']})"
            ),
            "",
        ),
        row("connections", lambda f: f"{f['connections']:,}", f"{first['dense_connections']:,}"),
        row("seconds per epoch", lambda f: f"{f['seconds_per_epoch']:.3f}", ""),
        row(
            "memory of the network",
            lambda f: megabytes(f["network_bytes"]),
            megabytes(first["dense_network_bytes"]),
        ),
    ]
    peak = figures[-1]["peak_memory_bytes"]
    note = None if peak is None else f"peak memory of the whole program: {megabytes(peak)}"
    columns = ["", *(f["method"] for f in figures), "dense"]
    print_table("", columns, rows, note=note)


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


def draw(trials: list[Any], class_names: Any, path: Path) -> Path:
    """Draw learning curves and SET's confusion matrix side by side."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from ratoon.report import ConfusionMatrixDisplay, LearningCurveDisplay

    with mpl.rc_context({"font.size": 9}):
        figure = Figure(figsize=(10.5, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
        curves = {trial.name: [trial.test_accuracy] for trial in trials}
        LearningCurveDisplay(curves, ylabel="test accuracy").plot(left)
        left.set_title("Test accuracy after every epoch", loc="left")
        first = trials[0]
        ConfusionMatrixDisplay.from_predictions(
            first.test_labels, first.test_predictions, class_names=class_names
        ).plot(right)
        right.set_title(f"{first.name}, last epoch", loc="left")
        figure.savefig(path, dpi=130)
    return path
