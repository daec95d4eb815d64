"""Train one cell with ratoon."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dynamic.cells import GRANET_START, METHODS, Cell, epsilon_for
from dynamic.pieces import Pieces
from dynamic.sets import Task
from ratoon.errors import DivergenceError
from ratoon.evolution import Strategy
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD, Adam, cosine
from ratoon.samples.augment import Augment
from ratoon.training import Training, TrainingData, TrainingPlan


def linear(progress: float) -> float:
    """Fall from 1 to 0 in a straight line."""
    return 1.0 - progress


SCHEDULES: dict[str, Callable[[float], float]] = {"linear": linear, "cosine": cosine}


def targets_of(task: Task, smoothing: float) -> Any:
    """Return one row per sample: 1 for its class, less what smoothing gives to all classes."""
    n_classes = task.widths[-1]
    one_hot = np.eye(n_classes, dtype=np.float32)[task.y]
    return one_hot * np.float32(1 - smoothing) + np.float32(smoothing / n_classes)


def augment_of(text: str | None, task: Task) -> Augment | None:
    """Return the changes of images that a recipe names."""
    return None if text is None else replace(Augment.from_text(text), shape=task.image)


def plan_of(cell: Cell, task: Task, strategy: Strategy) -> TrainingPlan:
    """Return the plan of a recipe."""
    recipe = cell.recipe
    optimizer = (SGD if recipe.optimizer == "sgd" else Adam)(weight_decay=recipe.weight_decay)
    return TrainingPlan(
        optimizer=optimizer,
        learning_rate=recipe.learning_rate,
        schedule=SCHEDULES[recipe.schedule],
        batch_size=recipe.batch,
        n_epochs=round(recipe.epochs),
        evolution=strategy,
        seed=cell.seed,
        augment=augment_of(recipe.augment, task),
    )


def strategy_of(cell: Cell) -> Strategy:
    """Return the strategy of a cell."""
    made = METHODS[cell.method]()
    return replace(made, **cell.recipe.strategy) if cell.recipe.strategy else made  # type: ignore[type-var]


def train(cell: Cell, task: Task, pieces: Pieces = Pieces()) -> dict[str, Any]:  # noqa: B008
    """Train, and record after every epoch: CPU seconds, accuracy, connections."""
    targets = targets_of(task, cell.recipe.smoothing)
    data = TrainingData.of(task.x, targets, np.float32, rows=task.train)
    plan = plan_of(cell, task, strategy_of(cell))
    reached: dict[str, Any] = pieces.read(cell) or {
        "state": start_of(cell, task),
        "accuracy": [],
        "seconds": [],
        "connections": [],
        "megabytes": 0.0,
    }
    training = Training(reached.pop("state"), data, plan)
    network = training.network
    test, y_test = task.x[task.test], task.y[task.test]
    while training.epochs_done < plan.n_epochs:
        before, started = network.n_connections, time.process_time()
        try:
            training.run_epoch()
        except DivergenceError:
            reached["accuracy"].append(float("nan"))
            break
        reached["seconds"].append(time.process_time() - started)
        scored = float(np.mean(network.outputs(test).argmax(axis=1) == y_test))
        reached["accuracy"].append(scored)
        reached["connections"].append((before + network.n_connections) / 2)
        megabytes = sum(layer.nbytes() for layer in network.layers) / 1e6
        reached["megabytes"] = max(reached["megabytes"], megabytes)
        if training.epochs_done < plan.n_epochs and pieces.is_over:
            pieces.stop(cell, {**reached, "state": training.state})
    return {
        **reached,
        "final_connections": network.n_connections,
        "loss": training.history.column("loss"),
    }


def start_of(cell: Cell, task: Task) -> SparseMLP:
    """Return the network before training."""
    density = cell.density * (GRANET_START if cell.method == "granet" else 1.0)
    return SparseMLP.start(
        task.widths,
        epsilon=epsilon_for(task.widths, density),
        activation=cell.recipe.activation,
        slope=cell.recipe.slope,
        dropout=cell.recipe.dropout,
        scaling=task.scaling(),
        seed=cell.seed,
    )
