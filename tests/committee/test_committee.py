"""Committees: folds, shares, merging, calibration, every kind of target."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn.metrics import log_loss, r2_score

from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.committee import Problem, fit_committee, suits
from ratoon.committee.calibration import best_temperature, boundary_shift
from ratoon.committee.fit import MAX_VALIDATED_OUTPUTS, assign_folds, merge_members, mixture_shares
from ratoon.committee.linear import lasso_path
from ratoon.committee.members import Design, fit_members
from ratoon.committee.problem import Standardisation
from ratoon.losses import mean_loss


def test_folds_are_stratified_and_the_same_for_the_same_seed(make_classes):
    problem = make_classes(n_samples=90, n_classes=3)
    folds = assign_folds(problem, 10, seed=3)
    for fold in range(10):
        counts = np.bincount(problem.groups[folds == fold], minlength=3)
        assert counts.max() - counts.min() <= 1
    assert (folds == assign_folds(problem, 10, seed=3)).all()
    assert (folds != assign_folds(problem, 10, seed=4)).any()


def test_the_merged_network_computes_the_weighted_sum_of_its_members(make_continuous):
    problem = make_continuous()
    standardisation = Standardisation.fit(problem.x, problem.weights)
    z = standardisation.transform(problem.x)
    design = dataclasses.replace(Design.for_problem(problem), penalties=np.array([0.1, 1.0]))
    members = list(fit_members(problem, standardisation, z, design, np.random.default_rng(0)))
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.ones(2 * len(design.kinds))).reshape(-1, 2)
    network = merge_members(members, list(shares), standardisation, np.zeros(1))
    expected = sum(
        np.tensordot(share, member.outputs(z), axes=1)
        for member, share in zip(members, shares, strict=True)
    )
    # Sums of several thousand products in float32: five digits.
    np.testing.assert_allclose(network.outputs(problem.x), expected, atol=2e-4)


def test_a_committee_is_the_same_for_the_same_seed(make_classes):
    problem = make_classes()
    first, again, other = (fit_committee(problem, seed) for seed in (0, 0, 1))
    assert (first.network.outputs(problem.x) == again.network.outputs(problem.x)).all()
    assert (first.network.outputs(problem.x) != other.network.outputs(problem.x)).any()
    assert sum(first.shares.values()) == pytest.approx(1.0)


def test_the_network_has_the_temperature_and_the_boundary(make_classes, monkeypatch):
    def outputs(temperature, shift):
        monkeypatch.setattr("ratoon.committee.fit.best_temperature", lambda *_: temperature)
        monkeypatch.setattr("ratoon.committee.fit.boundary_shift", lambda *_: np.array(shift))
        return fit_committee(problem, 0).network.outputs(problem.x)

    problem = make_classes(n_samples=30, n_features=100)
    plain, sharp = outputs(1.0, [0.0, 0.0]), outputs(4.0, [0.0, 0.0])
    moved = outputs(4.0, [0.5, -0.5])
    # Sums of several thousand products in float32.
    np.testing.assert_allclose(sharp, 4.0 * plain, atol=1e-3)
    np.testing.assert_allclose(moved, sharp - [2.0, -2.0], atol=1e-3)


def test_temperature_improves_the_log_loss_of_validation_samples():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    margin = np.where(rng.random(400) < 0.9, 1.0, -1.0) * (2.0 * y - 1.0)
    outputs = np.stack((-margin, margin), axis=1) * 0.3
    hits = np.eye(2)[y]
    chosen = best_temperature(outputs[:200], 2 * hits[:200] - 1, np.ones(200), "softmax")
    before, after = (
        mean_loss("softmax_cross_entropy", factor * outputs[200:], hits[200:], np.ones(200))
        for factor in (1.0, chosen)
    )
    assert chosen > 1
    assert after < before


def test_continuous_targets_have_no_temperature():
    assert best_temperature(np.ones((3, 1)), np.ones((3, 1)), np.ones(3), "squared") == 1.0


def test_the_shifted_boundary_equals_that_of_fishers_discriminant(monkeypatch):
    monkeypatch.setattr("ratoon.committee.calibration.PRIOR_WEIGHT", 1.0)
    rng = np.random.default_rng(0)
    y = (rng.random(200_000) < 0.9).astype(np.int64)
    score = rng.standard_normal(y.size) + np.where(y == 1, 1.0, -1.0)
    targets = np.stack((1.0 - 2.0 * y, 2.0 * y - 1.0), axis=1)
    slope, constant = np.polyfit(score, targets[:, 1], 1)
    outputs = (slope * score + constant)[:, None] * np.array([-1.0, 1.0])
    shift = boundary_shift(outputs, targets, np.ones(y.size), "softmax")
    boundary = (shift[1] - constant) / slope
    # Two normal classes around -1 and 1: their densities times frequencies cross here.
    assert boundary == pytest.approx(-np.log(9.0) / 2, abs=0.03)
    assert abs(-constant / slope - boundary) > 0.5, "least squares alone is far off"


def test_equal_classes_and_other_targets_are_not_shifted():
    targets = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert not boundary_shift(0.5 * targets, targets, np.ones(2), "softmax").any()
    lopsided = np.array([[1.0], [1.0], [-1.0]])
    assert not boundary_shift(0.5 * lopsided, lopsided, np.ones(3), "squared").any()
    assert not boundary_shift(0.5 * lopsided, lopsided, np.ones(3), "sigmoid").any()


def test_undecided_samples_are_assigned_to_the_larger_class():
    targets = np.array([[1.0, -1.0]] * 99 + [[-1.0, 1.0]])
    mean = targets.mean(axis=0)
    undecided = np.tile(mean, (100, 1))
    left = mean - boundary_shift(undecided, targets, np.ones(100), "softmax")
    assert left[0] > left[1]


@pytest.mark.parametrize("n_classes", [2, 5, 9])
def test_classes_are_predicted_and_probabilities_beat_guessing(make_classes, n_classes):
    problem = make_classes(n_samples=108, n_classes=n_classes)
    train, test = problem.take(np.arange(72)), problem.take(np.arange(72, 108))
    model = SparseMLPClassifier(random_state=0).fit(train.x, train.groups)
    assert model.score(test.x, test.groups) > 1.5 / n_classes
    chances = model.predict_proba(test.x)
    assert log_loss(test.groups, chances, labels=range(n_classes)) < np.log(n_classes)


def test_constant_features_and_a_class_with_one_sample_are_accepted(make_classes):
    problem = make_classes(n_samples=40)
    problem.x[:, 50:60] = 3.0
    y = problem.groups.copy()
    y[0] = 7
    model = SparseMLPClassifier(random_state=0).fit(problem.x, y)
    assert np.isfinite(model.predict_proba(problem.x)).all()
    assert model.classes_.tolist() == [0, 1, 7]


def test_multilabel_targets_are_predicted(make_classes):
    problem = make_classes(n_samples=60, n_classes=3)
    labels = np.stack((problem.groups == 0, problem.groups != 1), axis=1)
    whole = Problem(problem.x, 2.0 * labels - 1.0, problem.weights, None, "sigmoid")
    outputs = fit_committee(whole, 0).network.outputs(problem.x)
    assert ((outputs > 0) == labels).mean() > 0.95


def test_regression_finds_few_features_among_many(make_continuous):
    problem = make_continuous(n_samples=260, n_features=400)
    x, y = problem.x, problem.targets[:, 0]
    model = SparseMLPRegressor(random_state=0).fit(x[:60], y[:60])
    assert r2_score(y[60:], model.predict(x[60:])) > 0.95


def test_members_that_select_features_have_small_shares_when_all_features_matter(make_continuous):
    problem = make_continuous(n_samples=60, n_features=200)
    rng = np.random.default_rng(0)
    dense = problem.x @ rng.standard_normal((200, 1)) + 10.0 * rng.standard_normal((60, 1))
    weak = Problem(problem.x, dense / dense.std(), problem.weights, None, "squared")
    shares = fit_committee(weak, 0).shares
    assert sum(share for name, share in shares.items() if "F^0" in name) > 0.6
    strong = fit_committee(problem, 0).shares
    assert sum(share for name, share in strong.items() if "F^0" in name) < 0.1


def test_class_weights_move_the_boundary(make_classes):
    problem = make_classes(n_samples=60, seed=3)
    rare = np.r_[np.flatnonzero(problem.groups == 0), np.flatnonzero(problem.groups == 1)[:6]]
    x, y = problem.x[rare], problem.groups[rare]
    fresh = make_classes(n_samples=200, seed=4).x
    plain, weighed = (
        SparseMLPClassifier(random_state=0, class_weight=given).fit(x, y).predict(fresh).mean()
        for given in (None, {0: 1.0, 1: 20.0})
    )
    assert weighed > plain


def test_cross_validated_outputs_come_from_members_fitted_without_the_sample(make_classes):
    rng = np.random.default_rng(0)
    problem = make_classes(n_samples=60)
    noise = Problem(
        rng.standard_normal(problem.x.shape).astype(np.float32),
        problem.targets,
        problem.weights,
        problem.groups,
        "softmax",
    )
    committee = fit_committee(noise, 0)
    seen = committee.network.outputs(noise.x).argmax(axis=1) == noise.groups
    unseen = committee.cross_validated.argmax(axis=1) == noise.groups
    assert seen.mean() > unseen.mean() + 0.2


def test_committees_suit_few_samples_and_many_features():
    assert suits(100, 22_283)
    assert not suits(100_000, 20_000)
    assert not suits(10, 20_000)


@pytest.mark.parametrize(("n_samples", "n_neurons"), [(30, 1000), (100, 2000), (1000, 4000)])
def test_a_member_has_20_neurons_per_sample_between_1000_and_4000(
    n_samples, n_neurons, monkeypatch
):
    monkeypatch.setattr("ratoon.committee.members.MIN_NEURONS", 1000)
    monkeypatch.setattr("ratoon.committee.members.MAX_NEURONS", 4000)
    x = np.zeros((n_samples, 100), dtype=np.float32)
    problem = Problem(x, np.zeros((n_samples, 1)), np.ones(n_samples), None, "squared")
    assert Design.for_problem(problem).n_neurons == n_neurons


def test_members_have_the_same_design_in_every_fold(make_classes, monkeypatch):
    fitted = []

    def fit_and_record(problem, standardisation, z, design, rng):
        fitted.append((design.n_neurons, design.has_thresholds))
        return fit_members(problem, standardisation, z, design, rng)

    monkeypatch.setattr("ratoon.committee.fit.fit_members", fit_and_record)
    # 520 samples are many, the 390 to fit a fold are not.
    fit_committee(make_classes(n_samples=520), 0)
    assert fitted == [(400, True), (400, True)]


def test_shares_minimise_the_error_of_the_mixture_and_the_distance_to_the_prior():
    rng = np.random.default_rng(0)
    residuals = rng.standard_normal((4, 50)) * np.array([[1.0], [1.2], [2.0], [3.0]])
    residuals[3] = residuals[0] + 0.1 * rng.standard_normal(50)
    products, prior = residuals @ residuals.T / 50, np.array([0.4, 0.3, 0.2, 0.1])
    best = products.diagonal().min()

    def objective(shares):
        return 20.0 * shares @ products @ shares / best + np.sum(shares * np.log(shares / prior))

    found = mixture_shares(products, prior, 20.0)
    assert found.sum() == pytest.approx(1.0)
    others = rng.dirichlet(found * 200 + 0.1, size=200) + 1e-12
    assert all(objective(found) <= objective(other) + 1e-9 for other in others)


def test_shares_equal_the_prior_where_validation_says_nothing():
    prior = np.array([0.7, 0.2, 0.1])
    np.testing.assert_allclose(mixture_shares(np.ones((3, 3)), prior, 50.0), prior, atol=1e-6)


def test_linear_members_count_most_when_there_is_nothing_to_learn(make_classes):
    problem = make_classes(n_samples=40)
    noise = np.random.default_rng(0).standard_normal(problem.x.shape).astype(np.float32)
    shares = fit_committee(dataclasses.replace(problem, x=noise), 0).shares
    assert sum(share for name, share in shares.items() if name.startswith("linear")) > 0.75


def test_many_continuous_targets_share_one_design_and_their_shares(make_continuous):
    n_outputs = MAX_VALIDATED_OUTPUTS + 50
    problem = make_continuous(n_samples=60, n_features=120, n_outputs=n_outputs)
    committee = fit_committee(problem, 0)
    assert all("F^0" in name for name in committee.shares)
    validated = np.isfinite(committee.cross_validated).all(axis=0)
    assert validated.sum() == MAX_VALIDATED_OUTPUTS
    outputs = committee.network.outputs(problem.x)
    assert r2_score(problem.targets, outputs) > 0.5
    # Targets that were not cross-validated are predicted as well as the others.
    assert r2_score(problem.targets[:, ~validated], outputs[:, ~validated]) > 0.5


def test_the_output_layer_has_no_connections_without_weight(make_continuous):
    problem = make_continuous(n_samples=40, n_features=120, n_outputs=30)
    output = fit_committee(problem, 0).network.layers[1]
    assert output.weights.all()
    n_linear = 2 * 30
    assert output.topology.n_connections <= (output.topology.shape[0] - n_linear) * 30 + n_linear


def test_the_refitted_lasso_has_the_penalties_that_were_validated(make_continuous, monkeypatch):
    numbers = []

    def path(x, targets, n_levels):
        numbers.append(n_levels)
        return lasso_path(x, targets, n_levels)

    monkeypatch.setattr("ratoon.committee.fit.MIN_SHARE", 0.0)
    monkeypatch.setattr("ratoon.committee.fit.MIN_PENALTY_SHARE", 0.0)
    monkeypatch.setattr("ratoon.committee.members.lasso_path", path)
    fit_committee(make_continuous(), 0)
    assert len(numbers) == 11
    assert len(set(numbers)) == 1
