"""Seconds per epoch of the paper's models, compared with SciPy and NumPy.

Samples are random, of the shapes of the paper's data.  Every model is measured in a process of its
own; figures are the minimum over repeats.  ``train_s`` and its like are wall times; ``_cpu_s``
is CPU time, which on one thread is more reliable when the machine is busy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common.isolate import run_fresh
from common.machine import MachineState, describe
from common.memory import peak_mb, resident_mb
from common.models import PAPER, Model, chosen
from common.tables import markdown, numbers, parser, write_json
from common.timing import Timing, repeat
from references import REFERENCES
from references.measure import measure_fresh
from references.start import samples_of, start_of

from ratoon.evolution import SET, Clock, Static
from ratoon.evolution.contrib.paper import rewire_vectorised
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD
from ratoon.training import Training, TrainingData, TrainingPlan

EXAMPLES = """\
  epoch.py --models a,b,c,d,f --threads 1 --json epoch.json
  epoch.py --models b --repeats 20                       a second or two
  epoch.py --models e --threads 1,2 --minibatches 20     part of an epoch, scaled
"""
HIDDEN_OF = "a"
"""The model whose hidden layers are timed apart, against all references."""
ROUNDS = 3
"""How often all references have their turn there."""


def measure(
    model: dict[str, Any], threads: int, repeats: int, budget_s: float, minibatches: int
) -> dict[str, Any]:
    """Measure one model here and now; the caller gives it a fresh process."""
    shape = Model.from_dict(model)
    n_minibatches = min(minibatches or shape.minibatches, shape.minibatches)
    scale = shape.minibatches / n_minibatches
    n_train = min(shape.n_train, n_minibatches * shape.batch)
    empty_mb = resident_mb()
    x, targets = samples_of(shape, n_train)
    x_test, _ = samples_of(shape, shape.n_test, seed=1)
    build = Timing()
    network = build.add(
        lambda: SparseMLP.start(
            shape.widths, epsilon=shape.epsilon, init="set", seed=0, n_threads=threads
        )
    )
    training = training_of(network, shape, x, targets, threads)
    often = {"repeats": repeats, "at_least_s": min(3.0, budget_s / 4), "budget_s": budget_s}
    train = repeat(training.run_epoch, **often)
    rewire = time_rewiring(network, threads, often)
    test = repeat(lambda: network.outputs(x_test, n_threads=threads), **often)
    data_mb = (x.nbytes + targets.nbytes + x_test.nbytes) / 1e6
    return {
        "threads": threads,
        "train_s": scale * train.wall_s,
        "train_cpu_s": scale * train.cpu_s,
        "train_median_s": scale * train.median_s,
        "rewire_s": rewire.wall_s,
        "rewire_cpu_s": rewire.cpu_s,
        "test_s": test.wall_s,
        "test_cpu_s": test.cpu_s,
        "build_s": build.wall_s,
        "connections": network.n_connections,
        "neurons": shape.n_neurons,
        "repeats": len(train.walls),
        "minibatches": shape.minibatches,
        "minibatches_measured": n_minibatches,
        "step_ms": 1e3 * train.best(threads) / n_minibatches,
        "data_mb": data_mb,
        "empty_process_mb": empty_mb,
        "beside_data_mb": peak_mb() - data_mb,
    }


def training_of(
    network: SparseMLP, shape: Model, x: np.ndarray, targets: np.ndarray, threads: int
) -> Training:
    """Return a training of the network as the paper has it, but without rewiring."""
    plan = TrainingPlan(
        optimizer=SGD(momentum=0.9, weight_decay=0.0002, decay="released"),
        learning_rate=shape.learning_rate,
        batch_size=shape.batch,
        n_epochs=10**6,
        evolution=Static(),
        n_threads=threads,
    )
    return Training(network, TrainingData.of(x, targets, np.float32), plan)


def time_rewiring(network: SparseMLP, threads: int, often: dict[str, Any]) -> Timing:
    """Time what training does between two epochs: SET, in place, in every layer not full."""
    strategy, seeds = SET(zeta=0.3), iter(range(10**9))

    def rewire() -> None:
        for layer in network.layers:
            if not layer.topology.is_full:
                strategy.rewire_in_place(layer, Clock(1, 1, 10), next(seeds), threads)

    return repeat(rewire, **often)


def scipy_epoch(model: Model, threads: int, budget_s: float) -> dict[str, Any]:
    """Measure steps of SciPy + NumPy, scaled to an epoch, and rewiring as the paper has it."""
    found = measure_fresh("SciPy + NumPy", model, n_threads=threads, budget_s=budget_s)
    if "skipped" in found:
        return found
    rewiring = run_fresh("epoch:measure_paper_rewiring", model=model.to_dict(), budget_s=budget_s)
    return {
        "rewire_s": rewiring.get("rewire_s"),
        "rewire_cpu_s": rewiring.get("rewire_cpu_s"),
        "train_s": found["step_ms"] * model.minibatches / 1e3,
        "train_cpu_s": found["step_cpu_ms"] * model.minibatches / 1e3,
        "step_ms": found["step_ms"],
        "step_cpu_ms": found["step_cpu_ms"],
        "how": f"the fastest of blocks of steps, {found['steps_timed']} steps in all, scaled to"
        f" {model.minibatches}; a whole epoch would take at least that",
        "peak_rss_mb": found["step_rss_mb"],
    }


def measure_paper_rewiring(model: dict[str, Any], budget_s: float) -> dict[str, Any]:
    """Time the paper's Implementation II on every layer that is not full."""
    shape = Model.from_dict(model)
    rng = np.random.default_rng(0)
    layers = [
        matrix
        for matrix in start_of(shape).matrices
        if matrix.nnz < matrix.shape[0] * matrix.shape[1]
    ]
    timing = repeat(
        lambda: [rewire_vectorised(matrix, 0.3, rng) for matrix in layers],
        repeats=3,
        budget_s=budget_s,
    )
    return {"rewire_s": timing.wall_s, "rewire_cpu_s": timing.cpu_s}


