"""All stages of one large network: building, training, rewiring, prediction, saving, loading."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from common.memory import forget_peak, peak_mb, resident_mb
from common.models import Model
from common.timing import Timing
from ratoon.evolution import SET, Clock, Static
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD
from ratoon.storage import Document, read_document, write_document
from ratoon.training import Training, TrainingData, TrainingPlan


class Phases:
    """Times and memory of one phase after the other."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.earlier_peak_mb = 0.0

    def run(self, name: str, work: Any, **facts: Any) -> Any:
        """Do the work of a phase and note what it took."""
        self.earlier_peak_mb = max(self.earlier_peak_mb, peak_mb())
        forget_peak()
        timing = Timing()
        result = timing.add(work)
        self.rows.append(
            {
                "phase": name,
                "wall_s": timing.wall_s,
                "cpu_s": timing.cpu_s,
                "peak_mb": peak_mb(),
                "after_mb": resident_mb(),
                **facts,
            }
        )
        return result

    @property
    def peak_mb(self) -> float:
        """The highest memory of all phases."""
        return max([self.earlier_peak_mb, *(row["peak_mb"] for row in self.rows)])


def live(
    model: dict[str, Any],
    threads: int,
    batches: list[int],
    minibatches: int,
    folder: str | None,
    momentum: float = 0.9,
    dtype: str = "float32",
) -> dict[str, Any]:
    """Lead a network through its life here and now; the caller gives it a fresh process.

    ``folder`` is where the file goes for the time it is needed; None leaves saving out.
    """
    shape = Model.from_dict(model)
    phases = Phases()
    empty_mb = resident_mb()
    rng = np.random.default_rng(0)
    n_samples = max(batches) * minibatches
    x = rng.standard_normal((n_samples, shape.widths[0]), dtype=np.float32)
    targets = np.eye(shape.widths[-1], dtype=np.float32)[
        rng.integers(shape.widths[-1], size=n_samples)
    ]
    data_mb = (x.nbytes + targets.nbytes) / 1e6
    network = phases.run("build", lambda: start(shape, threads, momentum, dtype))
    for batch in batches:
        n = batch * minibatches
        training = training_of(network, shape, x[:n], targets[:n], batch, threads, momentum)
        phases.run(f"train, batch {batch}", training.run_epoch, steps=minibatches)
    phases.run("rewire", lambda: rewire(network, threads))
    few = x[: min(8, n_samples)]
    before = phases.run("predict", lambda: network.outputs(few, n_threads=threads))
    facts = {
        "connections": network.n_connections,
        "neurons": shape.n_neurons,
        "parameter_bytes_per_connection": sum(layer.nbytes() for layer in network.layers)
        / network.n_connections,
    }
    if folder is not None:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            path = Path(place) / "network.ratoon"
            phases.run("save", lambda: write_document(Document({}, networks=[network]), path))
            facts["file_mb"] = os.path.getsize(path) / 1e6
            # The network is deleted before it is loaded, as in real use.
            del network, training
            [loaded] = phases.run("load", lambda: read_document(path)).networks
        after = phases.run("predict again", lambda: loaded.outputs(few, n_threads=threads))
        facts["same_after_loading"] = bool(np.array_equal(before, after))
    return {
        **facts,
        "threads": threads,
        "phases": phases.rows,
        "data_mb": data_mb,
        "empty_process_mb": empty_mb,
        "peak_rss_mb": phases.peak_mb,
        "beside_data_mb": phases.peak_mb - data_mb,
        "peak_bytes_per_connection": phases.peak_mb * 1e6 / facts["connections"],
    }


def start(model: Model, threads: int, momentum: float = 0.9, dtype: str = "float32") -> SparseMLP:
    """Draw the network, with arrays for its momentum if it has one."""
    network = SparseMLP.start(
        model.widths, epsilon=model.epsilon, init="set", seed=0, dtype=dtype, n_threads=threads
    )
    for layer in network.layers:
        layer.clear_state(1 if momentum > 0 else 0)
    return network


def training_of(
    network: SparseMLP,
    model: Model,
    x: Any,
    targets: Any,
    batch: int,
    threads: int,
    momentum: float = 0.9,
) -> Training:
    """Return the training of one epoch of these samples."""
    plan = TrainingPlan(
        optimizer=SGD(momentum=momentum, weight_decay=0.0002, decay="released"),
        learning_rate=model.learning_rate,
        batch_size=batch,
        n_epochs=10,
        evolution=Static(),
        n_threads=threads,
    )
    return Training(network, TrainingData.of(x, targets, np.float32), plan)


def rewire(network: SparseMLP, threads: int) -> None:
    """Let every layer that is not full rewire once, as SET does between epochs."""
    for seed, layer in enumerate(network.layers):
        if not layer.topology.is_full:
            SET(zeta=0.3).rewire_in_place(layer, Clock(1, 1, 10), seed, threads)


def table_rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the lines of a table of phases."""
    return [
        {
            "phase": row["phase"],
            "wall s": row["wall_s"],
            "CPU s": row["cpu_s"],
            "s per minibatch": row["wall_s"] / row["steps"] if "steps" in row else None,
            "peak MB": row["peak_mb"],
            "MB afterwards": row["after_mb"],
        }
        for row in found["phases"]
    ]
