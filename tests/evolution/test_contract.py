"""The contract of every strategy.  Registered strategies are tested here automatically."""

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.evolution import (
    STRATEGIES,
    InPlaceStrategy,
    layer_seed,
    rewire_from,
    start_state,
)
from ratoon.topology import Topology
from tests.evolution.cases import (
    CLOCK,
    apply,
    assert_consistent,
    layer_state,
    network,
    random_layer,
    sparse_layer,
)
from tests.processes import IS_SANITIZED

# Settings under which a strategy has something to do at once.
EAGER = {
    "guided_set": {"until": 1.0, "anneal": "constant"},
    "dsr": {"threshold": 0.3},
    "neuron_pruning": {"warm_up": 0.0, "prune_every": 1},
    "snfs": {"max_columns": 16},
    "neurofs": {"n_features": 20},
}
# Where nothing is listed, every layer keeps its number of connections.
PROMISES = {"snfs": "total", "dsr": "total", "deep_r": "total", "nest": "budget"}
PROMISES["neuron_pruning"] = "shrinks"
PROMISES["granet"] = "total budget"
PROMISES["neurofs"] = "at most"
GROWS_IN_FULL_LAYERS = ("granet", "neurofs")  # after pruning more than that


@pytest.fixture(params=STRATEGIES)
def name(request):
    return request.param


@pytest.fixture
def strategy(name):
    return STRATEGIES[name](**EAGER.get(name, {}))


def trained(layers, seed):
    """Return the layers as if a few steps had passed: all values have moved."""
    rng = np.random.default_rng(seed)
    return [
        replace(layer, weights=layer.weights + rng.normal(size=layer.weights.size).astype("f4"))
        for layer in layers
    ]


def evolve(strategy, layers, *, n_rewirings=3, seed=0, n_threads=1, through=lambda state: state):
    """Start a strategy, let it watch and rewire a few times; yield before, rewirings, state."""
    layers = [replace(layer, n_threads=n_threads) for layer in layers]
    state = start_state(strategy, layers, seed)
    clock = CLOCK
    for number in range(n_rewirings):
        layers = trained(layers, number)
        state = through(state)
        if hasattr(strategy, "watch"):
            state = strategy.watch(state, layers, clock.at(clock.step - 1))
        rewirings, state = rewire_from(strategy, state, layers, clock, seed + number)
        yield layers, rewirings, state
        layers = apply(layers, rewirings)
        clock = clock.at(clock.step + clock.steps_per_epoch)


def assert_same(ours, theirs):
    for (_, a, _), (_, b, _) in zip(ours, theirs, strict=True):
        for one, other in zip(a, b, strict=True):
            assert one.topology == other.topology
            assert_array_equal(one.origin, other.origin)


def test_connections_values_and_momentum_stay_together(strategy):
    for layers, rewirings, _ in evolve(strategy, network()):
        for layer, rewiring in zip(layers, rewirings, strict=True):
            assert_consistent(layer, rewiring)


def test_the_number_of_connections_is_that_of_the_contract(name, strategy):
    start = [layer.topology.n_connections for layer in network()]
    for number, (layers, rewirings, _) in enumerate(evolve(strategy, network())):
        before = [layer.topology.n_connections for layer in layers]
        after = [rewiring.topology.n_connections for rewiring in rewirings]
        match PROMISES.get(name, "layer"):
            case "layer":
                assert after == before
            case "total":
                assert sum(after) == sum(before)
            case "budget":
                level = strategy.level(CLOCK.at(CLOCK.step + 10 * number).progress)
                assert after == [
                    min(round(level * count), layer.topology.n_positions)
                    for count, layer in zip(start, layers, strict=True)
                ]
            case "total budget":
                level = strategy.level(CLOCK.at(CLOCK.step + 10 * number).progress)
                assert sum(after) == round(level * sum(start))
            case "at most":
                assert all(a <= b for a, b in zip(after, before, strict=True))
            case "shrinks":
                assert all(a <= b for a, b in zip(after, before, strict=True))
                assert sum(after) < sum(before)


def test_every_strategy_but_the_static_one_changes_something(name, strategy):
    n_grown = sum(r.n_grown for _, rewirings, _ in evolve(strategy, network()) for r in rewirings)
    assert (n_grown > 0) == (name not in ("static", "neuron_pruning"))


