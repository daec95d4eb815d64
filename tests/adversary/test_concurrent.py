"""One estimator used from several threads: results are right, or the use is refused."""

import pickle
import random
import threading

import numpy as np
import pytest

import ratoon
from ratoon.errors import RatoonError
from tests.adversary.attacks import repeat

X = np.random.default_rng(0).normal(size=(40, 20))
Y = (X[:, 0] > 0).astype(int)


def uses(model, path):
    return {
        "fit": lambda: model.fit(X, Y),
        "partial_fit": lambda: model.partial_fit(X, Y),
        "save": lambda: model.save(path),
        "pickle": lambda: pickle.loads(pickle.dumps(model)).predict(X),
        "predict": lambda: model.predict_proba(X),
        "importances": lambda: model.feature_importances_,
        "report": lambda: str(model.report_),
        "network": lambda: model.network_.copy().outputs(X.astype(model.network_.dtype)),
    }


def run_at_once(actions):
    """Run every action in a thread of its own, several times; return unexpected exceptions."""
    unexpected, ready = [], threading.Barrier(len(actions))

    def run(action):
        ready.wait()
        for _ in range(4):
            try:
                action()
            except RatoonError:
                pass
            except Exception as error:
                unexpected.append(error)

    threads = [threading.Thread(target=run, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads), "a thread still runs"
    return unexpected


def attack(seed, folder):
    choose = random.Random(seed)
    how = {"hidden_layer_sizes": (10,), "epsilon": 3, "max_iter": 3, "random_state": 0}
    evolution = choose.choice(("set", "rigl", "snfs", "gse", "static"))
    model = ratoon.SparseMLPClassifier(**how, evolution=evolution).fit(X, Y)
    path = folder / "model.ratoon"
    known = uses(model, path)
    chosen = [choose.choice(("fit", "partial_fit")), *choose.choices(list(known), k=3)]
    # While another thread fits from the start, the estimator has no network for a moment.
    unexpected = [
        error
        for error in run_at_once([known[name] for name in chosen])
        if type(error).__name__ not in ("NotFittedError", "AttributeError") or "fit" not in chosen
    ]
    assert not unexpected, (chosen, unexpected)
    # Afterwards the estimator is as good as any.
    assert np.isfinite(model.fit(X, Y).predict_proba(X)).all()
    model.save(path)
    assert np.array_equal(ratoon.load(path).predict_proba(X), model.predict_proba(X))
    again = ratoon.SparseMLPClassifier(**how, evolution=evolution).fit(X, Y)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(12))
def test_use_from_several_threads_works_or_is_refused(tmp_path, seed):
    attack(seed, tmp_path)


@pytest.mark.filterwarnings("ignore")
def test_predictions_of_one_estimator_from_many_threads_are_equal():
    model = ratoon.SparseMLPClassifier((10,), max_iter=2, random_state=0).fit(X, Y)
    expected, found = model.predict_proba(X), []
    assert not run_at_once([lambda: found.append(model.predict_proba(X))] * 4)
    assert len(found) == 16
    assert all(np.array_equal(one, expected) for one in found)


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore")
def test_use_from_several_threads_works_or_is_refused_for_long(tmp_path, minutes, say):
    repeat(lambda seed: attack(seed, tmp_path), minutes, say)
