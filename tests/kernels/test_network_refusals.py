"""Calls of a network that do not fit it are refused."""

import numpy as np
import pytest
import scipy.sparse

from ratoon.kernels import (
    NativeNetwork,
    Rule,
    Scaling,
    as_samples,
)
from ratoon.topology import Topology
from tests.kernels.models import (
    STEP,
    data_for,
    small_model,
)


def wrong_trainings():
    model = small_model("softmax_cross_entropy", "relu")
    x, targets, _ = data_for(model, 6)
    usual = {
        "samples": as_samples(x, np.float64),
        "targets": targets,
        "order": np.arange(6),
        "batch": 4,
        "rule": Rule.SGD,
        "steps": [STEP] * 2,
    }
    sparse = as_samples(scipy.sparse.csr_array(x), np.float64)
    shifted = Scaling(shift=np.zeros(6))
    return {
        "other number of features": {"samples": as_samples(x[:, :-1], np.float64)},
        "sparse samples of the other type": {
            "samples": as_samples(scipy.sparse.csr_array(x), np.float32)
        },
        "sparse samples shifted": {"samples": sparse, "scaling": shifted},
        "fewer targets": {"targets": targets[:-1]},
        "other outputs": {"targets": targets[:, :-1].copy()},
        "targets of the other type": {"targets": targets.astype(np.float32)},
        "unknown sample": {"order": np.array([0, 6])},
        "negative sample": {"order": np.array([0, -1]), "steps": [STEP]},
        "order of another type": {"order": np.arange(6, dtype=np.int32)},
        "batch of nothing": {"batch": 0},
        "negative batch": {"batch": -4},
        "too few steps": {"steps": [STEP]},
        "too many steps": {"steps": [STEP] * 3},
        "rule without its arrays": {"rule": Rule.STORE},
        "short sample weights": {"sample_weights": np.ones(5)},
        "short offset": {"offset": np.zeros((5, 3))},
        "short scale": {"scaling": Scaling(scale=np.ones(5))},
        "scale of the other type": {"scaling": Scaling(scale=np.ones(6, np.float32))},
    }, lambda changed: model.native().train(**(usual | changed))


@pytest.mark.parametrize("change", wrong_trainings()[0].values(), ids=wrong_trainings()[0].keys())
def test_training_with_mismatched_arguments_is_refused(change):
    train = wrong_trainings()[1]
    with pytest.raises((ValueError, TypeError)):
        train(change)


def test_layers_of_mismatched_widths_are_refused():
    network = NativeNetwork(np.float64, "squared_error", 1)
    one = as_samples(np.ones((1, 2)), np.float64), np.ones((1, 3)), np.array([0])
    with pytest.raises(ValueError, match="no layers"):
        network.train(*one, 1, Rule.SGD, [STEP])
    network.add_layer(Topology.full((2, 3)), np.zeros(6), np.zeros(3))
    with pytest.raises(ValueError, match="as many inputs"):
        network.add_layer(Topology.full((4, 3)), np.zeros(12), np.zeros(3))
    with pytest.raises(ValueError, match="weights has 5 entries"):
        network.add_layer(Topology.full((3, 2)), np.zeros(5), np.zeros(2))
    with pytest.raises(ValueError, match="dropout"):
        network.add_layer(Topology.full((3, 2)), np.zeros(6), np.zeros(2), dropout=1.0)
    with pytest.raises(ValueError, match="momentum"):
        network.train(*one, 1, Rule.MOMENTUM, [STEP])
    with pytest.raises((ValueError, IndexError)):
        network.predict(one[0], layer=1)


@pytest.mark.parametrize("options", [{"activation": "relu"}, {"dropout": 0.5}])
def test_training_needs_a_linear_output_layer(options):
    # The loss gets the raw output: an activation after it would not be part of the gradient.
    network = NativeNetwork(np.float64, "squared_error", 1)
    network.add_layer(Topology.full((2, 1)), np.ones(2), np.ones(1), **options)
    x, y = as_samples(np.ones((1, 2)), np.float64), np.ones((1, 1))
    with pytest.raises(ValueError, match="last layer"):
        network.train(x, y, np.array([0]), 1, Rule.SGD, [STEP])
    with pytest.raises(ValueError, match="last layer"):
        network.signals(x, y, np.array([0]))
