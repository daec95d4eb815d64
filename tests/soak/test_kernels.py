"""Kernels compared with their float64 twins, on as many random examples as time allows."""

import functools
import itertools
import random
import time
from collections import Counter

import pytest
from hypothesis import Phase, seed, settings

from ratoon.kernels import Rule, available_isas
from tests.kernels import test_linear, test_network, test_rewire

pytestmark = pytest.mark.soak

ISAS = available_isas()
TWINS = [
    (test_linear.test_forward_agrees_with_its_twin, {"isa": ISAS}),
    (
        test_linear.test_backward_agrees_with_its_twin_under_every_rule,
        {"isa": ISAS, "rule": list(Rule)},
    ),
    (test_network.test_training_agrees_with_its_twin, {"isa": ISAS}),
    (test_network.test_predictions_agree_with_their_twin, {}),
    (test_network.test_gradients_agree_with_their_twin_and_change_nothing, {}),
    (test_network.test_signals_agree_with_their_twin_and_change_nothing, {}),
    (test_rewire.test_rewiring_in_place_is_that_of_its_twin, {}),
    (test_rewire.test_count_survivors_and_their_values_are_kept, {}),
]
AT_ONCE = 100
"""Examples of one test before the next has its turn."""
ENOUGH = 100_000


def counted(body, counts):
    """Return a test's body that also counts how often it was run."""

    @functools.wraps(body)
    def run(*args, **kwargs):
        counts[body.__name__] += 1
        return body(*args, **kwargs)

    return run


def variants(twins):
    """Yield every test with every value of what it is parametrised by, again and again."""
    for test, by in twins:
        for values in itertools.product(*by.values()):
            yield test, dict(zip(by, values, strict=True))


def test_a_hundred_thousand_examples_agree(minutes, say):
    stop = time.monotonic() + 60 * minutes
    counts = Counter()
    often = settings(
        max_examples=AT_ONCE,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate, Phase.shrink],
    )
    for test, _ in TWINS:
        test.hypothesis.inner_test = counted(test.hypothesis.inner_test, counts)
        often(test)
    first = random.SystemRandom().randrange(2**31)
    rounds = itertools.cycle(list(variants(TWINS)))
    for number, (test, parameters) in enumerate(rounds):
        if counts.total() >= ENOUGH or time.monotonic() > stop:
            break
        seed(first + number)(test)(**parameters)
    say(f"{counts.total()} examples, seeds from {first}")
    assert counts.total() > 0
