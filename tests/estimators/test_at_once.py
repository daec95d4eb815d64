"""Estimators in several threads of one program: each gives what it gives alone."""

import copy
import pickle
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from ratoon import SparseBernoulliRBM, SparseMLPClassifier, SparseMLPRegressor, load
from ratoon.errors import AlreadyTrainingError
from ratoon.training import Callback
from tests.processes import LOOKS_FOR_RACES, with_tests_importable

N_THREADS = 4


@pytest.fixture
def data(rng):
    X = rng.normal(size=(200, 60)).astype(np.float32)
    return X, X[:, 0] + X[:, 1]


def fitted(data, seed, n_jobs=2):
    X, y = data
    how = {"density": 0.3, "max_iter": 5, "random_state": seed, "n_jobs": n_jobs}
    if seed % 2:
        return SparseMLPRegressor((80, 40), **how).fit(X, y)
    return SparseMLPClassifier((80, 40), **how).fit(X, y > 0)


def test_estimators_fitted_at_the_same_time_are_those_fitted_alone(data, equal_networks):
    alone = [fitted(data, seed, n_jobs=1) for seed in range(N_THREADS)]
    with ThreadPoolExecutor(N_THREADS) as pool:
        together = list(pool.map(lambda seed: fitted(data, seed), range(N_THREADS)))
    for one, other in zip(alone, together, strict=True):
        assert equal_networks(one.network_, other.network_)


def test_one_estimator_predicts_in_many_threads_what_it_predicts_in_one(data):
    model, (X, _) = fitted(data, 0), data
    parts = [X[first : first + 50] for first in range(0, 200, 10)]
    expected = [model.predict_proba(part) for part in parts]
    with ThreadPoolExecutor(N_THREADS) as pool:
        found = list(pool.map(model.predict_proba, parts))
    for one, other in zip(expected, found, strict=True):
        assert_array_equal(one, other)


def test_an_estimator_predicts_the_same_while_others_are_trained(data):
    model, (X, _) = fitted(data, 0), data
    expected = model.predict_proba(X)
    with ThreadPoolExecutor(N_THREADS) as pool:
        trainings = [pool.submit(fitted, data, seed) for seed in range(3)]
        while not all(training.done() for training in trainings):
            assert_array_equal(model.predict_proba(X), expected)
        assert_array_equal(trainings[0].result().predict_proba(X), expected)


class Paused(Callback):
    """Holds a training after its first epoch, for another thread to interfere."""

    def __init__(self):
        self.reached, self.resume = threading.Event(), threading.Event()

    def on_epoch_end(self, training, record):
        self.reached.set()
        assert self.resume.wait(30)


@pytest.fixture
def in_training(data):
    """An estimator that another thread is training, paused between two epochs."""
    X, y = data
    model = SparseMLPRegressor((20,), density=0.3, max_iter=2, random_state=0).fit(X, y)
    paused = model.set_params(callbacks=Paused()).callbacks
    with ThreadPoolExecutor(1) as pool:
        training = pool.submit(model.fit, X, y)
        assert paused.reached.wait(30)
        # The pause belongs to the thread in training only.
        model.set_params(callbacks=None)
        yield model
        paused.resume.set()
        training.result()
    model.partial_fit(X, y)  # the estimator is free again


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_an_estimator_in_training_refuses_to_be_trained_by_another_thread(
    in_training, data, method
):
    with pytest.raises(AlreadyTrainingError, match="already training: another thread"):
        getattr(in_training, method)(*data)


def test_an_estimator_in_training_refuses_to_be_saved_by_another_thread(in_training, tmp_path):
    with pytest.raises(AlreadyTrainingError, match="saving it now would mix two states"):
        in_training.save(tmp_path / "model.ratoon")
    assert not (tmp_path / "model.ratoon").exists()


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.deepcopy])
def test_an_estimator_in_training_refuses_to_be_copied_by_another_thread(in_training, duplicate):
    in_training.set_params(callbacks=None)
    with pytest.raises(AlreadyTrainingError, match="pickling"):
        duplicate(in_training)


