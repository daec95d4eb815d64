import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon.kernels import normal, reference, rewire_by_sign
from ratoon.topology import Topology
from tests.kernels.cases import DTYPES, THREADS, assert_close, topologies

ZETAS = [0.0, 0.01, 0.3, 0.5, 0.9, 0.999, float(np.nextafter(1, 0))]


def weights_of(kind, n, dtype, seed):
    """Return weights with few or no ties, many ties, one sign, or of every size."""
    rng = np.random.default_rng(seed)
    weights = {
        "usual": lambda: rng.normal(size=n),
        "ties": lambda: rng.integers(-2, 3, n) / 4,
        "all equal": lambda: np.full(n, 0.5),
        "zeros of both signs": lambda: rng.choice([0.0, -0.0], n),
        "positive": lambda: rng.random(n),
        "negative": lambda: -rng.random(n) - 1e-3,
        "of every size": lambda: rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-44, 38, n),
        "infinite": lambda: rng.choice([-np.inf, np.inf, 1.0, -1.0], n),
    }[kind]()
    return weights.astype(dtype)


KINDS = [
    "usual",
    "ties",
    "all equal",
    "zeros of both signs",
    "positive",
    "negative",
    "of every size",
    "infinite",
]


@given(
    topology=topologies(max_in=60, max_out=50),
    kind=st.sampled_from(KINDS),
    dtype=st.sampled_from(DTYPES),
    zeta=st.one_of(st.sampled_from(ZETAS), st.floats(0, 0.9999)),
    seed=st.integers(0, 2**64 - 1),
    n_carried=st.integers(0, 2),
)
def test_rewiring_in_place_is_that_of_its_twin(topology, kind, dtype, zeta, seed, n_carried):
    n = topology.n_connections
    weights = weights_of(kind, n, dtype, seed)
    carried = [np.arange(1, n + 1, dtype=dtype) * (k + 1) for k in range(n_carried)]
    exact, exact_carried = weights.copy(), [values.copy() for values in carried]

    after, n_grown = rewire_by_sign(topology, weights, carried, zeta, seed=seed)
    twin, twin_grown = reference.rewire_by_sign(topology, exact, exact_carried, zeta, seed=seed)

    assert after == twin
    assert n_grown == twin_grown
    assert_array_equal(weights, exact)
    for ours, theirs in zip(carried, exact_carried, strict=True):
        assert_array_equal(ours, theirs)


@given(
    topology=topologies(max_in=60, max_out=50),
    kind=st.sampled_from(KINDS),
    zeta=st.sampled_from(ZETAS),
    seed=st.integers(0, 2**64 - 1),
)
def test_count_survivors_and_their_values_are_kept(topology, kind, zeta, seed):
    n = topology.n_connections
    before = weights_of(kind, n, np.float32, seed)
    weights, slots = before.copy(), np.arange(1, n + 1, dtype=np.float32)
    old = topology.positions

    after, n_grown = rewire_by_sign(topology, weights, [slots], zeta, seed=seed)

    assert after.shape == topology.shape
    assert after.n_connections == n
    positions = after.positions
    assert np.unique(positions).size == n, "no duplicates"
    n_negative = np.count_nonzero(np.signbit(before))  # -0.0 counts as negative
    assert n_grown == round(zeta * n_negative) + round(zeta * (n - n_negative))

    is_new = slots == 0
    assert np.count_nonzero(is_new) == n_grown
    assert_array_equal(weights[is_new], 0)
    kept = slots[~is_new].astype(np.int64) - 1
    assert_array_equal(positions[~is_new], old[kept])
    assert_array_equal(weights[~is_new], before[kept])
    gone = np.setdiff1d(np.arange(n), kept)
    for sign in (np.signbit(before), ~np.signbit(before)):
        weakest_left = np.abs(before[kept][sign[kept]]).min(initial=np.inf)
        strongest_gone = np.abs(before[gone][sign[gone]]).max(initial=0)
        assert strongest_gone <= weakest_left


