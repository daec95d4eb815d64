import ast
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import ratoon
from ratoon.errors import InvalidParameterError
from ratoon.rng import MAX_SEED, derive_generator, derive_seed, draw_root

PURPOSES = ["layer", "shuffle", "dropout", "rewire", "split"]


def test_seeds_equal_the_recorded_values():
    # A seed that changed would change every network anyone trained with it.
    assert derive_seed(0, "shuffle", 3) == 72067444147973453
    assert derive_seed(2**63 - 1, "layer") == 4611388314485109714


@given(
    root=st.integers(0, MAX_SEED),
    purpose=st.sampled_from(PURPOSES),
    place=st.lists(st.integers(0, 2**40), max_size=3),
)
def test_a_seed_is_a_function_of_root_purpose_and_place(root, purpose, place):
    seed = derive_seed(root, purpose, *place)
    assert 0 <= seed < 2**64
    assert seed == derive_seed(root, purpose, *place)
    assert seed != derive_seed(root + 1, purpose, *place)
    assert seed != derive_seed(root, purpose + "s", *place)
    assert seed != derive_seed(root, purpose, *place, 1)


# Zeros at the end of a place say nothing, so a purpose has places of one length only.
@pytest.mark.parametrize("length", [0, 1, 2])
def test_no_two_purposes_and_places_share_a_seed(length):
    places = list(product(range(12), repeat=length))
    seeds = {
        derive_seed(root, purpose, *place)
        for root in range(5)
        for purpose in PURPOSES
        for place in places
    }
    # 3600 random numbers of 64 bits are not distinct with probability 3600^2 / 2^65, below 1e-12.
    assert len(seeds) == 5 * len(PURPOSES) * len(places)


def places_by_purpose():
    """For every purpose named in the source: with how many numbers it is used, and where."""
    found = {}
    sources = Path(ratoon.__file__).parent.rglob("*.py")
    for path in sorted(path for path in sources if path.name != "rng.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "").startswith("derive_"):
                _, purpose, *place = node.args
                assert not any(isinstance(part, ast.Starred) for part in place), path
                found.setdefault(ast.literal_eval(purpose), set()).add((len(place), path.stem))
    return found


def test_a_purpose_has_places_of_one_length():
    uses = places_by_purpose()
    assert len(uses) > 20
    mixed = {name: by for name, by in uses.items() if len({length for length, _ in by}) > 1}
    assert mixed == {
        # Rank 0 of several processes draws what a single process draws.
        "dropout": {(0, "cox"), (0, "loop"), (1, "data_parallel")},
        # Their roots differ: a selector derives the roots of the committees it fits from its own.
        "folds": {(0, "selectors"), (1, "fit")},
        "noise": {(0, "deep_r"), (1, "autoencoder")},
    }


def test_seeds_are_the_same_in_another_process():
    # Python's own hash of a text differs between processes; nothing may depend on it.
    script = "from ratoon.rng import derive_seed; print(derive_seed(7, 'rewire', 1, 2))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == derive_seed(7, "rewire", 1, 2)


def test_generators_of_different_places_are_unrelated():
    a, b = (derive_generator(0, "shuffle", epoch).normal(size=10_000) for epoch in range(2))
    # One deviation of the correlation of 10,000 independent pairs is 0.01.
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 * 0.01
    assert_array_equal(a, derive_generator(0, "shuffle", 0).normal(size=10_000))


@pytest.mark.parametrize("state", [0, 7, MAX_SEED, np.int64(3), np.uint8(255)])
def test_an_integer_is_used_as_the_root_seed(state):
    assert draw_root(state) == int(state)
    assert type(draw_root(state)) is int


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_generator_gives_a_new_root_seed_each_time(make):
    state, again = make(5), make(5)
    first, second = draw_root(state), draw_root(state)
    assert first != second
    assert [first, second] == [draw_root(again), draw_root(again)]
    assert 0 <= first <= MAX_SEED


def test_none_gives_a_new_root_each_time():
    roots = {draw_root(None) for _ in range(20)}
    assert len(roots) == 20
    assert all(0 <= root <= MAX_SEED for root in roots)


@pytest.mark.parametrize("state", [-1, np.int64(-5), 1.5, "7", True, [1], object()])
def test_other_values_are_refused_by_name(state):
    with pytest.raises(InvalidParameterError, match="random_state"):
        draw_root(state)
