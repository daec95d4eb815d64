"""Saving and loading estimators."""

import os
import signal

import numpy as np
import pytest

from ratoon import SparseMLPClassifier, SparseMLPRegressor, load
from ratoon.errors import FormatError
from ratoon.storage import Checkpoint, CheckpointDirectory, ResumeError, read_document
from ratoon.training import Callback
from tests.storage.cases import network_hash

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 20))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=60) > 0, "well", "ill")


class EndAfter(Callback):
    """Ends the training, like an ended process, after a number of epochs."""

    def __init__(self, epoch):
        self.epoch = epoch

    def on_epoch_end(self, training, record):
        if training.epochs_done == self.epoch:
            os.kill(os.getpid(), signal.SIGINT)


def a_classifier(callbacks=None, **how):
    how = {"hidden_layer_sizes": (12,), "epsilon": 4, "max_iter": 8, "random_state": 0, **how}
    return SparseMLPClassifier(callbacks=callbacks, **how)


def summary(model):
    losses = model.history_.column("loss")
    return network_hash(model.network_), losses, model.n_iter_, model.best_iteration_


@pytest.mark.parametrize("how", [{}, {"early_stopping": True, "n_iter_no_change": 3}])
@pytest.mark.parametrize("evolution", ["set", "rigl", "dsr"])
def test_an_interrupted_fit_resumes_to_the_same_bits(tmp_path, evolution, how):
    how = {**how, "evolution": evolution}
    expected = summary(a_classifier(**how).fit(X, Y))
    for epoch in (2, 4):
        with pytest.raises(KeyboardInterrupt):
            a_classifier([EndAfter(epoch), Checkpoint(tmp_path, every=3)], **how).fit(X, Y)
    model = a_classifier([Checkpoint(tmp_path, every=3)], **how).fit(X, Y)
    assert summary(model) == expected


def test_a_fit_on_other_data_is_refused(tmp_path):
    a_classifier([Checkpoint(tmp_path)]).fit(X, Y)
    changed = X.copy()
    changed[3, 4] += 0.5
    with pytest.raises(ResumeError, match=r"data\.samples"):
        a_classifier([Checkpoint(tmp_path)]).fit(changed, Y)
    with pytest.raises(ResumeError, match=r"plan\.n_epochs: 8 there, 9 here"):
        a_classifier([Checkpoint(tmp_path)], max_iter=9).fit(X, Y)


def test_the_error_names_a_missing_random_state(tmp_path):
    a_classifier([Checkpoint(tmp_path)], random_state=None).fit(X, Y)
    with pytest.raises(ResumeError, match=r"plan\.seed.*\n.*Without a `random_state`"):
        a_classifier([Checkpoint(tmp_path)], random_state=None).fit(X, Y)


def test_a_checkpoint_cannot_be_loaded_as_an_estimator(tmp_path):
    a_classifier([Checkpoint(tmp_path)]).fit(X, Y)
    with pytest.raises(FormatError):
        load(CheckpointDirectory(tmp_path).path_of(8))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_loaded_estimator_continues_like_the_saved_one(tmp_path, dtype):
    model = SparseMLPRegressor((12,), epsilon=4, max_iter=9, random_state=0, dtype=dtype)
    for _ in range(3):
        model.partial_fit(X, X[:, 1])
    model.save(tmp_path / "m.ratoon")
    again = load(tmp_path / "m.ratoon")
    assert again.predict(X).tobytes() == model.predict(X).tobytes()
    for _ in range(3):
        model.partial_fit(X, X[:, 1])
        again.partial_fit(X, X[:, 1])
    assert summary(again) == summary(model)


def test_the_file_of_an_estimator_is_a_model(tmp_path):
    a_classifier().fit(X, Y).save(tmp_path / "m.ratoon")
    assert read_document(tmp_path / "m.ratoon", kind="model").config["estimator"]