def compared(found: dict[str, Any], model: Model, scipy: dict[str, Any]) -> dict[str, Any]:
    """Return the ratios that a model's figures are judged by."""
    threads = found["threads"]
    kind = "cpu_s" if threads == 1 else "s"
    train, rewire = found[f"train_{kind}"], found[f"rewire_{kind}"]
    ratios: dict[str, Any] = {"compared_by": "CPU time" if threads == 1 else "wall time"}
    if model.prototype_s is not None and threads <= 2:
        ratios["train_over_prototype"] = train / model.prototype_s[threads - 1]
    if model.target_s is not None and threads == 1:
        ratios["train_and_rewire_over_target"] = (train + rewire) / model.target_s
    if model.paper_s is not None:
        ratios["paper_over_ours"] = model.paper_s / (train + rewire)
    if "train_cpu_s" in scipy:
        ratios["scipy_over_ours"] = scipy[f"train_{kind}"] / train
        if scipy[f"rewire_{kind}"] is not None:
            ratios["scipy_rewire_over_ours"] = scipy[f"rewire_{kind}"] / rewire
    return ratios


def hidden_layers(model: Model, threads: int, budget_s: float) -> dict[str, Any]:
    """Time the hidden layers alone, forward, backward and update, by everyone who can.

    In rounds, of which each one's best counts: the machine has slow minutes, and they would strike
    whoever has his turn.
    """
    rows: dict[str, dict[str, Any]] = {}
    for _ in range(ROUNDS):
        for name in REFERENCES:
            if name in ("sparselab", "scikit-learn MLPClassifier"):
                continue
            found = measure_fresh(name, model, n_threads=threads, budget_s=budget_s, hidden=True)
            row = rows.setdefault(name, {})
            if "skipped" in found:
                row["skipped"] = found["skipped"]
            for key in ("hidden_ms", "hidden_cpu_ms"):
                if key in found:
                    rounds = row.setdefault(f"{key}_by_round", [])
                    rounds.append(found[key])
                    row[key] = min(rounds)
    kind = "hidden_cpu_ms" if threads == 1 else "hidden_ms"
    ours = rows["ratoon"].get(kind)
    for row in rows.values():
        if kind in row and ours:
            row["times_slower"] = row[kind] / ours
    return rows


def main() -> None:
    """Measure the models asked for, print tables, write JSON."""
    arguments = parser(__doc__ or "", EXAMPLES)
    arguments.add_argument("--models", default="a,b,c,d,f", help="of a to f, in commas")
    arguments.add_argument("--threads", type=numbers, default=[1], help="such as 1 or 1,2")
    arguments.add_argument("--repeats", type=int, default=5, help="epochs to take the minimum of")
    arguments.add_argument("--budget", type=float, default=60.0, help="seconds per measurement")
    arguments.add_argument(
        "--minibatches", type=int, default=0, help="measure this part of an epoch and scale it"
    )
    arguments.add_argument("--no-scipy", action="store_true", help="leave SciPy out")
    arguments.add_argument("--no-hidden", action="store_true", help="leave the hidden layers out")
    given = arguments.parse_args()

    models: dict[str, Any] = {}
    hidden: dict[str, Any] = {}
    rows = []
    with MachineState() as machine:
        for model in chosen(given.models, PAPER):
            for threads in given.threads:
                found = run_fresh(
                    "epoch:measure",
                    n_threads=threads,
                    model=model.to_dict(),
                    threads=threads,
                    repeats=given.repeats,
                    budget_s=given.budget,
                    minibatches=given.minibatches,
                )
                if "failed" in found:
                    raise SystemExit(f"model {model.name}: {found['failed']}")
                scipy = {} if given.no_scipy else scipy_epoch(model, threads, given.budget / 4)
                found["scipy_numpy"] = scipy
                found.update(compared(found, model, scipy))
                models.setdefault(model.name, dict(found)).setdefault("by_threads", {})[
                    str(threads)
                ] = found
                rows.append(row_of(model, found))
                print(markdown(rows[-1:]).splitlines()[-1], flush=True)
            if model.name == HIDDEN_OF and not given.no_hidden:
                hidden = hidden_layers(model, given.threads[0], given.budget / 10)
    print("\n" + markdown(rows))
    if hidden:
        print(f"\nHidden layers of model {HIDDEN_OF}, one step:\n")
        shown = ("hidden_ms", "hidden_cpu_ms", "times_slower", "skipped")
        print(
            markdown(
                [
                    {"by": name} | {key: row[key] for key in shown if key in row}
                    for name, row in hidden.items()
                ]
            )
        )
    print("\n" + describe(machine.facts()))
    content = {"machine": machine.facts(), "threads": given.threads, "models": models}
    write_json(given.json, {**content, "hidden_layers": hidden})


def row_of(model: Model, found: dict[str, Any]) -> dict[str, Any]:
    """Return a model's line of the table."""
    return {
        "model": model.name,
        "threads": found["threads"],
        "connections": found["connections"],
        "train s": found["train_s"],
        "train CPU s": found["train_cpu_s"],
        "rewire s": found["rewire_s"],
        "test s": found["test_s"],
        "peak MB": found["peak_rss_mb"],
        "train / prototype": found.get("train_over_prototype"),
        "(train + rewire) / target": found.get("train_and_rewire_over_target"),
        "SciPy + NumPy / ours": found.get("scipy_over_ours"),
        "paper / ours": found.get("paper_over_ours"),
    }


if __name__ == "__main__":
    main()
