"""`ratoon bench`: how fast this computer trains the paper's networks."""

from __future__ import annotations

import time
from typing import Annotated

import numpy as np
import typer

from ratoon.cli.machine import load_average
from ratoon.cli.output import print_json, print_table, say
from ratoon.cli.samples import JsonOption
from ratoon.errors import InvalidParameterError

# Widths and minibatch of the paper's networks.
MODELS = {
    "a": ("Leukemia", (54_675, 27_500, 27_500, 18), 5),
    "b": ("CLL-SUB-111", (11_340, 9_000, 9_000, 3), 5),
    "c": ("SMK-CAN-187", (19_993, 16_000, 16_000, 2), 5),
    "d": ("GLI-85", (22_283, 20_000, 2), 1),
    "f": ("extreme small", (54_675, 1_000, 1_000, 18), 5),
}


def bench(
    models: Annotated[str, typer.Option(help="Which of a, b, c, d, f, with commas.")] = "b,c,d",
    steps: Annotated[int, typer.Option(min=1, help="Minibatches per measurement.")] = 20,
    repeats: Annotated[int, typer.Option(min=1, help="Measurements; the quickest counts.")] = 3,
    threads: Annotated[int, typer.Option(min=1, help="Threads.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Measure how fast this computer trains the paper's networks.

    Data are random.  For comparisons with other programs see the folder
    benchmarks of the source.

    For example:

      ratoon bench --models a,b --threads 2 --json
    """
    from ratoon.kernels import current_isa

    names = [name.strip() for name in models.split(",")]
    if unknown := [name for name in names if name not in MODELS]:
        raise InvalidParameterError(
            f"--models: {', '.join(unknown) or 'nothing'} is none of {', '.join(MODELS)}."
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
        f"one minibatch and one rewiring, {threads} thread(s), {current_isa()}",
        ["", "network", "connections", "batch", "ms", "ns each", "rewire ms"],
        [
            [
                r["model"],
                f"{r['data']}\n{r['network']}",
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
        say(f"Load average {load:.1f}: other work on this computer slows these figures.")


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