def test_a_clone_of_an_estimator_in_training_can_be_trained(in_training, data):
    assert clone(in_training).fit(*data).n_iter_ == 2


class Duplicate(Callback):
    """Saves and pickles the estimator in training, from the thread that trains it."""

    def __init__(self, path):
        self.path, self.model, self.pickled = path, None, None

    def on_epoch_end(self, training, record):
        if self.model is not None:
            self.model.save(self.path)
            callbacks, self.model.callbacks = self.model.callbacks, None
            self.pickled = pickle.dumps(self.model)
            self.model.callbacks = callbacks


def test_a_callback_may_save_and_pickle_the_estimator_and_the_copies_can_be_trained(data, tmp_path):
    X, y = data
    duplicate = Duplicate(tmp_path / "model.ratoon")
    model = SparseMLPRegressor((20,), density=0.3, max_iter=2, callbacks=duplicate)
    model.fit(X, y)
    duplicate.model = model
    model.partial_fit(X, y)
    for again in (load(duplicate.path), pickle.loads(duplicate.pickled)):
        assert again.partial_fit(X, y).n_iter_ == model.n_iter_ + 1


class TrainsAgain(Callback):
    def on_epoch_end(self, training, record):
        self.model.partial_fit(*self.data)


def test_a_callback_cannot_train_its_own_estimator(data):
    again = TrainsAgain()
    again.data = data
    model = again.model = SparseMLPRegressor((20,), density=0.3, max_iter=2, callbacks=again)
    with pytest.raises(AlreadyTrainingError, match="in one of its own callbacks"):
        model.fit(*data)


class Interrupts(Callback):
    def on_epoch_end(self, training, record):
        raise KeyboardInterrupt


def test_an_interrupted_estimator_can_be_trained_by_another_thread(data):
    model = SparseMLPRegressor((20,), density=0.3, max_iter=2, callbacks=Interrupts())
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data)
    model.callbacks = None
    with pytest.raises(ValueError, match="y"):
        model.fit(data[0], None)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(model.fit, *data).result()


def test_a_boltzmann_machine_refuses_a_second_thread(data):
    X = np.asarray(data[0] > 0, dtype=np.float32)
    refused, done = [], []
    model = SparseBernoulliRBM(50, n_iter=1, density=0.3, random_state=0)

    def train():
        for _ in range(30):
            try:
                model.partial_fit(X)
                done.append(1)
            except AlreadyTrainingError:
                refused.append(1)

    with ThreadPoolExecutor(N_THREADS) as pool:
        for one in [pool.submit(train) for _ in range(N_THREADS)]:
            one.result()
    assert refused
    assert model.n_iter_ == len(done)


def test_threads_that_train_one_estimator_do_not_crash_the_process():
    # Predictions during training may mix two states, which the thread sanitizer reports.
    meanwhile = "threads[0].join(0.01)" if LOOKS_FOR_RACES else "model.predict(X[:20])"
    script = """
        import threading
        import numpy as np
        from ratoon import SparseMLPClassifier
        from ratoon.errors import AlreadyTrainingError

        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 200)).astype(np.float32)
        y = X[:, 0] > 0
        model = SparseMLPClassifier((200, 200), epsilon=8, random_state=0).fit(X, y)
        refused = []

        def train():
            for _ in range(40):
                try:
                    model.partial_fit(X, y)
                except AlreadyTrainingError:
                    refused.append(1)

        threads = [threading.Thread(target=train) for _ in range(4)]
        [thread.start() for thread in threads]
        while any(thread.is_alive() for thread in threads):
            MEANWHILE
        print("alive", len(refused) > 0)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script).replace("MEANWHILE", meanwhile)],
        capture_output=True,
        text=True,
        timeout=120,
        env=with_tests_importable(),
    )
    assert done.stdout == "alive True\n", done.stderr
