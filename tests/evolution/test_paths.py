"""The search for absent connections with the best path scores."""

import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from ratoon.kernels.paths import PATH_SCORES, best_by_paths
from ratoon.topology import Topology
from tests.evolution.dense import path_scores


def mask_of(topology, kept):
    mask = np.zeros(topology.shape, dtype=bool)
    mask.ravel()[topology.positions[kept]] = True
    return mask


@st.composite
def layers(draw):
    shape = draw(st.integers(1, 25)), draw(st.integers(1, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    density = draw(st.sampled_from([0.02, 0.1, 0.4, 0.9, 1.0]))
    topology = Topology.random(
        shape, round(density * shape[0] * shape[1]), seed=int(rng.integers(2**32))
    )
    is_kept = rng.random(topology.n_connections) < draw(st.sampled_from([0.0, 0.7, 1.0]))
    return topology, np.flatnonzero(is_kept)


@given(layers(), st.integers(1, 3))
@pytest.mark.parametrize("score", PATH_SCORES)
def test_all_scores_equal_those_of_dense_matrices(score, layer, n_threads):
    topology, kept = layer
    expected = path_scores(mask_of(topology, kept), score)
    found, scores = best_by_paths(topology, kept, score, topology.n_positions, n_threads=n_threads)
    assert_array_equal(found, np.flatnonzero(expected > 0))
    assert_allclose(scores, expected.ravel()[found], rtol=1e-12)


@given(layers(), st.integers(0, 60), st.sampled_from([None, 3]))
@pytest.mark.parametrize("score", PATH_SCORES)
def test_the_best_are_the_largest_and_of_equal_ones_the_first(score, layer, count, seed):
    topology, kept = layer
    everything, values = best_by_paths(topology, kept, score, topology.n_positions, seed=seed)
    found, of_found = best_by_paths(topology, kept, score, count, seed=seed)
    best = np.sort(np.argsort(-values, kind="stable")[:count])
    assert_array_equal(found, everything[best])
    assert_array_equal(of_found, values[best])


@given(layers(), st.integers(0, 60), st.sampled_from([None, 3]), st.integers(0, 2**32))
def test_a_limit_only_removes_positions(layer, count, seed, other):
    topology, kept = layer
    allowed = Topology.random(topology.shape, topology.n_positions // 2, seed=other)
    everything, values = best_by_paths(topology, kept, "ch3_l3p", topology.n_positions, seed=seed)
    found, of_found = best_by_paths(topology, kept, "ch3_l3p", count, seed=seed, allowed=allowed)
    inside = np.isin(everything, allowed.positions)
    best = np.sort(np.argsort(-values[inside], kind="stable")[:count])
    assert_array_equal(found, everything[inside][best])
    assert_array_equal(of_found, values[inside][best])


@pytest.mark.parametrize("score", PATH_SCORES)
@pytest.mark.parametrize("seed", [None, 0])
def test_threads_and_tiling_do_not_change_the_result(score, seed):
    topology = Topology.random((900, 700), 12_000, seed=1)
    kept = np.arange(0, 12_000, 2)
    one = best_by_paths(topology, kept, score, 3000, seed=seed)
    for n_threads in (2, 3):
        assert_array_equal(
            one, best_by_paths(topology, kept, score, 3000, seed=seed, n_threads=n_threads)
        )
    smaller = Topology.from_positions((900, 700), topology.positions[kept])
    assert smaller.tile != topology.tile
    assert_array_equal(one, best_by_paths(smaller, np.arange(6000), score, 3000, seed=seed))


def test_positions_are_drawn_in_proportion_to_their_scores():
    topology = Topology.random((8, 9), 22, seed=0)
    kept = np.arange(22)
    positions, scores = best_by_paths(topology, kept, "ch3_l3p", 72)
    n_draws = 8000
    drawn = [best_by_paths(topology, kept, "ch3_l3p", 1, seed=s)[0][0] for s in range(n_draws)]
    expected = n_draws * scores / scores.sum()
    hits = np.array([np.count_nonzero(np.equal(drawn, position)) for position in positions])
    # Pearson's statistic: its mean is the number of positions, its deviation sqrt(2 n).
    statistic = np.sum((hits - expected) ** 2 / expected)
    assert hits.sum() == n_draws
    assert statistic < positions.size + 5 * np.sqrt(2 * positions.size)


def test_a_second_draw_has_the_probabilities_of_the_rest():
    # Input 0 reaches outputs 1, 2, 3 with scores 1 : 1 : 2 or so; the second draw without
    # replacement is compared with the exact probabilities.
    topology = Topology.from_pairs((3, 4), [0, 1, 1, 1, 2, 2], [0, 0, 1, 2, 0, 3])
    kept = np.arange(6)
    positions, scores = best_by_paths(topology, kept, "ch3_l3p", 12)
    p = scores / scores.sum()
    pair = {}
    for i, first in enumerate(p):
        for j, second in enumerate(p):
            if i != j:
                key = (min(i, j), max(i, j))
                pair[key] = pair.get(key, 0.0) + first * second / (1 - first)
    n_draws = 6000
    hits = dict.fromkeys(pair, 0)
    for seed in range(n_draws):
        found, _ = best_by_paths(topology, kept, "ch3_l3p", 2, seed=seed)
        hits[tuple(np.searchsorted(positions, found).tolist())] += 1
    statistic = sum((hits[key] - n_draws * q) ** 2 / (n_draws * q) for key, q in pair.items())
    assert statistic < len(pair) + 5 * np.sqrt(2 * len(pair))


@pytest.mark.parametrize("wrong", ["kept", "count", "allowed"])
def test_invalid_arguments_are_refused(wrong):
    topology = Topology.random((5, 4), 6, seed=0)
    kept, count, allowed = np.arange(6), 3, None
    if wrong == "kept":
        kept = kept + 1
    if wrong == "count":
        count = -1
    if wrong == "allowed":
        allowed = Topology.random((5, 5), 6, seed=0)
    with pytest.raises(ValueError):
        best_by_paths(topology, kept, "ch3_l3p", count, allowed=allowed)


LONG = """
import sys
import numpy as np
from ratoon.kernels.paths import best_by_paths
from ratoon.topology import Topology

topology = Topology.random((20_000, 20_000), 4_000_000, seed=0)
print("ready", flush=True)
try:
    best_by_paths(topology, np.arange(4_000_000), "ch3_l3p", 10, n_threads=2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send here")
def test_ctrl_c_ends_a_search():
    with subprocess.Popen(
        [sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        timer = threading.Timer(0.5, process.send_signal, [signal.SIGINT])
        timer.start()
        last = process.stdout.readline()
        timer.cancel()
        process.kill()
    assert last == "interrupted\n"
