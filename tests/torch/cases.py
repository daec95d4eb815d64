"""Models and strategies for the tests of the evolver."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from ratoon.evolution import LayerwiseStrategy, RewiringSchedule, StatefulStrategy
from ratoon.topology import Rewiring
from ratoon.torch import Evolver, SparseLinear

EVERY_STEP = RewiringSchedule(every=1, unit="step")


def small_model(dtype=torch.float32):
    return nn.Sequential(
        SparseLinear(30, 40, density=0.2, seed=0, dtype=dtype),
        nn.ReLU(),
        SparseLinear(40, 20, density=0.2, seed=1, dtype=dtype),
        nn.ReLU(),
        nn.Linear(20, 5, dtype=dtype),
    )


def one_step(model, optimizer, x, evolver=None):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    if evolver is not None:
        evolver.step()
    return loss.item()


def as_dense(layer, values):
    """Return per-connection values as a matrix, NaN where there is no connection."""
    matrix = np.full(layer.topology.shape, np.nan)
    matrix[layer.topology.pairs()] = values.detach().numpy()
    return matrix


class Resize(LayerwiseStrategy):
    """Leave every layer half its connections, or double them."""

    def __init__(self, factor):
        self.factor = factor

    @property
    def schedule(self):
        return RewiringSchedule(unit="step")

    def rewire_layer(self, layer, clock, seed):
        n = layer.topology.n_connections
        kept = np.arange(0, n, 2 if self.factor < 1 else 1)
        return layer.topology.regrow(kept, int(self.factor * n) - kept.size, seed=seed)


class Listen(LayerwiseStrategy):
    """Change nothing; remember the gradients that one could have grown by."""

    def __init__(self):
        self.gradients = []

    @property
    def schedule(self):
        return RewiringSchedule(every=2, unit="step")

    def rewire_layer(self, layer, clock, seed):
        activations, errors = layer.signals()
        self.gradients.append(activations @ errors.T)
        return Rewiring.unchanged(layer.topology)


class Counting(StatefulStrategy):
    """Count what one is called for."""

    n_watched = 2

    @property
    def schedule(self):
        return RewiringSchedule(every=4, unit="step")

    def start_state(self, layers, seed):
        return {"watched": np.zeros(1, dtype=np.int64), "rewired": np.zeros(1, dtype=np.int64)}

    def watch(self, state, layers, clock):
        assert all(layer.signals() is not None for layer in layers)
        assert all(layer.learning_rate > 0 for layer in layers)
        return {**state, "watched": state["watched"] + 1}

    def rewire_from(self, state, layers, clock, seed):
        unchanged = [Rewiring.unchanged(layer.topology) for layer in layers]
        return unchanged, {**state, "rewired": state["rewired"] + 1}


def fresh(strategy, seed=3):
    model = small_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    every = RewiringSchedule(every=2, unit="step")
    return model, optimizer, Evolver(model, optimizer, strategy, every, total_steps=40, seed=seed)
