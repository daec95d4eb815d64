"""What changes no bit of a training or prediction, and what stops one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ratoon.kernels import (
    ACTIVATIONS,
    NativeNetwork,
    Rule,
    Step,
    as_samples,
)
from ratoon.topology import Topology
from tests.kernels.cases import THREADS
from tests.kernels.models import STEP, Model, data_for, small_model


def wide_model(dtype=np.float32, dropout=0.2):
    """Return layers large enough that threads have something to share."""
    layers = [
        (Topology.random((3000, 2000), 60_000, seed=1), "all_relu", dropout),
        (Topology.random((2000, 1500), 50_000, seed=2), "tanh", dropout),
        (Topology.random((1500, 4), 4_000, seed=3), "identity", 0.0),
    ]
    return Model(layers, dtype=dtype, seed=4)


@pytest.mark.parametrize("batch", [1, 12])
@pytest.mark.parametrize("rule", [Rule.MOMENTUM, Rule.ADAM])
def test_the_number_of_threads_changes_no_bit_of_training(rule, batch):
    results = []
    for n_threads in THREADS:
        model = wide_model()
        x, targets, extras = data_for(model, 30, sample_weights=True, scaling=True)
        network, samples = model.native(n_threads), as_samples(x, model.dtype)
        order = np.arange(30) if batch > 1 else np.arange(6)
        steps = [STEP] * -(-order.size // batch)
        outcome = network.train(samples, targets, order, batch, rule, steps, **extras)
        out = network.predict(samples, scaling=extras["scaling"])
        results.append((outcome, model.bytes(), out.tobytes()))
    assert all(result == results[0] for result in results)


def test_a_prediction_does_not_depend_on_the_rows_around_it():
    model = wide_model()
    x, _, _ = data_for(model, 70)
    network = model.native()
    together = network.predict(as_samples(x, model.dtype))
    rng = np.random.default_rng(0)
    for size in (1, 2, 8, 9, 16, 17, 31, 33, 69):
        rows = rng.permutation(70)[:size]
        apart = network.predict(as_samples(x[rows], model.dtype))
        assert apart.tobytes() == together[rows].tobytes(), f"{size} rows"


def test_training_is_the_same_in_one_call_as_in_two():
    whole, halves = (small_model("squared_error", "tanh", dropout=0.4) for _ in range(2))
    x, targets, _ = data_for(whole, 24)
    order = np.random.default_rng(0).permutation(24)
    samples = as_samples(x, np.float64)

    whole.native().train(
        samples, targets, order, 5, Rule.ADAM, [STEP] * 5, dropout_seed=1, first_step=0
    )
    network = halves.native()
    network.train(
        samples, targets, order[:10], 5, Rule.ADAM, [STEP] * 2, dropout_seed=1, first_step=0
    )
    network.predict(samples)  # uses the same working memory in between
    network.train(
        samples, targets, order[10:], 5, Rule.ADAM, [STEP] * 3, dropout_seed=1, first_step=2
    )
    assert whole.bytes() == halves.bytes()


def test_a_sample_of_weight_zero_has_no_effect():
    with_it, without_it = (small_model("softmax_cross_entropy", "relu") for _ in range(2))
    x, targets, _ = data_for(with_it, 8)
    weights = np.ones(8)
    weights[3] = 0
    order = np.arange(8)
    for model, given_order in ((with_it, order), (without_it, np.delete(order, 3))):
        outcome = model.native().train(
            as_samples(x, np.float64),
            targets,
            given_order,
            8,
            Rule.MOMENTUM,
            [STEP],
            sample_weights=weights,
        )
    assert np.isfinite(outcome.loss)
    # Lanes move by one, and with them the order of a few additions.
    for a, b in zip(with_it.arrays(), without_it.arrays(), strict=True):
        assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_samples_with_a_total_weight_of_zero_change_no_weight():
    model = small_model("softmax_cross_entropy", "relu")
    x, targets, _ = data_for(model, 4)
    before = [array.copy() for _, w, b, *_ in model.layers for array in (w, b)]
    outcome = model.native().train(
        as_samples(x, np.float64),
        targets,
        np.arange(4),
        4,
        Rule.SGD,
        [Step(lr=1.0)],
        sample_weights=np.zeros(4),
    )
    assert outcome.loss == 0
    after = [array for _, w, b, *_ in model.layers for array in (w, b)]
    for old, new in zip(before, after, strict=True):
        assert_array_equal(old, new)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_loss_that_is_not_finite_stops_training_before_the_update(activation, value):
    model = small_model("squared_error", activation)
    x, targets, _ = data_for(model, 12)
    model.layers[-1][1][:] = value
    before = model.bytes()
    outcome = model.native().train(
        as_samples(x, np.float64), targets, np.arange(12), 4, Rule.SGD, [STEP] * 3
    )
    assert outcome.diverged
    assert outcome.steps_done == 1
    assert model.bytes() == before


def test_an_empty_order_trains_nothing_and_no_rows_predict_nothing():
    model = small_model("squared_error", "relu")
    x, targets, _ = data_for(model, 3)
    network, before = model.native(), model.bytes()
    nothing = np.array([], dtype=np.int64)
    outcome = network.train(as_samples(x, np.float64), targets, nothing, 4, Rule.SGD, [])
    assert (outcome.loss, outcome.steps_done, outcome.diverged) == (0.0, 0, False)
    assert model.bytes() == before
    assert network.predict(as_samples(x[:0], np.float64)).shape == (0, 3)
    assert network.predict(as_samples(x, np.float64)).shape == (3, 3), "usable afterwards"


def test_a_layer_without_connections_returns_its_bias():
    network = NativeNetwork(np.float32, "squared_error", 1)
    bias = np.arange(40, dtype=np.float32)
    network.add_layer(Topology.from_pairs((7, 40), [], []), np.empty(0, np.float32), bias)
    out = network.predict(as_samples(np.ones((3, 7), np.float32), np.float32))
    assert_array_equal(out, np.tile(bias, (3, 1)))
