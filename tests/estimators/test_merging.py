import numpy as np
import pytest
from numpy.testing import assert_allclose

from ratoon.estimators.merging import merge
from ratoon.network import SparseMLP


def networks(*hidden, dtype="float64"):
    made = []
    for number, sizes in enumerate(hidden):
        network = SparseMLP.start((6, *sizes, 3), density=0.6, seed=number, dtype=dtype)
        for layer in network.layers:
            layer.bias[:] = np.random.default_rng(number).normal(size=layer.bias.size)
        made.append(network)
    return made


@pytest.mark.parametrize(
    "hidden",
    [
        [(5,), (4,)],
        [(5, 4), (3, 7)],
        [(), ()],
        [(), (5,)],
        [(5,), (), (4, 3, 2), ()],
        [(4, 3, 2), (5,)],
    ],
)
def test_outputs_are_the_weighted_sum(hidden):
    parts = networks(*hidden)
    shares = np.linspace(0.2, 1.5, len(parts))
    x = np.random.default_rng(9).normal(size=(20, 6))
    expected = sum(share * part.outputs(x) for share, part in zip(shares, parts, strict=True))
    assert_allclose(merge(parts, shares).outputs(x), expected, atol=1e-12)


def test_linear_networks_are_added_up():
    assert merge(networks((), (), ()), (0.2, 0.3, 0.5)).widths == (6, 3)


def test_hidden_neurons_are_side_by_side_and_connections_are_kept():
    parts = networks((5, 4), (3, 7))
    whole = merge(parts, (0.5, 0.5))
    assert whole.widths == (6, 8, 11, 3)
    assert whole.n_connections == sum(part.n_connections for part in parts)
    assert whole.dtype == np.float64


def test_one_network_is_returned_as_it_is():
    [one] = networks((5,))
    assert merge([one], [1.0]) is one
    assert_allclose(merge([one], [2.0]).outputs(np.eye(6)), 2 * one.outputs(np.eye(6)))
