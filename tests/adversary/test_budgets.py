"""Networks of any size under a memory limit: they are refused at once, or take little memory."""

import random
import time

import numpy as np
import pytest

import ratoon
from ratoon.errors import NotEnoughMemoryError
from ratoon.evolution import STRATEGIES
from ratoon.network import SparseMLP
from tests.adversary.attacks import only_ratoon_errors, repeat
from tests.processes import IS_SANITIZED

resource = pytest.importorskip("resource")

LIMIT, SLACK = 40_000_000, 120_000_000
X = np.random.default_rng(0).normal(size=(24, 300)).astype(np.float32)
Y = np.arange(24) % 2
ESTIMATORS = {
    "classifier": (ratoon.SparseMLPClassifier, Y),
    "regressor": (ratoon.SparseMLPRegressor, Y * 1.0),
    "targets": (ratoon.SparseMLPRegressor, np.ones((24, 5_000)) * Y[:, None]),
    "survival": (ratoon.SparseMLPSurvival, np.c_[Y + 1, Y]),
}


def draw(choose, widths, how):
    SparseMLP.start((5, *widths, 2), seed=0, **how)


def fit(choose, widths, how):
    kind, y = ESTIMATORS[choose.choice(list(ESTIMATORS))]
    given = {} if choose.random() < 0.2 else {"hidden_layer_sizes": widths, **how}
    if given and choose.random() < 0.5:
        given["evolution"] = choose.choice(sorted(STRATEGIES))
    kind(max_iter=1, random_state=0, **given).fit(X, y)


def restrict(choose, widths, how):
    ratoon.SparseBernoulliRBM(widths[0], n_iter=1, random_state=0, **how).fit(np.clip(X, 0, 1))


def attack(seed):
    choose = random.Random(seed)
    widths = tuple(10 ** choose.randint(1, 9) for _ in range(choose.randint(1, 2)))
    how = choose.choice(({"epsilon": 10 ** choose.uniform(0, 2)}, {"density": choose.random()}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    with only_ratoon_errors():
        try:
            choose.choice((draw, fit, restrict))(choose, widths, how)
        except NotEnoughMemoryError:
            assert time.process_time() - started < 2.0, (seed, "it was drawn before it was refused")
            raise
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert 1024 * more < LIMIT + SLACK, (seed, f"{more} kB")


@pytest.fixture(autouse=True)
def limited(monkeypatch):
    if IS_SANITIZED:
        pytest.skip("sanitizers have memory of their own")
    monkeypatch.setenv("RATOON_MEMORY_LIMIT", str(LIMIT))


@pytest.mark.filterwarnings("ignore")
def test_a_network_fits_or_is_refused_at_once():
    for seed in range(60):
        attack(seed)


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore")
def test_networks_fit_or_are_refused_at_once_for_long(minutes, say):
    repeat(attack, minutes, say)
