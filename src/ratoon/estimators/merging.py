"""Merge several networks into one network, whose outputs are a weighted sum of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ratoon.arrays import Array
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP
from ratoon.topology import Topology


class _Part(NamedTuple):
    """A layer of one network: weights (inputs x outputs), biases, activation."""

    weights: Any
    bias: Array
    activation: str


def merge(networks: Sequence[SparseMLP], shares: Sequence[float]) -> SparseMLP:
    """Return a network with outputs ``sum(share * outputs)``.

    Hidden layers are put side by side.  Networks without a hidden layer are added up first.  Where
    a network has fewer layers than another, its outputs u pass the missing ones as two rectified
    neurons each, because ``u = max(u, 0) - max(-u, 0)``.  The networks must have the same scaling.

    Examples
    --------
    >>> parts = [SparseMLP.start((5, *h, 2), density=0.5, seed=0) for h in ((4,), (3, 3), ())]
    >>> whole, x = merge(parts, (0.5, 0.3, 0.2)), np.ones((1, 5), dtype=np.float32)
    >>> whole.widths
    (5, 11, 11, 2)
    >>> expected = sum(s * part.outputs(x) for s, part in zip((0.5, 0.3, 0.2), parts))
    >>> bool(np.allclose(whole.outputs(x), expected, atol=1e-6))
    True
    """
    if len(networks) == 1 and shares[0] == 1.0:
        return networks[0]
    stacks = [_parts(network, share) for network, share in zip(networks, shares, strict=True)]
    stacks = _sum_of_linear([s for s in stacks if len(s) == 1]) + [s for s in stacks if len(s) > 1]
    depth = max(map(len, stacks))
    stacks = [_deepened(stack, depth) for stack in stacks]
    example = max(networks, key=lambda network: len(network.layers))
    layers = []
    for index, parts in enumerate(zip(*stacks, strict=True)):
        matrices = [part.weights for part in parts]
        is_last = index == depth - 1
        if index == 0:
            joined = scipy.sparse.hstack(matrices) if not is_last else matrices[0]
        else:
            joined = (scipy.sparse.vstack if is_last else scipy.sparse.block_diag)(matrices)
        biases = [part.bias for part in parts]
        layers.append(
            _layer(
                joined,
                np.sum(biases, axis=0) if is_last else np.concatenate(biases),
                example.layers[index],
            )
        )
    return SparseMLP(layers, example.scaling)


def _parts(network: SparseMLP, share: float) -> list[_Part]:
    """Return the layers of a network; the last one is multiplied by the share."""
    found = [_Part(layer.to_csr(), layer.bias, layer.activation) for layer in network.layers]
    return [*found[:-1], _Part(found[-1].weights * share, found[-1].bias * share, "identity")]


def _sum_of_linear(stacks: list[list[_Part]]) -> list[list[_Part]]:
    if not stacks:
        return []
    weights = sum((stack[0].weights for stack in stacks[1:]), start=stacks[0][0].weights)
    return [[_Part(weights, np.sum([stack[0].bias for stack in stacks], axis=0), "identity")]]


def _deepened(stack: list[_Part], depth: int) -> list[_Part]:
    """Let the outputs of a network pass as pairs of rectified neurons up to a depth."""
    missing = depth - len(stack)
    if missing == 0:
        return stack
    last = stack[-1]
    n_outputs = last.bias.size
    both = scipy.sparse.hstack((last.weights, -last.weights))
    pairs = _Part(both, np.concatenate((last.bias, -last.bias)), "relu")
    unchanged = _Part(
        scipy.sparse.eye_array(2 * n_outputs, dtype=last.bias.dtype),
        np.zeros(2 * n_outputs, dtype=last.bias.dtype),
        "relu",
    )
    one = scipy.sparse.eye_array(n_outputs, dtype=last.bias.dtype)
    difference = _Part(
        scipy.sparse.vstack((one, -one)), np.zeros(n_outputs, dtype=last.bias.dtype), "identity"
    )
    return [*stack[:-1], pairs, *[unchanged] * (missing - 1), difference]


def _layer(weights: Any, bias: Array, example: SparseLayer) -> SparseLayer:
    """Return a layer with these weights, and the other properties of an example."""
    topology, values = Topology.from_scipy(scipy.sparse.coo_array(weights))
    dtype = example.bias.dtype
    return SparseLayer(
        topology,
        values.astype(dtype),
        bias.astype(dtype),
        example.activation,
        example.slope,
        example.dropout,
        example.init,
    )
