"""Layers to rewire, and checks of every rewiring."""

import numpy as np

from ratoon.testing.cases import CLOCK as CLOCK
from ratoon.testing.cases import Step
from ratoon.testing.cases import apply as apply
from ratoon.testing.cases import evolve as evolve
from ratoon.testing.cases import layer_state as layer_state
from ratoon.testing.cases import limited as limited
from ratoon.testing.cases import network as network
from ratoon.testing.cases import random_layer as random_layer
from ratoon.testing.cases import sparse_layer as sparse_layer
from ratoon.testing.checks import require_consistent


def assert_consistent(layer, rewiring):
    """Check that positions, values and origins of a rewiring are consistent."""
    require_consistent(Step([layer], [rewiring], {}, CLOCK))


def dense_of(layer, values=None):
    """Return weights (or other values) and mask as dense matrices."""
    mask = np.zeros(layer.topology.shape, dtype=bool)
    matrix = np.zeros(layer.topology.shape, dtype=layer.weights.dtype)
    rows, columns = layer.topology.pairs()
    mask[rows, columns] = True
    matrix[rows, columns] = layer.weights if values is None else values
    return matrix, mask


def positions_of(topology):
    """Return the positions of a topology, ascending."""
    return np.sort(topology.positions)
