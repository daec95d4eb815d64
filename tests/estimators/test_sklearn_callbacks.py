import pytest
import sklearn

pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 and later")

from sklearn.callback import ScoringMonitor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ratoon import SparseMLPClassifier
from ratoon.training import Callback


def small(**parameters):
    return SparseMLPClassifier((10,), **{"max_iter": 4, "random_state": 0, **parameters})


class Recorder:
    """A callback of scikit-learn that records its calls."""

    def __init__(self, stop_after=None):
        self.events, self.scores, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name} {context.task_id}")

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.events.append(f"end {context.task_name} {context.task_id}")
        if fitted_estimator is not None:
            self.scores.append(fitted_estimator.score(X, y))
        return context.task_id == self.stop_after and context.task_name == "epoch"


def test_a_fit_is_a_task_and_every_epoch_its_subtask(two_classes):
    recorder = Recorder()
    small(max_iter=2).set_callbacks(recorder).fit(*two_classes)
    assert recorder.events == [
        "setup",
        "begin fit 0",
        "begin epoch 0",
        "end epoch 0",
        "begin epoch 1",
        "end epoch 1",
        "end fit 0",
        "teardown",
    ]


def test_callbacks_get_the_estimator_as_after_a_training_of_that_many_epochs(two_classes):
    recorder = Recorder()
    model = small().set_callbacks(recorder).fit(*two_classes, eval_set=two_classes)
    assert recorder.scores == [*model.validation_scores_, model.score(*two_classes)]


def test_a_callback_can_end_training(two_classes):
    recorder = Recorder(stop_after=1)
    model = small().set_callbacks(recorder).fit(*two_classes)
    assert model.n_iter_ == 2
    assert recorder.events[-3:] == ["end epoch 1", "end fit 0", "teardown"]


class Fail(Callback):
    def on_epoch_end(self, training, record):
        raise RuntimeError("on purpose")


def test_tasks_are_ended_when_training_fails(two_classes):
    recorder = Recorder()
    with pytest.raises(RuntimeError, match="on purpose"):
        small(callbacks=Fail()).set_callbacks(recorder).fit(*two_classes)
    assert recorder.events[-2:] == ["end epoch 0", "teardown"]


def test_the_monitor_of_scikit_learn_scores_every_epoch(two_classes):
    monitor = ScoringMonitor(scoring="accuracy")
    search = GridSearchCV(small(), {"density": [0.3, 0.6]}, cv=2)
    search.set_callbacks(monitor).fit(*two_classes)
    model = small().set_callbacks(ScoringMonitor(scoring="accuracy")).fit(*two_classes)
    assert model.n_iter_ == 4


def test_callbacks_change_nothing(two_classes, equal_networks):
    with_them = small().set_callbacks(Recorder()).fit(*two_classes)
    assert equal_networks(with_them.network_, small().fit(*two_classes).network_)


def test_metadata_is_routed_to_fit(two_classes):
    X, y = two_classes
    with sklearn.config_context(enable_metadata_routing=True):
        model = small().set_fit_request(sample_weight=True, eval_set=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model)
        pipeline.fit(X, y, sample_weight=[1.0] * 90, eval_set=(X, y))
        assert len(pipeline[-1].validation_scores_) == 4
