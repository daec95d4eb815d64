"""Networks of every kind, each also as its float64 twin, and samples to train them on."""

import numpy as np
from hypothesis import strategies as st

from ratoon.kernels import (
    ACTIVATIONS,
    LOSSES,
    NativeNetwork,
    Rule,
    Scaling,
    Step,
    reference,
)
from ratoon.topology import Topology
from tests.kernels.cases import DTYPES, topologies

SLOPES = {
    name: -row.slope if row.alternates else row.slope
    for name, row in ACTIVATIONS.items()
    if row.slope
}
# Adam divides by the root of its second moment; a large constant added to it keeps the rounding
# error of a gradient that is almost 0 from growing into a change of full size.
STEP = Step(
    lr=0.1,
    mu=0.8,
    l2=0.01,
    shrink=0.001,
    beta2=0.9,
    adam_eps=0.1,
    correction=1.2,
    shrink_bias=0.002,
)
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


def small_model(loss, activation, *, dropout=0.0, dtype=np.float64, n_out=3):
    layers = [
        (Topology.random((6, 40), 90, seed=1), activation, dropout),
        (Topology.random((40, 5), 70, seed=2), activation, dropout),
        (Topology.random((5, n_out), 4 * n_out, seed=3), "identity", 0.0),
    ]
    return Model(layers, loss, dtype=dtype, seed=4)
