"""Standardisation, linear solvers, hidden layers and single members."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import Lasso, Ridge

from ratoon.committee.linear import iterated_ridge, lasso_path, ridge_duals
from ratoon.committee.members import FAN_IN, Design, HiddenLayer, MemberKind, fit_members
from ratoon.committee.problem import CLIP, CentredRows, Problem, Standardisation

PENALTIES = np.array([0.01, 1.0])


def fitted(problem, *kinds, seed=0, penalties=PENALTIES):
    standardisation = Standardisation.fit(problem.x, problem.weights)
    z = standardisation.transform(problem.x)
    rng = np.random.default_rng(seed)
    design = Design(kinds, penalties, n_neurons=400, has_thresholds=False)
    return z, list(fit_members(problem, standardisation, z, design, rng))


def test_standardised_features_are_clipped_and_0_where_constant():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 4)).astype(np.float32)
    x[0, 0], x[:, 3] = 1e3, 7.0
    z = Standardisation.fit(x, np.ones(50)).transform(x)
    assert z[0, 0] == CLIP
    assert not z[:, 3].any()
    np.testing.assert_allclose(
        z[:, 1:3], (x[:, 1:3] - x[:, 1:3].mean(0)) / x[:, 1:3].std(0), atol=1e-5
    )


@pytest.mark.parametrize("is_sparse", [False, True])
def test_features_that_are_mostly_0_are_clipped_at_twice_their_mean_positive_value(is_sparse):
    x = np.zeros((100, 4), dtype=np.float32)
    x[:10, 0], x[10, 0] = 1.0, 12.0  # mean positive value 2
    x[:60, 1] = x[:40, 2] = 1.0
    x[99, 2] = -1.0
    x[:, 3] = np.arange(100) % 2
    standardisation = Standardisation.fit(
        scipy.sparse.csr_array(x) if is_sparse else x, np.ones(100)
    )
    rows = scipy.sparse.csr_array(x) if is_sparse else x
    z = standardisation.transform(rows)
    z = z.toarray() if is_sparse else z
    np.testing.assert_allclose(z.std(axis=0), 1.0, atol=1e-5)
    capped = np.minimum(x[:, 0], 4.0)
    z_0 = (capped - (0.0 if is_sparse else capped.mean())) / capped.std()
    np.testing.assert_allclose(z[:, 0], z_0, atol=1e-5)
    if not is_sparse:
        np.testing.assert_allclose(standardisation.gains[1:], 1.0)
    spread = x[:, 1:] - (0.0 if is_sparse else x[:, 1:].mean(axis=0))
    np.testing.assert_allclose(z[:, 1:], spread / x[:, 1:].std(axis=0), atol=1e-5)


def test_sparse_features_are_clipped_around_their_mean():
    rng = np.random.default_rng(0)
    x = (50.0 + rng.standard_normal((60, 2))).astype(np.float32)
    x[0, 0] = 90.0
    rows = scipy.sparse.csr_array(x)
    z = Standardisation.fit(rows, np.ones(60)).transform(rows).toarray()
    mean, std = x.mean(axis=0), x.std(axis=0)
    np.testing.assert_allclose(z[1:], (x / std)[1:], rtol=1e-5)
    assert z[0, 0] == pytest.approx(float((mean / std + CLIP)[0]), rel=1e-5)


def test_standardisation_treats_weights_as_repetitions(make_classes, repeat):
    problem = make_classes()
    counts = np.arange(60) % 3 + 1
    many = repeat(problem, counts)
    weighted = Standardisation.fit(problem.x, counts.astype(float))
    repeated = Standardisation.fit(many.x, many.weights)
    np.testing.assert_allclose(weighted.mean, repeated.mean, atol=1e-6)
    np.testing.assert_allclose(weighted.std, repeated.std, rtol=1e-5)


@pytest.mark.parametrize("n_samples", [30, 450])
def test_the_dual_solution_equals_that_of_ridge(n_samples):
    rng = np.random.default_rng(0)
    x, t = rng.standard_normal((n_samples, 500)), rng.standard_normal((n_samples, 2))
    kernel = x @ x.T
    duals = ridge_duals(kernel, t, PENALTIES)
    for dual, penalty in zip(duals, PENALTIES, strict=True):
        alpha = penalty * np.trace(kernel) / n_samples
        expected = Ridge(alpha=alpha, fit_intercept=False).fit(x, t).coef_.T
        np.testing.assert_allclose(x.T @ dual, expected, atol=1e-8)


def test_a_linear_member_is_ridge_with_its_prior(make_classes):
    problem = make_classes()
    z, [member] = fitted(problem, MemberKind("linear", scale=0.5))
    std = problem.x.std(axis=0)
    scaled = (z * np.sqrt(std / std.mean())).astype(np.float64)
    alpha = 0.01 * np.square(scaled - scaled.mean(0)).sum() / len(z)
    expected = Ridge(alpha=alpha).fit(scaled, problem.targets).predict(scaled)
    np.testing.assert_allclose(member.outputs(z)[0], expected, atol=1e-3)


def test_the_exponent_of_the_prior_concentrates_weight_on_strong_features(make_classes):
    problem = make_classes()
    _, members = fitted(problem, *(MemberKind("linear", q) for q in (0, 1, 3)))
    # The first six features carry the classes.
    weights = [np.abs(member.weights(np.array([0.0, 1.0]))).sum(axis=1) for member in members]
    even, preferred, concentrated = (float(w[:6].sum() / w.sum()) for w in weights)
    assert even < preferred < concentrated


@pytest.mark.parametrize("q", [0, 2])
def test_members_treat_weights_as_repetitions(make_classes, repeat, q):
    problem = make_classes()
    counts = np.arange(60) % 3 + 1
    weighed = make_classes(weights=counts.astype(float))
    many = repeat(problem, counts)
    z, [one] = fitted(weighed, MemberKind("linear", q))
    # Weights are relative: the penalty is as large, per sample, for 60 weighed ones as for 60.
    _, [other] = fitted(many, MemberKind("linear", q), penalties=PENALTIES * counts.mean())
    np.testing.assert_allclose(one.outputs(z), other.outputs(z), atol=1e-3)


def test_the_activations_of_a_hidden_layer_follow_its_prior():
    prior = np.r_[np.full(50, 3.0), np.zeros(50)]
    z = np.eye(100, dtype=np.float32)
    layer = HiddenLayer.draw(prior, z, np.random.default_rng(0), 400, has_thresholds=False)
    sizes = np.square(layer.activations(z)).sum(axis=1)
    assert not sizes[50:].any()
    assert sizes[:50].std() / sizes[:50].mean() < 0.4
    assert layer.weights.nnz <= FAN_IN * layer.weights.shape[1]


def test_the_weights_of_a_member_reproduce_its_outputs(make_continuous):
    problem = make_continuous(n_outputs=2)
    z, members = fitted(problem, *Design.for_problem(problem).kinds)
    share = np.array([0.3, 0.7])
    for member in members:
        expected = np.tensordot(share, member.outputs(z), axes=1)
        found = (member.features(z) - member.x.mean) @ member.weights(share) + member.mean
        np.testing.assert_allclose(found, expected, atol=1e-3, err_msg=str(member.kind))


def test_the_lasso_path_equals_that_of_scikit_learn(make_continuous):
    problem = make_continuous()
    x = problem.x - problem.x.mean(0)
    t = problem.targets - problem.targets.mean(0)
    path = lasso_path(CentredRows.of(x, np.ones(len(x))), t, 6)
    top = np.abs(x.T @ t).max()
    for number, level in enumerate(np.logspace(0, np.log10(0.03), 7)[1:4]):
        model = Lasso(level * top / len(x), fit_intercept=False).fit(x, t[:, 0])
        np.testing.assert_allclose(path[number, :, 0], model.coef_, atol=0.02)


def test_iterated_ridge_concentrates_on_the_features_that_matter(make_continuous):
    problem = make_continuous()
    x = problem.x - problem.x.mean(0)
    t = problem.targets - problem.targets.mean(0)
    weights = np.square(
        iterated_ridge(CentredRows.of(x, np.ones(len(x))), t, np.ones(150), PENALTIES)[:, 0, :, 0]
    )
    shares = weights[:, :3].sum(axis=1) / weights.sum(axis=1)
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] > 0.95


def test_lasso_and_iterated_ridge_are_for_regression_only(make_classes, make_continuous):
    assert not {"lasso", "iterated"} & {
        kind.model for kind in Design.for_problem(make_classes()).kinds
    }
    assert {"lasso", "iterated"} <= {
        kind.model for kind in Design.for_problem(make_continuous()).kinds
    }


@pytest.mark.parametrize("is_weighed", [False, True])
@pytest.mark.parametrize("make", ["make_classes", "make_continuous"])
def test_sparse_samples_give_the_same_members_as_dense_ones(make, is_weighed, request):
    dense = request.getfixturevalue(make)()
    rng = np.random.default_rng(3)
    x = np.where(rng.random(dense.x.shape) < 0.8, 0.0, np.abs(dense.x)).astype(np.float32)
    x[:, 7] = 0.0
    weights = 1.0 + np.arange(60) % 3 if is_weighed else np.ones(60)
    dense = dataclasses.replace(dense, x=x, weights=weights)
    sparse = dataclasses.replace(dense, x=scipy.sparse.csr_array(x))
    kinds = Design.for_problem(dense).kinds
    # Products of dense rows are summed in float32, which small penalties magnify.
    z, members = fitted(dense, *kinds, penalties=np.array([0.1, 1.0]))
    z_sparse, others = fitted(sparse, *kinds, penalties=np.array([0.1, 1.0]))
    assert scipy.sparse.issparse(z_sparse)
    assert z_sparse.nnz == np.count_nonzero(x)
    for member, other in zip(members, others, strict=True):
        np.testing.assert_allclose(
            other.outputs(z_sparse), member.outputs(z), atol=2e-3, err_msg=str(member.kind)
        )
        if member.hidden is None:
            assert scipy.sparse.issparse(other.x.rows)


@pytest.mark.parametrize("n_samples", [400, 401])
def test_pairs_are_looked_for_above_400_samples(n_samples):
    x = np.random.default_rng(0).standard_normal((n_samples, 120)).astype(np.float32)
    y = np.where(x[:, 3] * x[:, 8] > 0, 1.0, -1.0)
    targets = np.stack((y, -y), axis=1)
    groups = (y > 0).astype(np.int64)
    problem = Problem(x, targets, np.ones(n_samples), groups, "softmax")
    design = Design.for_problem(problem)
    assert (MemberKind("pairs") in design.kinds) == (n_samples > 400)
    assert not design.has_thresholds
