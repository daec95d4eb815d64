"""A trial of the paper: what it reports, and that nothing is chosen on the test rows."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.datasets import make_microarray
from ratoon.errors import DivergenceError
from ratoon.evolution import SET, Static
from ratoon.experiments import split_rows
from ratoon.history import EpochRecord, History
from ratoon.paper import PaperSettings, Trial, run_trial
from ratoon.training import Callback

SETTINGS = PaperSettings(hidden=(60,), batch_size=5, n_epochs=6)


@pytest.fixture(scope="module")
def data():
    made, _ = make_microarray(48, 200, 2, 40, random_state=0)
    return made.X, made.y


def trial(data, **more):
    x, y = data
    train_rows, test_rows = split_rows(y, 1 / 3, 0)
    options = {"settings": SETTINGS, "strategy": SET(0.3), "seed": 0, **more}
    return run_trial("SET", x, y, train_rows, test_rows, **options)


def test_the_test_rows_do_not_influence_training(data):
    x, y = data
    train_rows, test_rows = split_rows(y, 1 / 3, 0)
    other_x, other_y = x.copy(), y.copy()
    other_x[test_rows] = 1e6
    other_y[test_rows] = 1 - y[test_rows]
    mine = trial(data, validation_fraction=0.25)
    theirs = run_trial(
        "SET", other_x, other_y, train_rows, test_rows,
        settings=SETTINGS, strategy=SET(0.3), seed=0, validation_fraction=0.25,
    )  # fmt: skip
    for a, b in zip(mine.network.layers, theirs.network.layers, strict=True):
        assert a.topology == b.topology
        assert_array_equal(a.weights, b.weights)
    assert mine.chosen_epoch == theirs.chosen_epoch
    for name in ("loss", "validation_score", "validation_loss"):
        assert mine.history.column(name) == theirs.history.column(name)
    assert mine.test_accuracy != theirs.test_accuracy


def test_last_chosen_and_best_accuracy():
    history = History(
        [
            EpochRecord(epoch, 0.1, 0.1, 9, 0.1, 0, 1.0 + epoch, 0.5, validation_score=score)
            for epoch, score in enumerate([0.7, 0.9, 0.9])
        ]
    )
    result = Trial("SET", network=None, history=history, test_accuracy=[0.95, 0.6, 0.8])
    assert result.last == 0.8
    assert (result.chosen_epoch, result.chosen) == (1, 0.6), (
        "the first of the best on validation rows"
    )
    assert result.best == 0.95, "the paper's optimistic figure"
    assert result.seconds_per_epoch() == 2.5


def test_without_validation_rows_no_epoch_is_chosen(data):
    result = trial(data)
    assert result.chosen_epoch is result.chosen is None
    assert len(result.test_accuracy) == len(result.history) == 6


def test_the_last_accuracy_is_that_of_the_returned_network(data):
    x, y = data
    _, test_rows = split_rows(y, 1 / 3, 0)
    result = trial(data)
    predicted = result.network.outputs(x[test_rows]).argmax(axis=1)
    assert_array_equal(result.test_predictions, predicted)
    assert_array_equal(result.test_labels, y[test_rows])
    assert result.last == np.mean(predicted == y[test_rows])


def test_validation_rows_are_taken_from_the_training_rows(data):
    seen = []

    class Look(Callback):
        def on_fit_begin(self, training):
            seen.append(training)

    trial(data, validation_fraction=0.25, callbacks=[Look()])
    [training] = seen
    assert training.data.n_samples + training.validation.n_samples == 32
    assert training.validation.n_samples == 8


def test_features_are_scaled_with_the_training_rows(data):
    x, y = data
    train_rows, _ = split_rows(y, 1 / 3, 0)
    scaling = trial(data).network.scaling
    np.testing.assert_allclose(scaling.shift, x[train_rows].mean(axis=0), rtol=1e-5)


def test_settings_are_those_of_the_released_code():
    plan = PaperSettings().plan(Static(), seed=3, n_threads=1)
    assert (plan.batch_size, plan.learning_rate, plan.n_epochs) == (1, 0.005, 500)
    assert plan.optimizer.decay == "released"
    assert plan.optimizer.weight_decay == 0.0002
    assert PaperSettings().strategy() == SET(0.3)


def test_a_trial_learns_and_repeats(data):
    one, again = trial(data), trial(data)
    assert one.test_accuracy == again.test_accuracy
    assert one.history[-1].loss < one.history[0].loss


class Diverge(Callback):
    """Raise a divergence error after some complete epochs."""

    def __init__(self, whole):
        self.whole = whole

    def on_epoch_end(self, training, record):
        if record.epoch + 1 == self.whole:
            raise DivergenceError("training diverged: on purpose.")


def test_a_diverged_training_keeps_its_last_accuracy_if_allowed(data):
    with pytest.raises(DivergenceError):
        trial(data, callbacks=[Diverge(3)])
    result = trial(data, callbacks=[Diverge(3)], allow_divergence=True)
    whole = trial(data)
    assert result.diverged == 4
    assert whole.diverged is None
    assert result.test_accuracy == whole.test_accuracy[:3] + 3 * [whole.test_accuracy[2]]


def test_divergence_in_the_first_epoch_is_always_an_error(data):
    wild = replace(SETTINGS, learning_rate=1e30)
    with pytest.raises(DivergenceError):
        trial(data, settings=wild, allow_divergence=True)
