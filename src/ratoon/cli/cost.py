"""`ratoon plan` and `ratoon bench`: the memory and time a network needs."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
import typer

from ratoon.cli.options import JsonOption, shell_words, widths_from
from ratoon.cli.terminal import (
    count,
    load_average,
    print_json,
    print_note,
    print_table,
    print_text,
)
from ratoon.errors import InvalidParameterError


def plan(
    features: Annotated[int, typer.Argument(min=1, help="Number of features.")],
    samples: Annotated[int, typer.Option(min=1, help="Number of training samples.")] = 1000,
    outputs: Annotated[int, typer.Option(min=1, help="Number of classes or targets.")] = 2,
    hidden: Annotated[
        str | None, typer.Option(help="Widths of the hidden layers, such as 3000,3000.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Sparsity: about epsilon * (inputs + outputs) connections.")
    ] = None,
    density: Annotated[
        float | None, typer.Option(help="Instead of --epsilon: fraction of possible connections.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Samples per training step.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="Parameters to start from: paper, fast or large.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Number of threads.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show memory and time of a network before anything is allocated.

    For example, the paper's million-neuron network:

      ratoon plan 54675 --samples 1397 --outputs 18 --hidden 500000,500000
    """
    from ratoon import SparseMLPClassifier

    given = {
        "hidden_layer_sizes": widths_from(hidden),
        "epsilon": epsilon,
        "density": density,
        "batch_size": batch_size,
        "preset": preset,
        "n_jobs": threads,
    }
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    with shell_words():
        planned = SparseMLPClassifier(**options).plan(
            features, n_samples=samples, n_outputs=outputs
        )
    show_plan(planned, as_json=as_json)


def show_plan(planned: Any, *, as_json: bool) -> None:
    """Print a plan."""
    if as_json:
        totals = {
            "n_connections": planned.n_connections,
            "peak_bytes": planned.peak_bytes,
            "seconds": planned.seconds,
        }
        print_json({**asdict(planned), **totals})
    else:
        print_text(str(planned))


# Widths and minibatch of the paper's networks.
MODELS = {
    "a": ("Leukemia", (54_675, 27_500, 27_500, 18), 5),
    "b": ("CLL-SUB-111", (11_340, 9_000, 9_000, 3), 5),
    "c": ("SMK-CAN-187", (19_993, 16_000, 16_000, 2), 5),
    "d": ("GLI-85", (22_283, 20_000, 2), 1),
    "f": ("extreme small", (54_675, 1_000, 1_000, 18), 5),
}


def bench(
    models: Annotated[
        str, typer.Option(help="Networks to measure: a, b, c, d and f, separated by commas.")
    ] = "b,c,d",
    steps: Annotated[int, typer.Option(min=1, help="Number of minibatches per measurement.")] = 20,
    repeats: Annotated[
        int, typer.Option(min=1, help="Number of measurements; the fastest counts.")
    ] = 3,
    threads: Annotated[int, typer.Option(min=1, help="Number of threads.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Measure how fast this computer trains the paper's networks.

    The data are random.  Comparisons with other programs are in the folder
    benchmarks of the source code.

    For example:

      ratoon bench --models a,b --threads 2 --json
    """
    from ratoon.kernels import current_isa

    names = [name.strip() for name in models.split(",")]
    if unknown := [name for name in names if name not in MODELS]:
        raise InvalidParameterError(
            f"--models must be among {', '.join(MODELS)}; got {', '.join(unknown) or 'none'}."
        )
    results = [_measure(name, steps, repeats, threads) for name in names]
    if as_json:
        print_json(
            {
                "isa": current_isa(),
                "threads": threads,
                "load": load_average(),
                "models": results,
            }
        )
        return
    print_table(
        f"time of a minibatch and of a rewiring, {count(threads, 'thread')}, {current_isa()}",
        ["", "network", "connections", "batch", "ms", "ns/conn.", "rewire ms"],
        [
            [
                r["model"],
                (r["data"], r["network"]),
                f"{r['connections']:,}",
                r["batch"],
                f"{r['step_ms']:.2f}",
                f"{r['ns_per_connection']:.2f}",
                f"{r['rewire_ms']:.1f}",
            ]
            for r in results
        ],
    )
    load = load_average()
    if load is not None:
        print_note(f"Load average {load:.1f}: other running programs make these times longer.")


def _measure(name: str, steps: int, repeats: int, threads: int) -> dict[str, float | int | str]:
    from ratoon.evolution import SET
    from ratoon.network import SparseMLP
    from ratoon.training import Training, TrainingData, TrainingPlan

    title, widths, batch = MODELS[name]
    generator = np.random.default_rng(0)
    x = generator.standard_normal((steps * batch, widths[0]), dtype=np.float32)
    y = np.eye(widths[-1], dtype=np.float32)[generator.integers(widths[-1], size=len(x))]
    network = SparseMLP.start(widths, epsilon=10, seed=0, n_threads=threads)
    plan = TrainingPlan(
        learning_rate=1e-3,
        batch_size=batch,
        n_epochs=repeats + 1,
        evolution=SET(),
        n_threads=threads,
    )
    training = Training(network, TrainingData.of(x, y, np.float32), plan)
    started = time.perf_counter()
    training.run()
    history = training.history
    step = min(history.column("train_seconds")) / steps
    return {
        "model": name,
        "data": title,
        "network": "-".join(str(width) for width in widths),
        "connections": network.n_connections,
        "batch": batch,
        "step_ms": 1e3 * step,
        "ns_per_connection": 1e9 * step / network.n_connections,
        "rewire_ms": 1e3 * min(history.column("rewire_seconds")[1:]),
        "seconds": time.perf_counter() - started,
    }
