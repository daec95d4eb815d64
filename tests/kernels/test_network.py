from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from ratoon.kernels import (
    ACTIVATIONS,
    LOSSES,
    NativeNetwork,
    Rule,
    Scaling,
    Step,
    as_samples,
    available_isas,
    reference,
    use_isa,
)
from ratoon.topology import Topology
from tests.kernels.cases import DTYPES, RTOL, THREADS, topologies

SLOPES = {"leaky_relu": 0.1, "all_relu": -0.6}
# Adam divides by the root of its second moment; a large constant beside it keeps the rounding
# error of a gradient that is almost 0 from growing into a change of full size.
STEP = Step(lr=0.1, mu=0.8, l2=0.01, shrink=0.001, beta2=0.9, adam_eps=0.1, correction=1.2)
RULES = [rule for rule in Rule if rule != Rule.STORE]


class Model:
    """Layers with values of their own, to be put into a network of either kind."""

    def __init__(self, layers, loss="softmax_cross_entropy", *, dtype=np.float64, seed=0):
        self.loss, self.dtype = loss, np.dtype(dtype)
        rng = np.random.default_rng(seed)
        self.layers = []
        for topology, activation, dropout in layers:
            # Of a size that keeps activations near 1, and so far from flat.
            reach = np.sqrt(3 / max(1, topology.n_connections / topology.shape[1]))
            sizes = (topology.n_connections, topology.shape[1])
            weights, bias = (rng.uniform(-reach, reach, size).astype(dtype) for size in sizes)
            state = [np.zeros_like(weights), np.full_like(weights, 0.01)]
            bias_state = [np.zeros_like(bias), np.full_like(bias, 0.01)]
            options = {
                "activation": activation,
                "slope": SLOPES.get(activation, 0.0),
                "dropout": dropout,
            }
            self.layers.append((topology, weights, bias, state, bias_state, options))
        self.n_in, self.n_out = layers[0][0].shape[0], layers[-1][0].shape[1]

    def fill(self, network):
        for topology, weights, bias, state, bias_state, options in self.layers:
            network.add_layer(
                topology, weights, bias, state=state, bias_state=bias_state, **options
            )
        return network

    def native(self, n_threads=1):
        return self.fill(NativeNetwork(self.dtype, self.loss, n_threads))

    def twin(self):
        """Return the same in float64 in the reference network, with arrays of its own."""
        copy = Model.__new__(Model)
        copy.loss, copy.dtype = self.loss, np.dtype(np.float64)
        copy.layers = [
            (topology, as_float64(w), as_float64(b), *map(as_float64, (s, bs)), options)
            for topology, w, b, s, bs, options in self.layers
        ]
        return copy, copy.fill(reference.ReferenceNetwork(self.loss))

    def arrays(self):
        return [a for _, w, b, s, bs, _ in self.layers for a in (w, b, *s, *bs)]

    def bytes(self):
        return b"".join(array.tobytes() for array in self.arrays())


def as_float64(arrays):
    if isinstance(arrays, list):
        return [as_float64(array) for array in arrays]
    return None if arrays is None else arrays.astype(np.float64)


