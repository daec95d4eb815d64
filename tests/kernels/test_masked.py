"""Output layers that are nearly full, which small batches train by masks instead of indices."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ratoon.kernels import as_samples, available_isas, use_isa
from ratoon.topology import Topology
from tests.kernels.cases import RTOL, cut
from tests.kernels.models import RULES, STEP, Model, as_float64, data_for

N_ROWS = 21
SMALL = replace(STEP, lr=0.003)


def model_of(n_hidden, n_out, fill, tile=None, seed=0):
    """Return a network whose output layer has this share of its connections."""
    n = round(fill * n_hidden * n_out)
    output = Topology.random((n_hidden, n_out), n, seed=seed)
    if tile is not None:
        output = cut(output, (tile, n_out), True)
    layers = [(Topology.random((9, n_hidden), 3 * n_hidden, seed=seed), "relu", 0.0)]
    return Model([*layers, (output, "identity", 0.0)], dtype=np.float32, seed=seed)


def trained(model, batch, rule, n_threads=1):
    """Train the native network for an epoch; return it, its outcome and the samples."""
    x, targets, _ = data_for(model, N_ROWS)
    order, n_steps = np.arange(N_ROWS), -(-N_ROWS // batch)
    network = model.native(n_threads)
    outcome = network.train(
        as_samples(x, np.float32), targets, order, batch, rule, [SMALL] * n_steps
    )
    return outcome, x, targets


# 16 divides 48; after 1, 15, 17 and 50 a narrower group is left.  Strips of 16 and 32 inputs end
# inside the layer, where the weights behind belong to the next one.
@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize(
    ("n_hidden", "n_out", "fill", "tile"),
    [
        (48, 18, 0.6, None),
        (50, 32, 1.0, 16),
        (17, 3, 0.45, 16),
        (15, 1, 1.0, None),
        (1, 2, 1.0, None),
        (100, 8, 0.4, 32),
        (100, 9, 0.39, 32),
    ],
)
@pytest.mark.parametrize("batch", [2, 3, 4, 5, 6, 7, 8])
def test_every_size_of_minibatch_agrees_with_the_twin(isa, n_hidden, n_out, fill, tile, batch):
    model = model_of(n_hidden, n_out, fill, tile)
    agrees_with_twin(isa, model, batch, RULES[0])


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_agrees_with_the_twin(isa, rule):
    agrees_with_twin(isa, model_of(70, 18, 0.55, 32), 5, rule)


def agrees_with_twin(isa, model, batch, rule):
    twin, twin_network = model.twin()
    with use_isa(isa):
        outcome, x, targets = trained(model, batch, rule)
    steps = [SMALL] * -(-N_ROWS // batch)
    exact = twin_network.train(
        as_float64(x), as_float64(targets), np.arange(N_ROWS), batch, rule, steps
    )
    rtol = 20 * RTOL[model.dtype]  # as for other trainings
    assert_allclose(outcome.loss, exact.loss, rtol=rtol)
    for actual, expected in zip(model.arrays(), twin.arrays(), strict=True):
        assert_allclose(actual, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("n_threads", [2, 3, 7])
def test_threads_change_no_bit(n_threads):
    bits = []
    for threads in (1, n_threads):
        model = model_of(6000, 18, 0.55)  # enough work to be shared
        trained(model, 5, RULES[1], threads)
        bits.append(model.bytes())
    assert bits[0] == bits[1]


def test_predictions_after_training_use_the_new_weights():
    model = model_of(48, 18, 0.6)
    network, (x, targets, _) = model.native(), data_for(model, N_ROWS)
    samples, order = as_samples(x, np.float32), np.arange(N_ROWS)
    network.train(samples, targets, order, 5, RULES[0], [SMALL] * 5)
    assert network.predict(samples).tobytes() == model.native().predict(samples).tobytes()
