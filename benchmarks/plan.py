"""Estimates of `plan()` compared with fits: memory, seconds per step and per epoch.

Every shape is planned in one fresh process and fitted in another.  Memory is the peak of
resident memory over the fit less what was resident before it, samples included; time is CPU time on
one thread, which waiting for a core does not change: of a step the least over epochs.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from common.isolate import run_fresh
from common.machine import MachineState, describe
from common.memory import forget_peak, peak_mb, resident_mb
from common.models import PAPER, Model, square
from common.tables import markdown, parser, write_json

from ratoon import SparseMLPClassifier
from ratoon.training import Callback

EXAMPLES = """\
  plan.py --json plan.json              two minutes
  plan.py --models b,d --squares 1e3    a few seconds
"""
MOST_BYTES = 200_000_000
"""Of samples; an epoch has no more steps than these allow."""


class Stopwatch(Callback):
    """CPU seconds of every epoch."""

    def __init__(self) -> None:
        self.epochs: list[float] = []

    def on_fit_begin(self, training: Any) -> None:
        """Start."""
        self._at = time.process_time()

    def on_epoch_end(self, training: Any, record: Any) -> None:
        """Take the time."""
        now = time.process_time()
        self.epochs.append(now - self._at)
        self._at = now


def fit_of(model: Model) -> tuple[tuple[int, ...], dict[str, Any], int]:
    """Return hidden widths, parameters and number of samples of a fit."""
    n_in, *hidden, _ = model.widths
    n_steps = min(200, 5_000_000 // model.connections, MOST_BYTES // (4 * model.batch * n_in))
    how: dict[str, Any] = {
        "epsilon": model.epsilon,
        "density": model.density,
        "batch_size": model.batch,
        "solver": "sgd",
        "learning_rate_init": 1e-3,
        "init": "set",
        "random_state": 0,
        "n_jobs": 1,
    }
    return tuple(hidden), how, max(4, n_steps) * model.batch


def predict(model: dict[str, Any]) -> dict[str, Any]:
    """Plan one shape."""
    shape = Model.from_dict(model)
    hidden, how, n_samples = fit_of(shape)
    planned = SparseMLPClassifier(hidden, **how).plan(
        shape.widths[0], n_samples=n_samples, n_outputs=shape.widths[-1]
    )
    return {
        "connections": planned.n_connections,
        "planned_mb": planned.peak_bytes / 1e6,
        "planned_step_ms": 1e3 * planned.seconds_per_step,
        "planned_epoch_s": planned.seconds_per_epoch,
    }


def measure(model: dict[str, Any], n_epochs: int) -> dict[str, Any]:
    """Fit one shape, with rewirings and without."""
    shape = Model.from_dict(model)
    hidden, how, n_samples = fit_of(shape)
    n_in, n_out = shape.widths[0], shape.widths[-1]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_in), dtype=np.float32)
    y = np.resize(np.arange(n_out), n_samples)
    small = {**how, "max_iter": 2, "batch_size": 2}
    SparseMLPClassifier((8,), **small).fit(X[:n_out, :9], y[:n_out])  # warm up
    forget_peak()
    before = resident_mb()
    watches = {"set": Stopwatch(), "static": Stopwatch()}
    memory_mb = 0.0
    for evolution, watch in watches.items():
        more = {"max_iter": n_epochs, "callbacks": watch, "evolution": evolution}
        SparseMLPClassifier(hidden, **how, **more).fit(X, y)
        memory_mb = memory_mb or peak_mb() - before
    n_steps = n_samples // shape.batch
    return {
        "steps": n_steps,
        "measured_mb": memory_mb,
        "measured_step_ms": 1e3 * min(watches["static"].epochs[1:]) / n_steps,
        # Not every epoch ends in a rewiring, so this is the mean.
        "measured_epoch_s": sum(watches["set"].epochs) / n_epochs,
    }


def both(shape: Model, budget_s: float) -> dict[str, Any]:
    """Plan in one process and fit in two others: a plan, too, leaves memory behind.

    Where arrays come to lie in memory decides up to a third of a step's time; the luckier of the
    two fits counts, and the larger of their peaks.
    """
    planned = run_fresh("plan:predict", model=shape.to_dict())
    if "failed" in planned:
        raise SystemExit(f"{shape.name}: {planned['failed']}")
    n_epochs = int(np.clip(budget_s / planned["planned_epoch_s"], 4, 50))
    fits = [run_fresh("plan:measure", model=shape.to_dict(), n_epochs=n_epochs) for _ in range(2)]
    for fit in fits:
        if "failed" in fit:
            raise SystemExit(f"{shape.name}: {fit['failed']}")
    of_memory = max(fit["measured_mb"] for fit in fits)
    least = {name: min(fit[name] for fit in fits) for name in fits[0]}
    return {**planned, **least, "measured_mb": of_memory}


def row_of(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """Return a shape's line of the table."""
    return {
        "network": name,
        "connections": found["connections"],
        "planned MB": found["planned_mb"],
        "measured MB": found["measured_mb"],
        "planned / measured": found["planned_mb"] / found["measured_mb"],
        "planned ms per step": found["planned_step_ms"],
        "measured ms": found["measured_step_ms"],
        "planned / measured step": found["planned_step_ms"] / found["measured_step_ms"],
        "planned / measured epoch": found["planned_epoch_s"] / found["measured_epoch_s"],
    }


def main() -> None:
    """Measure, print a table, write JSON."""
    arguments = parser(__doc__ or "", EXAMPLES)
    add = arguments.add_argument
    add("--models", default="b,c,f,d,a", help="of a to f, in commas")
    add("--squares", default="1e3,1e4,1e5,2.5e5", help="widths of square networks, in commas")
    add("--budget", type=float, default=2.0, help="seconds of training per network")
    add("--markdown", metavar="OUT", help="write the table to this file as well")
    given = arguments.parse_args()
    shapes = [PAPER[name] for name in given.models.split(",") if name]
    shapes += [square(int(float(width))) for width in given.squares.split(",") if width]
    networks: dict[str, Any] = {}
    with MachineState() as machine:
        for shape in shapes:
            found = networks[shape.name] = both(shape, given.budget)
            print(markdown([row_of(shape.name, found)]).splitlines()[-1], flush=True)
    text = markdown([row_of(*item) for item in networks.items()])
    text += "\n\n" + describe(machine.facts())
    print("\n" + text)
    if given.markdown:
        with open(given.markdown, "w") as file:
            file.write(text + "\n")
    write_json(given.json, {"machine": machine.facts(), "networks": networks})


if __name__ == "__main__":
    main()
