import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from ratoon import SparseMLPClassifier
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.optimizers import OPTIMIZERS, SGD


def small(**parameters):
    return SparseMLPClassifier((20,), **{"max_iter": 40, "random_state": 0, **parameters})


def test_one_step_by_hand():
    #  Two samples, two features, no hidden layer, weights and biases 0, so p = 1/2 everywhere.
    #
    #      x      y    p - y of class a, b    gradient of the weights (mean over both samples)
    #    (1, 0)   a       -1/2   1/2              from x1:  -1/4   1/4
    #    (0, 1)   b        1/2  -1/2              from x2:   1/4  -1/4
    #
    #  One step of learning rate 1 takes the gradient away; the biases' gradients cancel out.
    model = SparseMLPClassifier(
        (),
        density=1.0,
        init="zero",
        scale=None,
        solver=SGD(momentum=0.0),
        learning_rate_init=1.0,
        learning_rate="constant",
        max_iter=1,
    )
    X, y = np.eye(2), ["a", "b"]
    model.fit(X, y)

    assert_allclose(model.coefs_[0].toarray(), [[0.25, -0.25], [-0.25, 0.25]])
    assert_allclose(model.intercepts_[0], [0.0, 0.0])
    assert_allclose(model.loss_, np.log(2))
    assert_allclose(model.decision_function(X), [-0.5, 0.5])
    p = 1 / (1 + np.exp(-0.5))
    assert_allclose(model.predict_proba(X), [[p, 1 - p], [1 - p, p]])
    assert_allclose(model.predict_log_proba(X), np.log([[p, 1 - p], [1 - p, p]]))
    assert model.predict(X).tolist() == ["a", "b"]


@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], ["no", "yes"], [False, True], [0.0, 2.0]])
def test_predictions_have_the_type_of_the_labels(two_classes, labels):
    X, y = two_classes
    target = np.array(labels)[y]
    model = small().fit(X, target)
    assert_array_equal(model.classes_, labels)
    assert model.predict(X).dtype == target.dtype
    assert model.score(X, target) > 0.9


def test_many_classes(rng):
    X = rng.normal(size=(200, 4))
    y = X[:, :4].argmax(axis=1)
    model = small(max_iter=80).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.decision_function(X).shape == model.predict_proba(X).shape == (200, 4)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))


@pytest.mark.parametrize("loss", ["auto", "sigmoid_cross_entropy", "squared_error"])
@pytest.mark.parametrize("sparse_y", [False, True])
def test_several_labels_per_sample(rng, loss, sparse_y):
    X = rng.normal(size=(200, 5))
    y = (X[:, :3] > 0).astype(int)
    target = scipy.sparse.csr_array(y) if sparse_y else y
    model = small(loss=loss, max_iter=80).fit(X, target, eval_set=(X, target))
    assert model.score(X, y) > 0.8
    assert model.validation_scores_[-1] == model.score(X, y)
    assert set(np.unique(model.predict(X))) <= {0, 1}
    p = model.predict_proba(X)
    assert p.shape == (200, 3)
    assert ((p > 0.5) == (model.predict(X) == 1)).all()
    assert np.isfinite(model.predict_log_proba(X[:1])).any()


def test_softmax_is_refused_for_several_labels(rng):
    X = rng.normal(size=(20, 3))
    with pytest.raises(InvalidParameterError, match="mutually exclusive"):
        small(loss="softmax_cross_entropy").fit(X, X[:, :2] > 0)
    with pytest.raises(InvalidParameterError, match="`class_weight` needs"):
        small(class_weight="balanced").fit(X, X[:, :2] > 0)


@pytest.mark.parametrize("loss", ["sigmoid_cross_entropy", "squared_error"])
def test_other_losses_give_probabilities_that_agree_with_the_prediction(two_classes, loss):
    X, y = two_classes
    model = small(loss=loss, max_iter=80).fit(X, y)
    p = model.predict_proba(X)
    assert model.score(X, y) > 0.9
    assert_allclose(p.sum(axis=1), 1.0)
    assert_array_equal(p[:, 1] > 0.5, model.predict(X) == 1)


