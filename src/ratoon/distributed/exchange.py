"""A layer as plain arrays, which one rank tells and the others take over."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.layers import SparseLayer
from ratoon.topology import Topology


def parts_of(layer: SparseLayer) -> dict[str, Any]:
    """Return all of a layer that training changes, as plain arrays."""
    topology = layer.topology
    return {
        "shape": topology.shape,
        "tile": topology.tile,
        "grouped": topology.grouped,
        "starts": np.array(topology.starts),
        "packed": np.array(topology.packed),
        "weights": layer.weights,
        "bias": layer.bias,
        "state": layer.state,
        "bias_state": layer.bias_state,
    }


def take_over(layer: SparseLayer, parts: dict[str, Any]) -> None:
    """Make a layer what `parts_of` has told; indices are checked on the way."""
    layer.topology = Topology.checked(
        parts["shape"], parts["tile"], parts["grouped"], parts["starts"], parts["packed"]
    )
    layer.weights = np.array(parts["weights"])
    layer.bias = np.array(parts["bias"])
    layer.state = [np.array(values) for values in parts["state"]]
    layer.bias_state = [np.array(values) for values in parts["bias_state"]]
