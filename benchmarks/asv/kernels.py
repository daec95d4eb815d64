"""Kernels and rewirings over the history of the project; `asv run`, or `make asv` for this commit.

These compare ratoon with itself.  Comparisons with other libraries are the scripts in benchmarks/.
"""

import numpy as np

from ratoon import kernels
from ratoon.evolution import SET, Clock
from ratoon.kernels import Rule, Step
from ratoon.layers import make_layer
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD
from ratoon.training import Training, TrainingData, TrainingPlan

WIDTH = 4000


class Layer:
    """One layer of 4,000 x 4,000, forward and backward."""

    params = ([0.01, 0.1], [1, 8, 32, 128])
    param_names = ("density", "batch")

    def setup(self, density, batch):
        self.layer = make_layer((WIDTH, WIDTH), density=density, seed=0)
        self.layer.clear_state(1)
        rng = np.random.default_rng(0)
        self.x = rng.standard_normal((WIDTH, batch), dtype=np.float32)

    def time_forward(self, density, batch):
        layer = self.layer
        kernels.forward(layer.topology, layer.weights, layer.bias, self.x)

    def time_backward(self, density, batch):
        layer = self.layer
        kernels.backward(
            layer.topology,
            Rule.MOMENTUM,
            layer.weights,
            self.x,
            self.x,
            first=layer.state[0],
            step=Step(lr=1e-9, mu=0.9),
        )


class Epoch:
    """One epoch of 784-1568-1568-1568-10 at 1 %, batches of 32."""

    params = ("relu", "tanh", "silu")
    param_names = ("activation",)

    def setup(self, activation):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((2000, 784), dtype=np.float32)
        y = np.eye(10, dtype=np.float32)[rng.integers(0, 10, 2000)]
        network = SparseMLP.start(
            (784, 1568, 1568, 1568, 10), density=0.01, seed=0, activation=activation
        )
        plan = TrainingPlan(optimizer=SGD(0.9), learning_rate=1e-3, n_epochs=1000)
        self.training = Training(network, TrainingData.of(x, y, np.float32), plan)

    def time_epoch(self, activation):
        self.training.run_epoch()


class Rewiring:
    """One rewiring by SET, in place."""

    params = (4_000, 40_000)
    param_names = ("width",)

    def setup(self, width):
        self.layer = make_layer((width, width), epsilon=10, seed=0)
        self.layer.clear_state(1)

    def time_set(self, width):
        SET().rewire_in_place(self.layer, Clock(0, 1, 10), 0, 1)

    def peakmem_set(self, width):
        SET().rewire_in_place(self.layer, Clock(0, 1, 10), 0, 1)
