"""Early stopping by itself: what counts as better, and when to give up."""

from ratoon.training import EarlyStopping
from tests.training.cases import assert_same_network, start


def observed(scores, **how):
    stopping = EarlyStopping(**how)
    verdicts = [stopping.observe(epoch, score, start()) for epoch, score in enumerate(scores)]
    return stopping, verdicts


def test_patience_is_counted_from_the_best_epoch():
    stopping, verdicts = observed([0.1, 0.3, 0.2, 0.25, 0.2], patience=3)
    assert verdicts == [False, False, False, False, True]
    assert (stopping.best_epoch, stopping.best_score) == (1, 0.3)


def test_the_first_epoch_is_the_best_with_any_score():
    stopping, _ = observed([-float("inf")], patience=3)
    assert stopping.best_epoch == 0
    assert stopping.best_network is not None


def test_a_score_of_nan_is_not_better():
    stopping, verdicts = observed([0.5, float("nan"), float("nan")], patience=2)
    assert verdicts == [False, False, True]
    assert stopping.best_epoch == 0


def test_the_best_network_is_a_copy():
    network = start()
    stopping = EarlyStopping()
    stopping.observe(0, 1.0, network)
    network.layers[0].weights[:] = 0.0
    assert_same_network(stopping.best_network, start())