def test_balanced_classes_weigh_the_same(rng):
    X = np.vstack([rng.normal(size=(95, 2)), rng.normal(size=(5, 2)) + 1.5])
    y = np.repeat([0, 1], [95, 5])
    plain = small().fit(X, y)
    balanced = small(class_weight="balanced", scale=None).fit(X, y)
    assert balanced.predict(X).sum() > plain.predict(X).sum()
    by_hand = small(class_weight={0: 100 / 190, 1: 10.0}, scale=None).fit(X, y)
    # Sample weights also count where features are scaled; class weights only in the loss.
    by_sample = small(scale=None).fit(X, y, sample_weight=np.where(y == 1, 10.0, 100 / 190))
    for other in (by_hand, by_sample):
        assert_allclose(balanced.predict_proba(X), other.predict_proba(X))


def test_label_smoothing_keeps_probabilities_away_from_certainty(two_classes):
    X, y = two_classes
    sharp = small(max_iter=200).fit(X, y).predict_proba(X).max(axis=1).mean()
    soft = small(max_iter=200, label_smoothing=0.4).fit(X, y).predict_proba(X).max(axis=1).mean()
    assert soft < 0.85 < 0.95 < sharp


def test_partial_fit_learns_classes_that_were_announced_but_not_yet_seen(two_classes):
    X, y = two_classes
    model = small().partial_fit(X, y, classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2]
    model.partial_fit(X, y + 1)
    assert model.predict_proba(X).shape == (90, 3)


def test_no_hidden_layer_is_logistic_regression(two_classes):
    X, y = two_classes
    model = SparseMLPClassifier((), random_state=0).fit(X, y)
    assert model.network_.widths == (8, 2)
    assert model.score(X, y) > 0.95


# ----------------------------------------------------------------------------------- bad input


def test_one_class_is_refused(two_classes):
    X, y = two_classes
    with pytest.raises(
        InvalidInputError, match="one class only, \\[0\\]: a classifier needs at least two"
    ):
        small().fit(X, np.zeros(90, dtype=int))
    with pytest.raises(InvalidInputError, match="one class only"):
        small().fit(X, y, sample_weight=y)


def test_unknown_labels_are_named(two_classes):
    X, y = two_classes
    model = small().fit(X, y)
    with pytest.raises(InvalidInputError, match=r"not among the classes: \[2\]"):
        model.partial_fit(X, y + 1)
    with pytest.raises(InvalidInputError, match="`eval_set` has labels"):
        small().fit(X, y, eval_set=(X, y + 7))
    with pytest.raises(InvalidInputError, match="is not the same as on last call"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(InvalidInputError, match="at the first call there were 2 classes"):
        model.partial_fit(X, np.c_[y, 1 - y])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (np.linspace(0, 1, 90), "Unknown label type: continuous"),
        (np.where(np.arange(90) == 3, np.nan, 1.0), "Input y contains NaN"),
        (np.arange(50) % 2, "inconsistent numbers of samples: X has 90, y has 50"),
        (np.arange(270).reshape(90, 3) % 4, "several columns with more than two classes"),
        (np.ma.masked_array(np.arange(90) % 2, mask=False), "masked array"),
        (np.arange(90).astype("M8[D]"), "which are not numbers to learn from"),
    ],
)
def test_targets_that_cannot_be_learnt_are_refused(two_classes, y, message):
    with pytest.raises(ValueError, match=message):
        small().fit(two_classes[0], y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ({7: 1.0}, "names classes that y does not have"),
        ({0: -1.0}, "none negative"),
        ({0: float("nan")}, "none negative"),
        ({0: float("inf")}, "none negative"),
        ({0: "heavy"}, "must hold finite numbers"),
        ({0: None}, "must hold finite numbers"),
        ({0: 0.0, 1: 0.0}, "positive for at least two classes"),
        ({0: 0.0}, "positive for at least two classes"),
        ("equal", "must be None"),
    ],
)
def test_invalid_class_weights_are_refused(two_classes, weight, message):
    with pytest.raises(InvalidParameterError, match=message):
        small(class_weight=weight).fit(*two_classes)


def test_an_unknown_loss_is_refused(two_classes):
    with pytest.raises(InvalidParameterError, match="`loss` must be"):
        small(loss="hinge").fit(*two_classes)


@pytest.mark.parametrize("solver", OPTIMIZERS)
def test_every_optimizer_learns_by_name(solver):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 20))
    y = (x[:, 0] + x[:, 1] > 0).astype(int)
    model = SparseMLPClassifier((30,), solver=solver, max_iter=30, random_state=0).fit(x, y)
    n_states = OPTIMIZERS[solver]().n_states
    assert {len(layer.state) for layer in model.network_.layers} == {n_states}
    assert model.score(x, y) > 0.9
