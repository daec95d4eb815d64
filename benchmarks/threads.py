"""The speed-up of two threads, compared with that of two independent processes.

Turn by turn in rounds of a few seconds: one process on one thread; the same process on two; two
processes of one thread each at the same time, which share nothing but the machine; and, next to a
process that keeps one core busy, one thread and two again.  Two processes are the ceiling: where
they together do only 1.3 times the work of one, the cores are slowed by each other or by
neighbours, and no program with two threads gains more.

Before and after each turn of two threads the distance of the cores is taken, as by ``cores.py``:
rounds in which they shared a cache are reported separately.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from common.machine import MachineState, describe
from common.models import SHAPES, Model, chosen
from common.tables import markdown, parser, write_json
from cores import build, round_trip_ns
from epoch import training_of
from references.start import samples_of

from ratoon.network import SparseMLP

EXAMPLES = """\
  threads.py --models a,c,e --json threads.json
  threads.py --models c --rounds 20
  threads.py --models wide1-32,wide1-128,wide5-128 --seconds 0.3 --minibatches 8
"""
FRESH = multiprocessing.get_context("spawn")
NEAR_NS = 200.0
"""Cores that share a third-level cache are less than this apart, others more."""


def serve(pipe: Connection, model: dict[str, Any], minibatches: int) -> None:
    """Train the model when asked to: read threads and seconds, write seconds per minibatch."""
    shape = Model.from_dict(model)
    x, targets = samples_of(shape, min(shape.n_train, minibatches * shape.batch))
    size = {"epsilon": shape.epsilon, "density": shape.density}
    network = SparseMLP.start(shape.widths, **size, init="set", seed=0)
    trainings = {n: training_of(network, shape, x, targets, n) for n in (1, 2)}
    n_steps = -(-len(x) // shape.batch)
    for training in trainings.values():
        training.run_epoch()
    pipe.send("ready")
    while (order := pipe.recv()) is not None:
        threads, seconds = order
        n_epochs, started = 0, time.perf_counter()
        while n_epochs == 0 or time.perf_counter() - started < seconds:
            trainings[threads].run_epoch()
            n_epochs += 1
        pipe.send((time.perf_counter() - started) / (n_epochs * n_steps))


def spin(ready: Connection) -> None:
    """Keep one core busy."""
    ready.send(True)
    while True:
        pass


@contextmanager
def busy_core() -> Iterator[None]:
    """Keep one core busy within the block."""
    here, there = FRESH.Pipe()
    process = FRESH.Process(target=spin, args=(there,), daemon=True)
    process.start()
    here.recv()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def measure(
    model: Model, rounds: int, seconds: float, minibatches: int, distance: Callable[[], float]
) -> dict[str, Any]:
    """Return milliseconds per minibatch of every kind, round by round, and their ratios."""
    pipes, processes = [], []
    for _ in range(2):
        here, there = FRESH.Pipe()
        arguments = (there, model.to_dict(), minibatches)
        processes.append(FRESH.Process(target=serve, args=arguments, daemon=True))
        processes[-1].start()
        pipes.append(here)
    for pipe in pipes:
        pipe.recv()

    def timed(threads: int, workers: list[Connection]) -> list[float]:
        for worker in workers:
            worker.send((threads, seconds))
        return [1e3 * worker.recv() for worker in workers]

    kinds: dict[str, list[float]] = {}
    apart_ns: list[tuple[float, float]] = []
    for _ in range(rounds):
        kinds.setdefault("one", []).extend(timed(1, pipes[:1]))
        before = distance()
        kinds.setdefault("two", []).extend(timed(2, pipes[:1]))
        apart_ns.append((before, distance()))
        # What two processes do in a second, as the time one alone would need for each.
        rates = [1 / ms for ms in timed(1, pipes)]
        kinds.setdefault("two_processes", []).append(1 / sum(rates))
    with busy_core():
        for _ in range(rounds):
            kinds.setdefault("one_beside_busy", []).extend(timed(1, pipes[:1]))
            kinds.setdefault("two_beside_busy", []).extend(timed(2, pipes[:1]))
    for pipe, process in zip(pipes, processes, strict=True):
        pipe.send(None)
        process.join()
    found = ratios(kinds)
    return {
        "ms_by_round": kinds,
        "apart_ns_by_round": apart_ns,
        **found,
        **by_distance(found["gain_by_round"], apart_ns),
    }


def by_distance(
    gains: list[float], apart_ns: list[tuple[float, float]]
) -> dict[str, float | int | None]:
    """Return the median gain of rounds with near cores before and after, and with far ones.

    >>> by_distance([1.7, 1.0, 1.2], [(60, 55), (350, 340), (60, 340)])
    {'near_gain': 1.7, 'near_rounds': 1, 'far_gain': 1.0, 'far_rounds': 1}
    """
    near = [g for g, apart in zip(gains, apart_ns, strict=True) if max(apart) < NEAR_NS]
    far = [g for g, apart in zip(gains, apart_ns, strict=True) if min(apart) >= NEAR_NS]
    return {
        "near_gain": statistics.median(near) if near else None,
        "near_rounds": len(near),
        "far_gain": statistics.median(far) if far else None,
        "far_rounds": len(far),
    }


def ratios(kinds: dict[str, list[float]]) -> dict[str, Any]:
    """Return gains, the median over rounds, each taken within its round.

    >>> ratios({"one": [2.0], "two": [1.25], "two_processes": [1.0],
    ...         "one_beside_busy": [2.0], "two_beside_busy": [2.5]})["gain"]
    1.6
    """

    def within(over: str, under: str) -> list[float]:
        return [a / b for a, b in zip(kinds[over], kinds[under], strict=True)]

    found = {
        "gain": within("one", "two"),
        "ceiling": within("one", "two_processes"),
        "of_ceiling": within("two_processes", "two"),
        "beside_busy": within("two_beside_busy", "one_beside_busy"),
    }
    return {name: statistics.median(values) for name, values in found.items()} | {
        f"{name}_by_round": values for name, values in found.items()
    }


def main() -> None:
    """Measure the models asked for, print a table, write JSON."""
    arguments = parser(__doc__ or "", EXAMPLES)
    arguments.add_argument("--models", default="a,c", help="a to f, wide1-128, ..., in commas")
    arguments.add_argument("--rounds", type=int, default=10)
    arguments.add_argument("--seconds", type=float, default=0.5, help="per kind and round")
    arguments.add_argument("--minibatches", type=int, default=25, help="of an epoch")
    given = arguments.parse_args()
    results: dict[str, Any] = {}
    rows = []
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        raise SystemExit("two threads have one core here; there is nothing to compare")
    with tempfile.TemporaryDirectory() as folder, MachineState() as machine:
        distance = partial(round_trip_ns, build(Path(folder)), *cores)
        for model in chosen(given.models, SHAPES):
            found = measure(model, given.rounds, given.seconds, given.minibatches, distance)
            results[model.name] = found
            kinds = found["ms_by_round"]
            rows.append(
                {
                    "model": model.name,
                    "one thread ms": min(kinds["one"]),
                    "two threads ms": min(kinds["two"]),
                    "two threads gain": found["gain"],
                    "least to most": _range(found["gain_by_round"]),
                    "near cores": found["near_gain"],
                    "rounds": found["near_rounds"],
                    "far cores": found["far_gain"],
                    "of rounds": found["far_rounds"],
                    "two processes gain": found["ceiling"],
                    "of them": _range(found["ceiling_by_round"]),
                    "threads / processes": found["of_ceiling"],
                    "beside a busy core, two / one": found["beside_busy"],
                }
            )
            print(markdown(rows[-1:]), flush=True)
    print("\n" + markdown(rows) + "\n\n" + describe(machine.facts()))
    write_json(given.json, {"machine": machine.facts(), "models": results})


def _range(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


if __name__ == "__main__":
    main()