def test_new_weights_are_finite_and_of_the_layer_s_type(strategy):
    for layers, rewirings, _ in evolve(strategy, network()):
        for layer, rewiring in zip(layers, rewirings, strict=True):
            weights = rewiring.carry_weights(layer.weights)
            assert weights.dtype == layer.weights.dtype
            assert weights.shape == (rewiring.topology.n_connections,)
            assert np.isfinite(weights).all()


def test_the_number_of_threads_changes_nothing(strategy):
    layers = network(widths=(400, 300, 200, 5), density=0.05)
    one = list(evolve(strategy, layers, n_threads=1))
    for n_threads in (2, 3):
        assert_same(one, evolve(strategy, layers, n_threads=n_threads))


def test_the_arguments_of_a_strategy_are_not_changed(strategy):
    layers = network()
    state = start_state(strategy, layers, 0)
    arrays = [layer.weights for layer in layers] + [m for layer in layers for m in layer.state]
    arrays += list(state.values())
    before = [array.copy() for array in arrays]
    rewire_from(strategy, state, layers, CLOCK, 0)
    for array, copy in zip(arrays, before, strict=True):
        assert_array_equal(array, copy)


def test_a_state_read_from_a_file_gives_the_same_rewirings(strategy):
    def through_file(state):
        buffer = io.BytesIO()
        np.savez(buffer, **state)
        buffer.seek(0)
        with np.load(buffer, allow_pickle=False) as arrays:
            return dict(arrays)

    here = list(evolve(strategy, network()))
    assert_same(here, evolve(strategy, network(), through=through_file))


@pytest.mark.parametrize("widths", [(1, 1), (1, 5, 1), (9, 1, 9), (2, 2, 2, 2)])
@pytest.mark.parametrize("density", [0.01, 0.5, 1.0])
def test_tiny_and_full_layers_can_be_rewired(strategy, widths, density):
    for layers, rewirings, _ in evolve(strategy, network(widths=widths, density=density)):
        for layer, rewiring in zip(layers, rewirings, strict=True):
            assert_consistent(layer, rewiring)


def test_a_layer_without_connections_can_be_rewired_among_others(strategy):
    layers = network()
    layers[1] = layer_state(Topology.random((30, 25), 0, seed=0))
    for before, rewirings, _ in evolve(strategy, layers):
        for layer, rewiring in zip(before, rewirings, strict=True):
            assert_consistent(layer, rewiring)


def test_neurons_without_signals_do_not_stop_growth(name, strategy):
    def silence(layer):
        x, d = (np.zeros((n, 4), dtype=np.float32) for n in layer.topology.shape)
        return replace(layer, signals=lambda: (x, d))

    silent = [silence(layer) for layer in network()]
    for layers, rewirings, _ in evolve(strategy, silent):
        for layer, rewiring in zip(layers, rewirings, strict=True):
            assert_consistent(layer, rewiring)
            if PROMISES.get(name, "layer") == "layer":
                assert rewiring.topology.n_connections == layer.topology.n_connections


def limited(layers, share=0.5, seed=0):
    """Return the same layers, each allowed as many positions that they use only a share."""
    found = []
    for number, layer in enumerate(layers):
        n_allowed = min(layer.topology.n_positions, round(layer.topology.n_connections / share))
        everything = np.arange(layer.topology.n_connections)
        grown = layer.topology.regrow(everything, n_allowed - everything.size, seed=seed + number)
        found.append(replace(layer, allowed=grown.topology))
    return found


@pytest.mark.parametrize("share", [0.3, 0.9, 1.0])
def test_nothing_grows_outside_a_limit(name, strategy, share):
    n_grown = 0
    for layers, rewirings, _ in evolve(strategy, limited(network(), share)):
        for layer, rewiring in zip(layers, rewirings, strict=True):
            assert_consistent(layer, rewiring)
            inside = np.isin(rewiring.topology.positions, layer.allowed.positions)
            assert inside.all()
            n_grown += rewiring.n_grown
        if PROMISES.get(name, "layer") in ("layer", "total"):
            before = [layer.topology.n_connections for layer in layers]
            assert sum(r.topology.n_connections for r in rewirings) == sum(before)
    is_still = share == 1.0 and name not in GROWS_IN_FULL_LAYERS
    still = name in ("static", "neuron_pruning") or is_still
    assert (n_grown > 0) == (not still)


