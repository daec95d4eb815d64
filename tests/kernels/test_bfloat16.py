import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon.kernels import (
    NativeNetwork,
    Rule,
    Step,
    as_samples,
    available_isas,
    normal,
    reference,
    rewire_by_sign,
    use_isa,
)
from ratoon.kernels.bfloat16 import narrow, widen
from ratoon.topology import Topology
from tests.kernels.cases import cut, topologies
from tests.kernels.test_rewire import KINDS, ZETAS, weights_of

LARGEST = float(widen(np.array([0x7F7F], dtype=np.uint16))[0])


@given(st.lists(st.floats(-LARGEST, LARGEST, width=32), max_size=50))
def test_narrowing_takes_the_nearest_number(numbers):
    exact = np.array(numbers, dtype=np.float32).astype(np.float64)
    bits = narrow(exact)
    error = np.abs(widen(bits) - exact)
    for step in (-1, 1):  # the neighbours of a number have the bits before and after
        other = widen((bits.astype(np.int32) + step).astype(np.uint16)).astype(np.float64)
        is_number = np.isfinite(other)
        assert (error <= np.abs(other - exact))[is_number].all()


def test_nan_stays_nan():
    odd = np.array([0x7F800001, 0xFFFFFFFF, 0x7F800000], dtype=np.uint32).view(np.float32)
    assert_array_equal(np.isnan(widen(narrow(odd))), [True, True, False])


@given(bits=st.lists(st.integers(0, 0xFFFF), max_size=50))
def test_widening_loses_nothing(bits):
    halves = np.array(bits, dtype=np.uint16)
    kept = ~np.isnan(widen(halves))
    assert_array_equal(narrow(widen(halves))[kept], halves[kept])


def trained(topology, weights, x, targets, batch, n_threads, dropout_seed, first_step):
    """Take steps on one layer in place."""
    network = NativeNetwork(np.float32, "squared_error", n_threads)
    n = topology.n_connections
    first = np.zeros(n, dtype=np.float32)
    bias, bias_first = (np.zeros(topology.shape[1], dtype=np.float32) for _ in range(2))
    network.add_layer(topology, weights, bias, state=[first], bias_state=[bias_first])
    network.train(
        as_samples(x, np.float32),
        targets,
        np.arange(len(x), dtype=np.int64),
        batch,
        Rule.MOMENTUM,
        [Step(lr=0.01, mu=0.9, shrink=0.001)] * -(-len(x) // batch),
        dropout_seed=dropout_seed,
        first_step=first_step,
    )
    return first


@given(
    topology=topologies(max_in=60, max_out=50),
    batch=st.sampled_from([1, 5, 8, 40]),
    n_threads=st.sampled_from([1, 2]),
    dropout_seed=st.integers(0, 2**64 - 1),
    first_step=st.integers(0, 10**6),
    isa=st.sampled_from(available_isas()),
)
def test_a_step_is_that_of_float32_rounded_at_random(
    topology, batch, n_threads, dropout_seed, first_step, isa
):
    rng = np.random.default_rng(0)
    halves = narrow(rng.standard_normal(topology.n_connections))
    numbers = widen(halves)
    x = rng.standard_normal((batch, topology.shape[0]), dtype=np.float32)
    targets = rng.standard_normal((batch, topology.shape[1]), dtype=np.float32)
    how = (x, targets, batch, n_threads, dropout_seed, first_step)

    with use_isa(isa):
        momentum = trained(topology, halves, *how)
        exact_momentum = trained(topology, numbers, *how)

    seed = reference.rounding_seed(dropout_seed, first_step, 0)
    assert_array_equal(halves, reference.round_at_random(numbers, seed))
    assert_array_equal(momentum, exact_momentum)


@given(topology=topologies(max_in=60, max_out=50), tile=st.sampled_from([(16, 7), (32, 50)]))
def test_tiles_larger_and_smaller_than_a_chunk_predict_alike(topology, tile):
    rng = np.random.default_rng(1)
    weights = topology.to_csr(rng.standard_normal(topology.n_connections)).toarray()
    x = rng.standard_normal((3, topology.shape[0]), dtype=np.float32)
    outputs = []
    for other in (topology, cut(topology, tile, grouped=True)):
        rows, columns = other.pairs()
        halves = narrow(weights[rows, columns])
        network = NativeNetwork(np.float32, "squared_error", 1)
        network.add_layer(other, halves, np.zeros(topology.shape[1], dtype=np.float32))
        outputs.append(network.predict(as_samples(x, np.float32)))
    np.testing.assert_allclose(*outputs, rtol=1e-4, atol=1e-4)


def test_steps_far_below_the_precision_are_not_lost():
    topology = Topology.full((1000, 40))
    halves = narrow(np.ones(topology.n_connections))
    x, targets = np.ones((1, 1000), dtype=np.float32), np.zeros((1, 40), dtype=np.float32)
    network = NativeNetwork(np.float32, "squared_error", 1)
    network.add_layer(topology, halves, np.zeros(40, dtype=np.float32))
    # A weight's gradient is the output, 1000: the step is a quarter of the distance to the next
    # number below 1, which is 1 / 256.
    network.train(
        as_samples(x, np.float32),
        targets,
        np.zeros(1, dtype=np.int64),
        1,
        Rule.SGD,
        [Step(lr=0.25 / 256 / 1000)],
    )
    moved = np.mean(widen(halves) < 1)
    # 40,000 tosses: one deviation is 0.0022; allow five.
    assert moved == pytest.approx(0.25, abs=0.011)


@given(
    topology=topologies(max_in=60, max_out=50),
    kind=st.sampled_from(KINDS),
    zeta=st.sampled_from(ZETAS),
    seed=st.integers(0, 2**64 - 1),
    n_carried=st.integers(0, 2),
)
def test_rewiring_in_place_is_that_of_the_twin_on_numbers(topology, kind, zeta, seed, n_carried):
    n = topology.n_connections
    halves = narrow(weights_of(kind, n, np.float32, seed))
    exact = widen(halves)
    carried = [np.arange(1, n + 1, dtype=np.float32) * (k + 1) for k in range(n_carried)]
    exact_carried = [values.copy() for values in carried]

    after, n_grown = rewire_by_sign(topology, halves, carried, zeta, seed=seed)
    twin, twin_grown = reference.rewire_by_sign(topology, exact, exact_carried, zeta, seed=seed)

    assert (after, n_grown) == (twin, twin_grown)
    assert_array_equal(widen(halves), exact)
    for ours, theirs in zip(carried, exact_carried, strict=True):
        assert_array_equal(ours, theirs)


def test_new_weights_are_the_nearest_to_normal_deviates():
    topology = Topology.random((400, 300), 2000, seed=0)
    halves = narrow(np.full(2000, 100.0))
    _, n_grown = rewire_by_sign(topology, halves, [], 0.3, seed=1, sigma=0.1, weight_seed=7)
    grown = halves[widen(halves) < 50]
    assert_array_equal(grown, narrow(normal(n_grown, 0.1, np.float32, seed=7)))