def data_for(model, n, seed=0, **wanted):
    """Return samples, targets, and what else `train` was asked to be given."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, model.n_in)).astype(model.dtype)
    if model.loss == "softmax_cross_entropy":
        targets = np.eye(model.n_out)[rng.integers(model.n_out, size=n)]
    elif model.loss == "sigmoid_cross_entropy":
        targets = rng.integers(2, size=(n, model.n_out))
    else:
        targets = rng.uniform(-1, 1, (n, model.n_out))
    extras = {}
    if wanted.get("sample_weights"):
        extras["sample_weights"] = rng.choice([0.0, 0.5, 1.0, 3.0], n).astype(model.dtype)
    if wanted.get("offset"):
        extras["offset"] = rng.uniform(-1, 1, (n, model.n_out)).astype(model.dtype)
    if wanted.get("scaling"):
        shift, scale = rng.uniform(-1, 1, model.n_in), rng.uniform(0.5, 2, model.n_in)
        extras["scaling"] = Scaling(shift, scale, clip=1.5).of_type(model.dtype)
    return x, targets.astype(model.dtype), extras


def exact_extras(extras):
    exact = {name: as_float64(value) for name, value in extras.items() if name != "scaling"}
    if "scaling" in extras:
        exact["scaling"] = extras["scaling"].of_type(np.float64)
    return exact


@st.composite
def models(draw):
    """Draw networks of one to four layers, any topology, activation and dropout."""
    depth = draw(st.integers(1, 4))
    shapes = [draw(topologies(max_in=60, max_out=50)) for _ in range(depth)]
    layers = []
    n_in = shapes[0].shape[0]
    for number, topology in enumerate(shapes):
        n_out = topology.shape[1]
        count = round(topology.density * n_in * n_out)
        topology = Topology.random((n_in, n_out), count, seed=number)
        hidden = number < depth - 1
        activation = draw(st.sampled_from(sorted(ACTIVATIONS))) if hidden else "identity"
        dropout = draw(st.sampled_from([0.0, 0.0, 0.4])) if hidden else 0.0
        layers.append((topology, activation, dropout))
        n_in = n_out
    loss = draw(st.sampled_from(sorted(LOSSES)))
    return Model(layers, loss, dtype=draw(st.sampled_from(DTYPES)), seed=draw(st.integers(0, 99)))


# Minibatches of more than 32 samples are taken in blocks; those of few non-zeros in another way.
BATCHES = st.one_of(st.integers(1, 40), st.integers(60, 70))
EXTRAS = st.fixed_dictionaries(
    {name: st.booleans() for name in ("sample_weights", "offset", "scaling")}
)


@pytest.mark.parametrize("isa", available_isas())
@given(
    model=models(),
    n=st.integers(1, 80),
    batch=BATCHES,
    rule=st.sampled_from(RULES),
    wanted=EXTRAS,
    annealed=st.booleans(),
    density=st.sampled_from([None, 0.0, 0.02, 0.1, 0.8]),
)
def test_training_agrees_with_its_twin(isa, model, n, batch, rule, wanted, annealed, density):
    x, targets, extras = data_for(model, n, **wanted)
    # Few and small steps: in a training about to diverge every rounding error grows with it.
    order = np.random.default_rng(1).permutation(n)[: 12 * batch]
    rates = [0.003 / (1 + k * annealed) for k in range(-(-order.size // batch))]
    steps = [replace(STEP, lr=rate) for rate in rates]
    if density is not None:
        x = scipy.sparse.csr_array(x * (np.random.default_rng(2).random(x.shape) < density))
        if "scaling" in extras:
            extras["scaling"] = replace(extras["scaling"], shift=None)
    twin, twin_network = model.twin()

    with use_isa(isa):
        outcome = model.native().train(
            as_samples(x, model.dtype),
            targets,
            order,
            batch,
            rule,
            steps,
            dropout_seed=3,
            first_step=5,
            **extras,
        )
    exact = twin_network.train(
        as_float64(x),
        as_float64(targets),
        order,
        batch,
        rule,
        steps,
        dropout_seed=3,
        first_step=5,
        **exact_extras(extras),
    )

    assert outcome.steps_done == exact.steps_done == len(steps)
    assert not outcome.diverged
    # Errors go through several layers and up to 12 steps, each of which may enlarge them.
    rtol = 20 * RTOL[model.dtype]
    assert_allclose(outcome.loss, exact.loss, rtol=rtol, atol=rtol)
    for actual, expected in zip(model.arrays(), twin.arrays(), strict=True):
        size = max(1.0, np.abs(expected).max(initial=0))
        assert_allclose(actual, expected, rtol=rtol, atol=rtol * size)


@given(model=models(), n=st.integers(1, 70), scaled=st.booleans(), data=st.data())
def test_predictions_agree_with_their_twin(model, n, scaled, data):
    x, _, extras = data_for(model, n, scaling=scaled)
    layer = data.draw(st.one_of(st.none(), st.integers(0, len(model.layers) - 1)))
    _, twin = model.twin()

    out = model.native().predict(as_samples(x, model.dtype), layer=layer, **extras)

    exact = twin.predict(as_float64(x), layer=layer, **exact_extras(extras))
    rtol = RTOL[model.dtype]
    assert_allclose(out, exact, rtol=rtol, atol=rtol * max(1, np.abs(exact).max()))


@given(model=models(), n=BATCHES, wanted=EXTRAS)
def test_gradients_agree_with_their_twin_and_change_nothing(model, n, wanted):
    x, targets, extras = data_for(model, n + 3, **wanted)
    order = np.random.default_rng(1).permutation(n + 3)[:n]
    _, twin = model.twin()
    before = model.bytes()
    place = {"dropout_seed": 3, "step": 7}

    loss, *gradients = model.native().gradients(
        as_samples(x, model.dtype), targets, order, **place, **extras
    )

    exact_loss, *exact = twin.gradients(
        as_float64(x), as_float64(targets), order, **place, **exact_extras(extras)
    )
    rtol = RTOL[model.dtype]
    assert_allclose(loss, exact_loss, rtol=rtol, atol=rtol)
    for arrays, exact_arrays in zip(gradients, exact, strict=True):
        for actual, expected in zip(arrays, exact_arrays, strict=True):
            size = max(1.0, np.abs(expected).max(initial=0))
            assert_allclose(actual, expected, rtol=rtol, atol=rtol * size)
    assert model.bytes() == before


@given(model=models(), n=BATCHES, wanted=EXTRAS, seed=st.integers(0, 99), step=st.integers(0, 99))
def test_signals_agree_with_their_twin_and_change_nothing(model, n, wanted, seed, step):
    x, targets, extras = data_for(model, n + 3, **wanted)
    when = {"dropout_seed": seed, "step": step}
    order = np.random.default_rng(1).permutation(n + 3)[:n]
    _, twin = model.twin()
    before = model.bytes()

    signals = model.native().signals(as_samples(x, model.dtype), targets, order, **extras, **when)

    exact = twin.signals(as_float64(x), as_float64(targets), order, **exact_extras(extras), **when)
    rtol = RTOL[model.dtype]
    for pair, exact_pair in zip(signals, exact, strict=True):
        for actual, expected in zip(pair, exact_pair, strict=True):
            size = max(1.0, np.abs(expected).max())
            assert_allclose(actual, expected, rtol=rtol, atol=rtol * size)
    assert model.bytes() == before


# --------------------------------------------------------------------------- numerical gradients


def small_model(loss, activation, *, dropout=0.0, dtype=np.float64, n_out=3):
    layers = [
        (Topology.random((6, 40), 90, seed=1), activation, dropout),
        (Topology.random((40, 5), 70, seed=2), activation, dropout),
        (Topology.random((5, n_out), 4 * n_out, seed=3), "identity", 0.0),
    ]
    return Model(layers, loss, dtype=dtype, seed=4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_step_goes_down_the_numerical_gradient(loss, activation, dropout):
    model = small_model(loss, activation, dropout=dropout)
    x, targets, extras = data_for(model, 5, sample_weights=True, offset=True)
    extras["sample_weights"] += 0.5
    network, samples, order = model.native(), as_samples(x, model.dtype), np.arange(5)

    def loss_after(lr=0.0):
        step = [Step(lr=lr)]
        return network.train(samples, targets, order, 5, Rule.SGD, step, **extras).loss

    parameters = [array for _, w, b, *_ in model.layers for array in (w, b)]
    numerical = [np.empty_like(array) for array in parameters]
    # A central difference over h = 1e-5 is off by about h^2 = 1e-10 times the third derivative,
    # and by the rounding of the loss, 1e-16 / h = 1e-11.
    h = 1e-5
    for array, gradient in zip(parameters, numerical, strict=True):
        for k in range(array.size):
            value = array[k]
            array[k] = value + h
            above = loss_after()
            array[k] = value - h
            below = loss_after()
            array[k] = value
            gradient[k] = (above - below) / (2 * h)
    before = [array.copy() for array in parameters]
    loss_after(lr=1.0)
    for array, old, gradient in zip(parameters, before, numerical, strict=True):
        assert_allclose(old - array, gradient, rtol=0, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_twins_error_is_the_derivative_of_its_loss(loss):
    rng = np.random.default_rng(0)
    output, targets = rng.normal(size=(1, 4)), np.array([[0.0, 1.0, 0.0, 0.0]])
    _, errors = reference.sample_losses(loss, output, targets)
    for k in range(4):
        h = np.eye(4)[[k]] * 1e-6
        above, below = (reference.sample_losses(loss, output + s * h, targets)[0] for s in (1, -1))
        # As above: 1e-12 and 1e-10.
        assert_allclose((above - below) / 2e-6, errors[0, k], atol=1e-8)


def test_extreme_outputs_give_finite_losses():
    topology = Topology.full((1, 2))
    for loss in ("softmax_cross_entropy", "sigmoid_cross_entropy"):
        network = NativeNetwork(np.float32, loss, 1)
        network.add_layer(topology, np.array([1, -1], np.float32), np.zeros(2, np.float32))
        for value in (1e4, -1e4, 3e38):
            outcome = network.train(
                as_samples(np.array([[value]], np.float32), np.float32),
                np.array([[1, 0]], np.float32),
                np.array([0]),
                1,
                Rule.SGD,
                [Step(lr=0.0)],
            )
            assert np.isfinite(outcome.loss)
            assert not outcome.diverged


# ------------------------------------------------------------------------------------ invariants


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


def test_a_sample_of_weight_zero_leaves_no_trace():
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


def test_samples_that_weigh_nothing_together_change_no_weight():
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


def test_a_layer_without_connections_gives_its_bias():
    network = NativeNetwork(np.float32, "squared_error", 1)
    bias = np.arange(40, dtype=np.float32)
    network.add_layer(Topology.from_pairs((7, 40), [], []), np.empty(0, np.float32), bias)
    out = network.predict(as_samples(np.ones((3, 7), np.float32), np.float32))
    assert_array_equal(out, np.tile(bias, (3, 1)))


# ------------------------------------------------------------------------------------ refusals


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
def test_training_that_does_not_fit_is_refused(change):
    train = wrong_trainings()[1]
    with pytest.raises((ValueError, TypeError)):
        train(change)


def test_networks_that_do_not_fit_together_are_refused():
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
def test_an_output_that_is_not_linear_is_not_trained(options):
    # The loss is told the raw output: what came after it would have no part in the gradient.
    network = NativeNetwork(np.float64, "squared_error", 1)
    network.add_layer(Topology.full((2, 1)), np.ones(2), np.ones(1), **options)
    x, y = as_samples(np.ones((1, 2)), np.float64), np.ones((1, 1))
    with pytest.raises(ValueError, match="last layer"):
        network.train(x, y, np.array([0]), 1, Rule.SGD, [STEP])
    with pytest.raises(ValueError, match="last layer"):
        network.signals(x, y, np.array([0]))