def test_a_limit_that_allows_everything_has_no_effect(name, strategy):
    free = network()
    open_wide = [replace(layer, allowed=Topology.full(layer.topology.shape)) for layer in network()]
    runs = [evolve(strategy, layers, n_rewirings=1) for layers in (open_wide, free)]
    for (_, ours, _), (_, theirs, _) in zip(*runs, strict=True):
        counts = [[r.topology.n_connections for r in rewirings] for rewirings in (ours, theirs)]
        assert counts[0] == counts[1]
        if name in ("rigl", "static", "nest"):  # nothing is drawn there
            assert all(a.topology == b.topology for a, b in zip(ours, theirs, strict=True))


def test_silent_neurons_do_not_stop_growth_within_a_limit(name, strategy):
    def silence(layer):
        x, d = (np.zeros((n, 4), dtype=np.float32) for n in layer.topology.shape)
        return replace(layer, signals=lambda: (x, d))

    for layers, rewirings, _ in evolve(strategy, limited(map(silence, network()))):
        for layer, rewiring in zip(layers, rewirings, strict=True):
            assert_consistent(layer, rewiring)
            if PROMISES.get(name, "layer") == "layer":
                assert rewiring.topology.n_connections == layer.topology.n_connections


@pytest.mark.parametrize(
    "name", [name for name, make in STRATEGIES.items() if isinstance(make(), InPlaceStrategy)]
)
def test_the_in_place_rewiring_equals_the_general_one_bit_for_bit(strategy):
    layer = random_layer((300, 200), 4000, n_states=2)
    general, in_place = sparse_layer(layer), sparse_layer(layer)
    [rewiring] = strategy.rewire([layer], CLOCK, 3)
    general.apply(rewiring)
    strategy.rewire_in_place(in_place, CLOCK, layer_seed(3, 0), 2)
    assert in_place.topology == general.topology
    assert_array_equal(in_place.weights, general.weights)
    for ours, theirs in zip(in_place.state, general.state, strict=True):
        assert_array_equal(ours, theirs)


def test_parameters_are_attributes_and_in_the_repr(strategy):
    assert repr(strategy).startswith(type(strategy).__name__)
    assert strategy == type(strategy)(
        **{f: getattr(strategy, f) for f in strategy.__dataclass_fields__}
    )
    assert hash(strategy) == hash(replace(strategy))


# ------------------------------------------------------------------------------------- memory

WIDE = """
import json, resource, sys
import numpy as np
from ratoon.evolution import STRATEGIES
from ratoon.topology import Topology
from tests.evolution.cases import layer_state
from tests.evolution.test_contract import EAGER, evolve

N = 200_000
def signals(n_in, n_out):
    # A few hundred neurons are active; then the exact search is over at once.
    rng = np.random.default_rng(0)
    x, d = np.zeros((n_in, 4), "f4"), np.zeros((n_out, 4), "f4")
    x[rng.integers(n_in, size=300)] = 1 + rng.random((300, 4))
    d[rng.integers(n_out, size=300)] = 1 + rng.random((300, 4))
    return lambda: (x, d)

topology = Topology.random((N, N), 100_000, seed=0)
allowed = topology.regrow(np.arange(100_000), 100_000, seed=1).topology
layers = [layer_state(topology, signals=signals(N, N), allowed=a) for a in (None, allowed)]
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
cap = size + 256 * 2**20  # one bit per position would be 5 GB
resource.setrlimit(resource.RLIMIT_AS, (cap, cap))
outcome = {}
for name, make in STRATEGIES.items():
    try:
        for _, rewirings, _ in evolve(make(**EAGER.get(name, {})), layers, n_rewirings=2):
            outcome[name] = [r.topology.n_connections for r in rewirings]
    except MemoryError:
        outcome[name] = "out of memory"
print(json.dumps(outcome))
"""


@pytest.fixture(scope="module")
def wide_outcome():
    root = Path(__file__).parents[2]  # so that `tests` can be imported there too
    run = subprocess.run(
        [sys.executable, "-c", WIDE], capture_output=True, text=True, timeout=300, cwd=root
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.skipif(
    sys.platform != "linux" or IS_SANITIZED,
    reason="limits address space the way Linux does, and a sanitizer needs terabytes of it",
)
def test_layers_of_200_000_by_200_000_rewire_within_256_megabytes(name, wide_outcome):
    counts = wide_outcome[name]
    assert counts != "out of memory"
    assert all(0 < count <= 300_000 for count in counts)
