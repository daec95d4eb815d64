"""LogMetrics passes every epoch to a tracker and never ends a training on its own."""

import threading

import numpy as np
import pytest
from sklearn.base import clone

from ratoon import SparseMLPClassifier
from ratoon.errors import InvalidParameterError
from ratoon.training import LogMetrics, TrackerWarning

X = np.random.default_rng(0).normal(size=(60, 5))
Y = X[:, 0] > 0


def fit(callback, **parameters):
    model = SparseMLPClassifier(
        (10,), density=0.5, max_iter=3, callbacks=callback, random_state=0, **parameters
    )
    return model.fit(X, Y)


class TensorBoard:
    def __init__(self):
        self.lines = []
        self.lock = threading.Lock()  # as in a real writer: cannot be copied

    def add_scalar(self, name, value, step):
        self.lines.append((name, value, step))


class MLflow:
    def __init__(self):
        self.lines = []

    def log_metrics(self, values, step):
        self.lines += [(name, value, step) for name, value in values.items()]


class WandB:
    def __init__(self):
        self.lines = []

    def log(self, values, step=None):
        self.lines += [(name, value, step) for name, value in values.items()]


class Function:
    def __init__(self):
        self.lines = []

    def __call__(self, values, step):
        self.lines += [(name, value, step) for name, value in values.items()]


@pytest.mark.parametrize("kind", [TensorBoard, MLflow, WandB, Function])
def test_every_epoch_is_passed_on(kind):
    writer = kind()
    model = fit(LogMetrics(writer), early_stopping=True)
    losses = [(value, step) for name, value, step in writer.lines if name == "loss"]
    assert losses == [(loss, k + 1) for k, loss in enumerate(model.loss_curve_)]
    scores = [value for name, value, _ in writer.lines if name == "validation_score"]
    assert scores == model.validation_scores_
    assert "train_score" not in {name for name, *_ in writer.lines}  # not computed


def test_a_prefix_is_put_first():
    writer = MLflow()
    fit(LogMetrics(writer, prefix="fold1/"))
    assert all(name.startswith("fold1/") for name, *_ in writer.lines)


def refuse(values, step):
    raise ConnectionError("no server")


def test_a_tracker_that_fails_warns_once_and_training_continues():
    with pytest.warns(TrackerWarning, match="no server") as caught:
        model = fit(LogMetrics(refuse))
    assert len(caught) == 1
    assert model.n_iter_ == 3


def test_a_tracker_that_fails_can_end_training():
    with pytest.raises(ConnectionError):
        fit(LogMetrics(refuse, on_error="raise"))


def test_copies_share_the_writer():
    writer = TensorBoard()
    model = clone(SparseMLPClassifier(callbacks=LogMetrics(writer, prefix="a/")))
    assert model.callbacks.writer is writer
    assert model.callbacks.prefix == "a/"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"writer": 3}, "writer"), ({"writer": print, "on_error": "ignore"}, "on_error")],
)
def test_other_arguments_are_refused(arguments, named):
    with pytest.raises(InvalidParameterError, match=named):
        LogMetrics(**arguments)


def test_tensorboard_itself(tmp_path):
    tensorboard = pytest.importorskip("torch.utils.tensorboard", reason="needs tensorboard")
    with tensorboard.SummaryWriter(tmp_path) as writer:
        fit(LogMetrics(writer))
    assert any(tmp_path.iterdir())


def test_weights_and_biases_itself(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="needs wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    with wandb.init(dir=tmp_path, project="test") as run:
        fit(LogMetrics(run))
        assert run.summary["loss"] > 0
