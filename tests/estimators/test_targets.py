import numpy as np
import pytest
from numpy.testing import assert_allclose

from ratoon import SparseMLPClassifier
from ratoon.errors import InvalidInputError
from ratoon.estimators.targets import (
    balanced_weights,
    class_probabilities,
    class_weights,
    codes_of,
    encode_labels,
    label_probabilities,
    log_class_probabilities,
)

LOSSES = ["softmax_cross_entropy", "sigmoid_cross_entropy", "squared_error"]


def test_smoothing_spreads_a_fraction_over_all_classes():
    targets = encode_labels(np.array([2]), 4, loss=LOSSES[0], smoothing=0.2)
    assert_allclose(targets, [[0.05, 0.05, 0.85, 0.05]])


def test_targets_of_a_squared_loss_are_plus_and_minus_one():
    targets = encode_labels(np.array([1]), 2, loss="squared_error", smoothing=0.0)
    assert_allclose(targets, [[-1.0, 1.0]])


@pytest.mark.parametrize("loss", LOSSES)
def test_probabilities_sum_to_one_whatever_the_outputs(loss):
    outputs = np.array([[0.0, 0.0, 0.0], [-900.0, -800.0, -700.0], [5.0, 800.0, -3.0]])
    p = class_probabilities(loss, outputs)
    assert_allclose(p.sum(axis=1), 1.0)
    assert (p >= 0).all()


def test_logarithms_do_not_underflow_under_softmax():
    outputs = np.array([[0.0, 2000.0]])
    assert_allclose(log_class_probabilities(LOSSES[0], outputs), [[-2000.0, 0.0]])


def test_probabilities_of_several_labels_need_not_sum_to_one():
    assert_allclose(label_probabilities("sigmoid_cross_entropy", np.zeros((1, 2))), [[0.5, 0.5]])
    assert_allclose(label_probabilities("squared_error", np.array([[3.0, 0.0]])), [[1.0, 0.5]])


def test_balanced_weights_consider_sample_weights():
    codes = np.array([0, 1, 1])
    assert_allclose(balanced_weights(codes, 3, np.array([2.0, 1.0, 1.0])), [1.0, 1.0, 0.0])


def test_class_weights_are_multiplied_with_sample_weights():
    found = class_weights({"a": 3.0}, np.array(["a", "b"]), np.array([0, 1]), np.array([2.0, 5.0]))
    assert_allclose(found, [6.0, 5.0])


@pytest.mark.parametrize("y", [["z"], ["0"], ["b", "c"]])
def test_codes_refuse_labels_before_between_and_after(y):
    with pytest.raises(InvalidInputError, match="not among the classes"):
        codes_of(np.array(y), np.array(["a", "c", "d"]), where="y")


@pytest.mark.parametrize("weight", [10**400, "heavy", [1]])
def test_sample_weights_that_are_no_numbers_are_refused(weight):
    X, y = np.eye(4), [0, 1, 0, 1]
    with pytest.raises(InvalidInputError, match="`sample_weight` must hold numbers"):
        SparseMLPClassifier((3,), max_iter=1).fit(X, y, [weight, 1, 1, 1])