@given(topology=topologies(max_in=60, max_out=50), zeta=st.floats(0, 0.99), seed=st.integers(0, 99))
def test_the_general_path_gives_the_same_for_the_same_seed(topology, zeta, seed):
    before = weights_of("usual", topology.n_connections, np.float32, seed)
    weights = before.copy()
    after, n_grown = rewire_by_sign(
        topology, weights, [], zeta, seed=seed, sigma=0.1, weight_seed=seed + 1
    )

    kept = reference.strongest_of_each_sign(before, zeta)
    general = topology.regrow(kept, topology.n_connections - kept.size, seed=seed)
    assert general.topology == after
    assert general.n_grown == n_grown
    fresh = normal(n_grown, 0.1, np.float32, seed=seed + 1)
    assert_array_equal(general.carry(before, grown=fresh), weights)


@pytest.mark.parametrize("dtype", DTYPES)
def test_new_weights_are_the_normal_deviates_of_the_twin(dtype):
    topology = Topology.random((300, 200), 5000, seed=0)
    weights = weights_of("usual", 5000, dtype, 0)
    exact = weights.astype(np.float64)
    chosen = {"seed": 1, "sigma": 0.5, "weight_seed": 2}
    after, _ = rewire_by_sign(topology, weights, [], 0.4, **chosen)
    twin, _ = reference.rewire_by_sign(topology, exact, [], 0.4, **chosen)
    assert after == twin
    # The radius of a deviate is at most 5.8, its angle 6.3: products are below 40.
    assert_close(weights, exact, 40 * 0.5)


def test_a_worked_example():
    #    outputs:   0     1     2     3       a dot is an absent connection
    #    input 0   3.0  -1.0    .     .
    #    input 1    .    0.5    .   -4.0      of each sign the weaker one goes
    topology = Topology.from_pairs((2, 4), [0, 0, 1, 1], [0, 1, 1, 3])
    values = {0: 3.0, 1: -1.0, 5: 0.5, 7: -4.0}
    weights = np.array([values[position] for position in topology.positions.tolist()])

    after, n_grown = rewire_by_sign(topology, weights, [], 0.5, seed=0)

    left = dict(zip(after.positions.tolist(), weights.tolist(), strict=True))
    assert left[0] == 3.0
    assert left[7] == -4.0
    assert sorted(left.values()) == [-4.0, 0.0, 0.0, 3.0]
    assert n_grown == 2


def test_of_equal_weights_those_in_lower_slots_are_pruned_first():
    topology = Topology.random((300, 200), 5000, seed=0)
    weights = np.where(np.arange(5000) % 2 == 0, 0.5, -0.5).astype(np.float32)
    slots = np.arange(1, 5001, dtype=np.float32)

    rewire_by_sign(topology, weights, [slots], 0.2, seed=1)

    # Of 2500 each: the 500 lowest even and the 500 lowest odd slots.
    assert_array_equal(slots[slots > 0], np.arange(1001, 5001))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rewiring_nan_weights_agrees_with_the_twin(dtype):
    topology = Topology.random((100, 80), 2000, seed=0)
    weights = weights_of("usual", 2000, dtype, 0)
    weights[::7] = np.nan
    weights[3::11] = np.inf
    weights[5::13] = -np.inf
    for zeta in (0.0, 0.3, 0.999):
        for spoilt in (weights.copy(), np.full(2000, np.nan, dtype)):
            n_nan = np.isnan(spoilt).sum()
            exact = spoilt.copy()
            after, n_grown = rewire_by_sign(topology, spoilt, [], zeta, seed=1)
            twin, twin_grown = reference.rewire_by_sign(topology, exact, [], zeta, seed=1)
            assert after == twin
            assert n_grown == twin_grown
            assert_array_equal(spoilt, exact)
            assert np.isnan(spoilt).sum() <= n_nan


