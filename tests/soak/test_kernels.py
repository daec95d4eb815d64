"""Kernels beside their float64 twins, on as many drawn examples as time allows."""

import itertools
import random
import time

import pytest
from hypothesis import Phase, seed, settings

from ratoon.kernels import Rule, available_isas
from tests.kernels import test_linear, test_network, test_rewire
from tests.kernels.cases import DTYPES

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


class Counted:
    """A test's body that counts how often it was run."""

    def __init__(self, body):
        self.body, self.runs = body, 0

    def __call__(self, *args, **kwargs):
        self.runs += 1
        return self.body(*args, **kwargs)


def variants(twins):
    """Yield every test with every value of what it is parametrised by, again and again."""
    for test, by in twins:
        for values in itertools.product(*by.values()):
            yield test, dict(zip(by, values, strict=True))


def test_a_hundred_thousand_examples_agree(minutes, say):
    assert len(DTYPES) == 2
    stop = time.monotonic() + 60 * minutes
    counted = {}
    for test, _ in TWINS:
        counted[test] = Counted(test.hypothesis.inner_test)
        test.hypothesis.inner_test = counted[test]
    often = settings(
        max_examples=AT_ONCE,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate, Phase.shrink],
    )
    first = random.SystemRandom().randrange(2**31)
    rounds = itertools.cycle(list(variants(TWINS)))
    for number, (test, parameters) in enumerate(rounds):
        total = sum(each.runs for each in counted.values())
        if total >= ENOUGH or time.monotonic() > stop:
            break
        seed(first + number)(often(test))(**parameters)
    say(f"{total} examples, seeds from {first}")
    assert all(each.runs > 0 for each in counted.values()) or minutes < 1
