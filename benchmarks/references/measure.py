"""Time per step and memory of one reference on one model, in a process of its own."""

from __future__ import annotations

import gc
import time
from typing import Any

import numpy as np
from common.isolate import run_fresh
from common.memory import forget_peak, peak_mb
from common.models import Model
from common.timing import Timing, repeat

from references import is_available, reference_class
from references.base import Reference
from references.start import samples_of, start_of

MOST_STEPS = 50
MOST_BYTES = 200_000_000
"""Of samples; a block has no more steps than these allow."""
BLOCK_S = 0.25
"""Steps are timed in blocks of about this long, so that clocks and calls do not matter."""


def measure_fresh(
    name: str,
    model: Model,
    *,
    n_threads: int = 1,
    budget_s: float = 10.0,
    hidden: bool = False,
    limit_gb: float = 8.0,
    timeout_s: float = 600.0,
) -> dict[str, Any]:
    """Measure in a fresh process, unless the package is missing or the model cannot fit."""
    if not is_available(name):
        return {"skipped": "not installed"}
    reason = reference_class(name).why_not(model, limit_gb * 1e9)
    if reason is not None:
        return {"skipped": reason}
    found = run_fresh(
        "references.measure:measure",
        n_threads=n_threads,
        timeout_s=timeout_s,
        name=name,
        model=model.to_dict(),
        budget_s=budget_s,
        hidden=hidden,
        threads=n_threads,
    )
    return {"skipped": found["failed"]} if "failed" in found else found


def measure(
    name: str, model: dict[str, Any], budget_s: float, hidden: bool, threads: int
) -> dict[str, Any]:
    """Measure here and now: milliseconds per step, the least over blocks of steps."""
    shape = Model.from_dict(model)
    reference, build = built(name, shape)
    # What it took to come here is not what a step needs.
    gc.collect()
    forget_peak()
    most_steps = MOST_BYTES // (4 * shape.batch * shape.widths[0])
    x, targets = samples_of(shape, shape.batch * max(1, min(MOST_STEPS, most_steps)))
    n_steps = steps_per_block(reference, x, targets, shape.batch)
    rows = n_steps * shape.batch
    timing = repeat(
        lambda: reference.train(x[:rows], targets[:rows], shape.batch),
        repeats=3,
        at_least_s=budget_s,
        budget_s=2 * budget_s,
    )
    found = {
        "step_ms": 1e3 * timing.wall_s / n_steps,
        "step_cpu_ms": 1e3 * timing.cpu_s / n_steps,
        "step_median_ms": 1e3 * timing.median_s / n_steps,
        "steps_timed": n_steps * len(timing.walls),
        "build_s": build.wall_s,
        "connections": shape.connections,
        "threads": threads,
        "data_mb": (x.nbytes + targets.nbytes) / 1e6,
        "step_rss_mb": peak_mb(),
    }
    if hidden:
        found.update(hidden_layers(reference, x[: shape.batch], shape.widths[-2], budget_s))
    return found


def built(name: str, model: Model) -> tuple[Reference, Timing]:
    """Return the reference at its start, and how long it took to convert the start to its form."""
    start = start_of(model, as_scipy=name != "ratoon")
    if name != "ratoon":
        start.network = None
    timing = Timing()
    return timing.add(lambda: reference_class(name)(start)), timing


def steps_per_block(reference: Any, x: Any, targets: Any, batch: int) -> int:
    """Warm up, and find how many steps take about `BLOCK_S`."""
    reference.train(x[:batch], targets[:batch], batch)
    started = time.perf_counter()
    reference.train(x[:batch], targets[:batch], batch)
    one = time.perf_counter() - started
    return max(1, min(len(x) // batch, round(BLOCK_S / max(one, 1e-6))))


def hidden_layers(reference: Any, x: Any, width: int, budget_s: float) -> dict[str, Any]:
    """Time the hidden layers alone: forward, backward and update, from a given error."""
    drawn = np.random.default_rng(1).standard_normal((x.shape[0], width), dtype=np.float32)
    entered = reference.enter_hidden(x, drawn * np.float32(1e-3))

    def block() -> None:
        reference.hidden_steps(entered, n_steps)

    n_steps = 1
    first = repeat(block, repeats=2)
    n_steps = max(1, round(BLOCK_S / first.wall_s))
    timing = repeat(block, repeats=3, at_least_s=budget_s, budget_s=2 * budget_s)
    return {
        "hidden_ms": 1e3 * timing.wall_s / n_steps,
        "hidden_cpu_ms": 1e3 * timing.cpu_s / n_steps,
    }
