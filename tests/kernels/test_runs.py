"""Passes run by run, for wide minibatches, and predictions in bulk."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon import kernels
from ratoon.kernels import (
    NativeNetwork,
    Rule,
    as_samples,
    available_isas,
    block_lanes,
    reference,
    use_isa,
)
from ratoon.topology import Topology
from tests.kernels.cases import DTYPES, THREADS, Case, assert_close, topologies

TIMES = 3  # so often a layer is passed forward before it has runs of its outputs


@st.composite
def wide_cases(draw):
    case = Case.of(
        draw(topologies()),
        batch=draw(st.one_of(st.integers(25, 150), st.sampled_from([64, 128, 256, 300]))),
        dtype=draw(st.sampled_from(DTYPES)),
        seed=draw(st.integers(0, 2**32)),
    )
    if draw(st.booleans()):  # rows of zeros are left out
        case.x[np.random.default_rng(0).random(len(case.x)) < 0.6] = 0
    return case


def forward(case, x, n_threads=1):
    for _ in range(TIMES):
        y = kernels.forward(case.topology, case.weights, case.bias, x, n_threads=n_threads)
    return y


@pytest.mark.parametrize("isa", available_isas())
@given(case=wide_cases())
def test_wide_minibatches_have_the_bits_of_narrow_ones(isa, case):
    with use_isa(isa):
        wide = forward(case, case.x)
        first = 8 * (case.batch // 16)
        x = np.ascontiguousarray(case.x[:, first : first + 8])
        narrow = kernels.forward(case.topology, case.weights, case.bias, x)
    # Equal, and not the same bytes: -0 and 0 are taken for the same.
    assert_array_equal(wide[:, first : first + 8], narrow)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("with_dx", [True, False])
@given(case=wide_cases())
def test_gradients_of_wide_minibatches_agree_with_their_twin(isa, with_dx, case):
    found = np.empty_like(case.weights)
    exact_w, _, x, dy = case.exact()
    exact = np.empty_like(exact_w)
    with use_isa(isa):
        dx = kernels.backward(
            case.topology, Rule.STORE, case.weights, case.x, case.dy, first=found, with_dx=with_dx
        )
    exact_dx = reference.backward(case.topology, Rule.STORE, exact_w, x, dy, first=exact)
    _, size_of_dx, size_of_g = case.magnitudes()
    assert_close(found, exact, size_of_g)
    if with_dx:
        assert_close(dx[:, : case.batch], exact_dx, size_of_dx)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [40, 128, 300])
def test_the_number_of_threads_changes_no_bit_of_wide_passes(batch, dtype):
    case = Case.of(Topology.random((900, 700), 40_000, seed=1), batch, dtype, seed=2)
    found = set()
    for n_threads in THREADS:
        gradient = np.empty_like(case.weights)
        dx = kernels.backward(
            case.topology,
            Rule.STORE,
            case.weights,
            case.x,
            case.dy,
            first=gradient,
            n_threads=n_threads,
        )
        y = forward(case, case.x, n_threads)
        found.add(b"".join(array.tobytes() for array in (y, dx, gradient)))
    assert len(found) == 1


def deep_network(n_threads=1, *, n_layers=20, width=96, bias=-0.3):
    network = NativeNetwork(np.float32, "squared_error", n_threads)
    for layer in range(n_layers):
        topology = Topology.random((width, width), 8 * width, seed=layer)
        weights = np.full(topology.n_connections, 0.2, dtype=np.float32)
        biases = np.full(width, bias, dtype=np.float32)
        network.add_layer(topology, weights, biases, activation="relu32")
    return network


def sparse_images(n, width=96):
    rng = np.random.default_rng(3)
    return ((rng.random((n, width)) < rng.random((n, 1)) ** 3) * 1.0).astype(np.float32)


@pytest.mark.parametrize("bias", [-0.3, 0.05])
def test_samples_that_become_zero_have_the_outputs_they_have_alone(bias):
    x = sparse_images(700)
    together = deep_network(2, bias=bias).predict(as_samples(x, np.float32))
    alone = deep_network(bias=bias)
    some = range(0, 700, 23)
    apart = [alone.predict(as_samples(x[i : i + 1], np.float32))[0] for i in some]
    assert_array_equal(together[list(some)], apart)
    if bias < 0:
        middle = alone.predict(as_samples(x, np.float32), layer=3)
        n_dead = int((~middle.any(axis=1)).sum())
        assert 100 < n_dead < 600, "the test needs samples of both kinds"


@pytest.mark.parametrize("n_rows", [33, 64, 200, 513])
def test_bulk_predictions_have_the_same_bits_on_any_number_of_threads(n_rows):
    x = sparse_images(n_rows)
    found = {
        deep_network(n_threads, n_layers=depth).predict(as_samples(x, np.float32)).tobytes()
        for n_threads in THREADS
        for depth in [5]
    }
    assert len(found) == 1


def test_a_block_is_at_most_a_megabyte_of_floats():
    assert all(block_lanes(n) * n * 4 <= 2**20 or block_lanes(n) == 32 for n in (1, 2049, 10**6))
    assert NativeNetwork(np.float32, "squared_error", 1)
