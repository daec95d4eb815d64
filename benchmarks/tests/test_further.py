"""Other members of the committee: kernels against their formulas, priors, strengths, descent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quality import apart, bodies, descent, further, measures, others
from quality.changes import Change
from quality.sets import Split

from ratoon.committee import hidden, members
from ratoon.committee.centred import Centred
from ratoon.committee.dual import dual_coefficients

N_FEATURES = 120


@pytest.fixture(autouse=True)
def _few_neurons(monkeypatch):
    monkeypatch.setattr(hidden, "N_NEURONS", 50)


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    x = rng.standard_normal((60, N_FEATURES)) * rng.uniform(0.5, 2, N_FEATURES)
    x[:, :30] += 3 * np.eye(3)[y].repeat(10, axis=1)
    return Split(x[:40], x[40:], y[:40], y[40:])


@pytest.fixture
def rows():
    rng = np.random.default_rng(1)
    return rng.standard_normal((12, 6)).astype(np.float32), rng.uniform(0.5, 2, 6)


def test_an_infinitely_wide_layer_is_the_mean_over_many_neurons(rows):
    z, prior = rows
    rng = np.random.default_rng(2)
    neurons = np.maximum(z @ (np.sqrt(prior)[:, None] * rng.standard_normal((6, 400_000))), 0)
    # Half of all neurons are silent, hence 2; a mean over so many is right to about 0.01.
    found = bodies.similarity(bodies.wide, prior, z, z)
    np.testing.assert_allclose(found, 2 * neurons @ neurons.T / 400_000, atol=0.1)


def test_kernels_are_what_their_formulas_say(rows):
    z, prior = rows
    weighed = z * np.sqrt(prior)
    lengths = np.linalg.norm(weighed, axis=1)
    angles = weighed @ weighed.T / np.outer(lengths, lengths)
    np.testing.assert_allclose(bodies.similarity(bodies.cosine, prior, z, z), angles, atol=1e-5)
    usual = 2 * np.mean(lengths**2)
    distances = np.square(weighed[:, None] - weighed).sum(axis=2)
    found = bodies.similarity(bodies.gaussian, prior, z, z)
    np.testing.assert_allclose(found, np.exp(-distances / usual), rtol=1e-4)
    once = np.clip(bodies.similarity(bodies.wide, prior, z, z) / np.outer(lengths, lengths), -1, 1)
    twice = (np.sqrt(1 - once**2) + (np.pi - np.arccos(once)) * once) / np.pi
    found = bodies.similarity(bodies.deep, prior, z, z) / np.outer(lengths, lengths)
    np.testing.assert_allclose(found, twice, atol=1e-5)


def test_ridge_on_a_kernel_layer_is_ridge_with_the_kernel(rows):
    z, prior = rows
    train, test = z[:8], z[8:]
    layer = bodies.KernelBody(bodies.gaussian).draw(prior, train, None)
    features = layer.respond(train)
    np.testing.assert_allclose(
        features @ features.T, bodies.similarity(bodies.gaussian, prior, train, train), atol=1e-5
    )
    np.testing.assert_allclose(
        layer.respond(test) @ features.T,
        bodies.similarity(bodies.gaussian, prior, test, train),
        atol=1e-4,
    )


@pytest.mark.parametrize("power", [0.5, 2.0])
def test_a_spectrum_is_raised_to_its_power(rows, power):
    z, prior = rows
    features = bodies.KernelBody(bodies.plain, power).draw(prior, z, None).respond(z)
    before = np.linalg.eigvalsh((z * prior) @ z.T)[-6:]
    after = np.linalg.eigvalsh(features @ features.T)[-6:]
    np.testing.assert_allclose(after, before**power, rtol=1e-3)


def test_both_paths_have_the_same_variance_in_one_layer(rows):
    z, prior = rows
    layer = bodies.JointLayer.draw(prior, z, np.random.default_rng(0), with_bias=False)
    features = layer.respond(z)
    linear, bent = features[:, :6], features[:, 6:]
    np.testing.assert_allclose(linear, z * np.sqrt(prior), rtol=1e-6)
    assert bent.shape[1] == 50
    assert bent.var(axis=0).sum() == pytest.approx(linear.var(axis=0).sum(), rel=1e-4)


def test_generations_and_the_whole_scale_are_members_of_their_own(parts):
    problem = apart.problem_of(parts)
    assert [kind.generation for kind in others.generation_kinds(problem)] == [1, 2, 3]
    assert {kind.r for kind in others.whole_scale_kinds(problem)} == {1.0}
    assert len(others.whole_scale_kinds(problem)) == len(members.kinds_for(problem)) / 2


def test_every_class_has_strengths_of_its_own(parts):
    found = apart.take_apart(parts, 0)
    change = Change(replacements=((apart, "fit_members", others.class_by_class),))

    def linear(problem):
        return [kind for kind in found.kinds if kind.body == "linear" and kind.q == 1][:1]

    with change.made():
        other = apart.take_apart(parts, 0, kinds_of=linear)
    z, targets = found.z, found.problem.targets
    one = targets[:, [1]]
    prior = members.f_statistic(z, one, np.ones(40))
    x = Centred.of(z, np.ones(40))
    [dual] = dual_coefficients(x.kernel(prior / prior.mean()), one - one.mean(), np.array([1e-3]))
    expected = (found.z_test - x.centre) @ x.weighed(prior / prior.mean()).T @ dual + one.mean()
    np.testing.assert_allclose(other.test[0, 0, :, [1]].T, expected, atol=1e-4)


def test_two_classes_are_one_question(parts):
    halved = parts._replace(y=parts.y % 2, y_test=parts.y_test % 2)
    change = Change(replacements=((apart, "fit_members", others.class_by_class),))
    with change.made():
        found = apart.take_apart(halved, 0)
    np.testing.assert_array_equal(found.test, apart.take_apart(halved, 0).test)


def test_strength_is_shared_with_whom_one_is_correlated():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    z = rng.standard_normal((40, 20))
    z[:, 0] += 3 * y
    z[:, 1] = z[:, 0] + 0.1 * rng.standard_normal(40)
    targets = 2.0 * np.eye(2)[y] - 1
    f = members.f_statistic(z, targets, np.ones(40))
    found = measures.shared(z, targets, np.ones(40))
    np.testing.assert_allclose(found[:2], f[:2].mean())
    np.testing.assert_allclose(found[2:], f[2:])


def test_all_others_learn_what_is_easy(parts):
    found = others.further_answers(parts, 0, others.FURTHER)
    assert found.keys() == others.FURTHER.keys()
    for name, (predicted, chances) in found.items():
        assert np.mean(predicted == parts.y_test) > 0.8, name
        np.testing.assert_allclose(chances.sum(axis=1), 1)


def test_only_what_is_wanted_is_fitted(parts, monkeypatch):
    calls = []
    take_apart = apart.take_apart
    monkeypatch.setattr(
        further, "take_apart", lambda *given, **how: calls.append(how) or take_apart(*given, **how)
    )
    assert set(others.further_answers(parts, 0, ["r 1"])) == {"r 1"}
    assert len(calls) == 2


def test_layers_judged_in_folds_only_do_not_speak(parts):
    found = apart.take_apart(parts, 0)
    wide = next(group for group in others.OTHERS if "wide folds" in group.variants)
    with wide.change.made():
        second = apart.take_apart(parts, 0, kinds_of=wide.kinds_of)
    is_hidden = [kind.body == "hidden" for kind in found.kinds]
    judged = replace(second, test=found.test[is_hidden])
    both = apart.beside(found, judged, others.linear_stay)
    expected = apart.answer(*apart.weigh(both)[1:])[1]
    given = others.further_answers(parts, 0, ["wide folds"])["wide folds"][1]
    np.testing.assert_allclose(given, expected)
    np.testing.assert_array_equal(both.kinds[-1:], [found.kinds[-1]])


def test_descent_learns_what_is_easy_in_all_ways(parts):
    found = descent.descent_answers(parts, 0, descent.DESCENT)
    assert found.keys() == descent.DESCENT.keys()
    for name, (predicted, _) in found.items():
        assert np.mean(predicted == parts.y_test) > 0.7, name


def test_copies_are_mixed_or_shaken_and_keep_their_number():
    z, targets = np.eye(3, dtype=np.float32), 2 * np.eye(3) - 1
    rng = np.random.default_rng(0)
    same, _ = descent.with_copies(z, targets, descent.WAYS["descent"], rng)
    np.testing.assert_array_equal(same, z)
    mixed, goals = descent.with_copies(z, targets, descent.WAYS["descent mixup"], rng)
    assert len(mixed) == descent.N_COPIES * 3
    np.testing.assert_allclose(mixed, (goals + 1) / 2, atol=1e-6)
    shaken, goals = descent.with_copies(z, targets, descent.WAYS["descent noise"], rng)
    np.testing.assert_array_equal(goals, np.tile(targets, (descent.N_COPIES, 1)))
    assert 0.2 < np.std(shaken - np.tile(z, (descent.N_COPIES, 1))) < 0.8