def test_zeta_0_changes_nothing_and_zeta_near_1_replaces_everything():
    topology = Topology.random((100, 80), 2000, seed=0)
    before = weights_of("usual", 2000, np.float32, 0)
    weights = before.copy()
    after, n_grown = rewire_by_sign(topology, weights, [], 0.0, seed=1)
    assert after == topology
    assert n_grown == 0
    assert_array_equal(weights, before)

    after, n_grown = rewire_by_sign(topology, weights, [], float(np.nextafter(1, 0)), seed=1)
    assert after.n_connections == n_grown == 2000
    assert_array_equal(weights, 0)
    assert after == Topology.random((100, 80), 2000, seed=1), "as if drawn from nothing"


def test_a_full_layer_keeps_all_connections():
    topology = Topology.full((30, 20))
    weights = weights_of("usual", 600, np.float32, 0)
    after, n_grown = rewire_by_sign(topology, weights, [], 0.3, seed=1)
    assert after == topology, "the only empty positions are those just vacated"
    assert np.count_nonzero(weights == 0) == n_grown


@pytest.mark.parametrize("n_connections", [0, 1])
def test_layers_of_no_or_one_connection_are_rewired(n_connections):
    topology = Topology.random((30, 20), n_connections, seed=0)
    weights = np.ones(n_connections, np.float32)
    after, n_grown = rewire_by_sign(topology, weights, [], 0.9, seed=1)
    assert after.n_connections == n_grown == n_connections


@pytest.mark.parametrize(
    ("shape", "n"), [((5000, 3000), 400_000), ((70_000, 66_000), 100_000), ((16_000, 2), 31_800)]
)
def test_the_number_of_threads_changes_nothing(shape, n):
    topology = Topology.random(shape, n, seed=1)
    results = set()
    chosen = {"seed": 2, "sigma": 0.1, "weight_seed": 4}
    for n_threads in THREADS:
        weights, slots = weights_of("ties", n, np.float32, 3), np.arange(n, dtype=np.float32)
        after, _ = rewire_by_sign(topology, weights, [slots], 0.3, **chosen, n_threads=n_threads)
        results.add((after.content_hash(), weights.tobytes(), slots.tobytes()))
    assert len(results) == 1


def test_repeated_rewiring_keeps_the_count_and_reaches_every_position():
    topology = Topology.random((40, 30), 200, seed=0)
    rng = np.random.default_rng(0)
    seen = set(topology.positions.tolist())
    for epoch in range(100):
        weights = rng.normal(size=200)
        topology, _ = rewire_by_sign(topology, weights, [], 0.3, seed=epoch)
        assert np.unique(topology.positions).size == 200
        seen.update(topology.positions.tolist())
    # 60 of about 1060 empty places a time: one stays unseen with probability (1 - 60/1060)^100.
    assert len(seen) > 1200 * (1 - 5 * 0.003)


def wrong_rewirings():
    topology = Topology.random((30, 20), 100, seed=0)
    w, v = np.ones(100, np.float32), np.ones(100, np.float32)
    frozen = np.ones(100, np.float32)
    frozen.flags.writeable = False

    def rewire(weights=w, carried=(v,), zeta=0.3, seed=0):
        return lambda: rewire_by_sign(topology, weights.copy(), carried, zeta, seed=seed)

    return {
        "too few weights": rewire(weights=w[:-1]),
        "too many weights": rewire(weights=np.ones(101, np.float32)),
        "whole numbers": rewire(weights=np.ones(100, np.int64)),
        "short momentum": rewire(carried=[v[:-1]]),
        "three arrays to carry": rewire(carried=[v, v.copy(), v.copy()]),
        "momentum of the other type": rewire(carried=[v.astype(np.float64)]),
        "momentum that may not be written": rewire(carried=[frozen]),
        "zeta of 1": rewire(zeta=1.0),
        "zeta above 1": rewire(zeta=1.5),
        "negative zeta": rewire(zeta=-0.5),
        "no zeta": rewire(zeta=float("nan")),
        "a negative seed": rewire(seed=-1),
    }


@pytest.mark.parametrize("call", wrong_rewirings().values(), ids=wrong_rewirings().keys())
def test_mismatched_arguments_are_refused(call):
    with pytest.raises((ValueError, TypeError)):
        call()
