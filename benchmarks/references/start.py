"""The common start of all references: topology, weights, samples, minibatches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from common.models import Model
from numpy.typing import NDArray

from ratoon.network import SparseMLP

Array = NDArray[np.float32]


MOST_RATE = 0.005


@dataclass(frozen=True)
class Hyper:
    """Hyperparameters of the paper's update."""

    lr: float
    momentum: float = 0.9
    decay: float = 0.0002


@dataclass
class Start:
    """A network before its first step, as SciPy matrices (inputs x outputs) and biases."""

    matrices: list[scipy.sparse.csr_array]
    hyper: Hyper
    network: SparseMLP | None = None

    @property
    def connections(self) -> int:
        """How many connections there are in all."""
        return sum(matrix.nnz for matrix in self.matrices)


def start_of(model: Model, *, seed: int = 0, as_scipy: bool = True) -> Start:
    """Draw a model's start: the same for the same seed."""
    network = SparseMLP.start(
        model.widths, epsilon=model.epsilon, density=model.density, init="set", seed=seed
    )
    matrices = [layer.to_csr() for layer in network.layers] if as_scipy else []
    # Without the dropout it goes with, the paper's 0.05 diverges from some starts, and a network of
    # what is no number is no measure; the time of a step does not depend on the rate.
    return Start(matrices, Hyper(min(model.learning_rate, MOST_RATE)), network)


def samples_of(model: Model, n_samples: int, *, seed: int = 0) -> tuple[Array, Array]:
    """Draw samples of the model's shape, and their classes as one-hot rows."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_samples, model.widths[0]), dtype=np.float32)
    classes = rng.integers(model.widths[-1], size=n_samples)
    return x, np.eye(model.widths[-1], dtype=np.float32)[classes]
