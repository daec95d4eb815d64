"""A small problem, and the comparison of networks to the last bit."""

import numpy as np
from numpy.testing import assert_array_equal

from ratoon.network import SparseMLP
from ratoon.training import Callback, Training, TrainingData, TrainingPlan, TrainingState


def samples(n=41, n_features=30, n_classes=3, seed=0):
    """Random samples whose class is the largest of their first features; and one-hot targets."""
    x = np.random.default_rng(seed).normal(size=(n, n_features)).astype(np.float32)
    return x, np.eye(n_classes, dtype=np.float32)[x[:, :n_classes].argmax(axis=1)]


def start(**more):
    how = {"density": 0.2, "seed": 1, **more}
    return SparseMLP.start((30, 40, 20, 3), **how)


def training(plan=None, network=None, *, n=41, **more):
    network = start() if network is None else network
    dtype = (network.network if isinstance(network, TrainingState) else network).dtype
    data = TrainingData.of(*samples(n), dtype)
    return Training(network, data, TrainingPlan(n_epochs=3) if plan is None else plan, **more)


def accuracy(outputs, data):
    return float(np.mean(outputs.argmax(axis=1) == data.targets.argmax(axis=1)))


def assert_same_network(one, other):
    """Equal to the last bit: connections, weights, biases, what the optimizer keeps."""
    assert one.widths == other.widths
    for a, b in zip(one.layers, other.layers, strict=True):
        assert a.topology == b.topology
        assert_array_equal(a.weights, b.weights)
        assert_array_equal(a.bias, b.bias)
        assert_array_equal(np.array(a.state), np.array(b.state))
        assert_array_equal(np.array(a.bias_state), np.array(b.bias_state))


class Diary(Callback):
    """Writes down who was called when."""

    def __init__(self, name="", pages=None):
        self.name = name
        self.pages = [] if pages is None else pages

    def on_fit_begin(self, training):
        self.pages.append(f"{self.name}begin")

    def on_epoch_end(self, training, record):
        self.pages.append(f"{self.name}epoch {record.epoch}")

    def on_fit_end(self, training):
        self.pages.append(f"{self.name}end")
