"""The ablation of the default recipe: parts that predict as the whole, rows, table."""

from __future__ import annotations

import numpy as np
import pytest
from quality import ablation, ablation_report, apart, larger, measures
from quality.ablation import Fit, fits
from quality.after import GUIDED
from quality.changes import CHANGES
from quality.descent import DESCENT
from quality.others import FURTHER
from quality.rows import append_row
from quality.sets import Split
from quality.weighings import SHARES

from ratoon import SparseMLPClassifier
from ratoon.committee import fit as committee
from ratoon.committee import hidden

SMALL = {"N_NEURONS": 50}


@pytest.fixture(autouse=True)
def _few_neurons(monkeypatch):
    monkeypatch.setattr(hidden, "N_NEURONS", SMALL["N_NEURONS"])


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    x = rng.standard_normal((60, 120)) * rng.uniform(0.5, 2, 120)
    x[:, :30] += 3 * np.eye(3)[y].repeat(10, axis=1)
    return Split(x[:40], x[40:], y[:40], y[40:])


def test_the_parts_predict_what_the_default_predicts(parts):
    model = SparseMLPClassifier(random_state=5, n_jobs=1).fit(parts.x, parts.y)
    test, temperature = apart.weigh(apart.take_apart(parts, 5))[1:]
    predicted, chances = apart.answer(test, temperature)
    np.testing.assert_array_equal(predicted, model.predict(parts.x_test))
    np.testing.assert_allclose(chances, model.predict_proba(parts.x_test), atol=1e-4)


def test_ways_to_weigh_differ_as_they_say(parts):
    found = apart.take_apart(parts, 0, with_folds=True)
    shares = {
        name: apart.shares_of(found, apart.Weighing(**how))
        for name, how in {
            "soft": {},
            "sharper": {"sharpness": 0.5},
            "best": {"shares": "best"},
            "equal": {"shares": "equal"},
            "exponents": {"shares": "exponents"},
            "inside": {"shares": "inside"},
            "linear": {"belief": lambda kind: kind.body == "linear"},
            "shy": {"belief": lambda kind: 0.1 if kind.body == "hidden" else 1.0},
        }.items()
    }
    for share in shares.values():
        assert share.sum() == pytest.approx(1)
    assert np.count_nonzero(shares["best"]) == 1
    np.testing.assert_allclose(shares["equal"].sum(axis=1), 1 / len(found.kinds))
    assert shares["sharper"].max() > shares["soft"].max()
    is_hidden = [kind.body == "hidden" for kind in found.kinds]
    assert shares["linear"][is_hidden].sum() == 0
    assert 0 < shares["shy"][is_hidden].sum() < 0.5 * shares["soft"][is_hidden].sum()
    for q in range(4):
        of_q = [kind.q == q for kind in found.kinds]
        assert shares["exponents"][of_q].sum() == pytest.approx(0.25)
    # Inside a member penalties keep their proportions, whatever the member gets.
    kept = shares["inside"].sum(axis=1) > 0
    inside = shares["inside"][kept] / shares["inside"][kept].sum(axis=1, keepdims=True)
    soft = np.exp(-0.125 * 40 * np.log(found.errors[kept] / found.errors.min()))
    np.testing.assert_allclose(inside, soft / soft.sum(axis=1, keepdims=True))
    assert not np.allclose(found.by_folds, found.test)


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_in_place_for_a_while(name):
    change = CHANGES[name]
    before = [getattr(module, constant) for module, constant, _ in change.replacements]
    with change.made():
        for module, constant, value in change.replacements:
            assert getattr(module, constant) == value
    assert before == [getattr(module, constant) for module, constant, _ in change.replacements]


@pytest.mark.parametrize("name", ["selected 50", "ranks", "rows", "log", "asinh", "information"])
def test_changes_of_samples_and_strengths_learn_what_is_easy(name, parts, monkeypatch):
    monkeypatch.setattr(committee, "N_FOLDS", 3)
    [(predicted, chances)] = ablation.changed_answers(name)(parts, 0, [name]).values()
    assert np.mean(predicted == parts.y_test) > 0.8
    np.testing.assert_allclose(chances.sum(axis=1), 1)


def test_a_network_before_finds_what_tells_classes(parts):
    found = measures.of_a_network_before(parts.x, 2.0 * np.eye(3)[parts.y] - 1, np.ones(40))
    assert found[:30].mean() > 3 * found[30:].mean()


def test_test_rows_change_no_training_row(parts):
    for change in CHANGES.values():
        if change.samples is not None:
            other = parts._replace(x_test=3 * parts.x_test + 1)
            np.testing.assert_array_equal(change.samples(parts).x, change.samples(other).x)


def test_all_ways_and_snapshots_learn_what_is_easy(parts):
    found = ablation.default_answers(parts, 0, SHARES) | ablation.guided_snapshots(parts, 0, GUIDED)
    assert found.keys() == SHARES.keys() | GUIDED.keys()
    for name, (predicted, _) in found.items():
        assert np.mean(predicted == parts.y_test) > 0.7, name


def test_every_fit_has_labels_and_rows_are_not_run_again(tmp_path, monkeypatch, parts):
    assert set(fits()) == {*CHANGES, "default", "by 2 folds", "further", "guided", "descent"}
    labels = [label for fit in fits().values() for label in fit.labels.values()]
    assert all(labels)
    assert len(set(labels)) == len(labels)
    assert fits()["further"].labels == FURTHER
    assert fits()["descent"].labels == DESCENT
    calls = []

    def answers(its, seed, wanted):
        assert wanted == ["default", "worse"]
        calls.append(seed)
        return {"default": (its.y_test, None), "worse": (0 * its.y_test, None)}

    monkeypatch.setattr(ablation, "load_once", lambda name, folder: (parts.x, parts.y))
    for module in (ablation, ablation_report):
        monkeypatch.setattr(
            module, "fits", lambda: {"default": Fit(answers, {"default": "all", "worse": "none"})}
        )
    rows = tmp_path / "ablation.csv"
    assert not ablation.run_missing(rows, ["mine"], [0, 1], tmp_path, 0.0)
    assert ablation.run_missing(rows, ["mine"], [0, 1], tmp_path, 1.0, ["others"])
    assert ablation.run_missing(rows, ["mine"], [0, 1], tmp_path, 1.0)
    assert ablation.run_missing(rows, ["mine"], [0, 1], tmp_path, 1.0)
    assert calls == [0, 1]
    text = ablation_report.write_ablation(rows, tmp_path / "ablation.md")
    assert "| all | 100.00 | - | - | 2 | 100.0 |" in text
    assert "| none | " in text
    assert "| -6" in text


def test_changes_for_larger_sets_have_a_table_of_their_own(tmp_path, monkeypatch, parts):
    def answers(its, seed, wanted):
        return dict.fromkeys(wanted, (0 * its.y_test, None))

    studied = {"worse": Fit(answers, {"worse": "none"}, sets=("madelon",))}
    monkeypatch.setattr(ablation, "load_once", lambda name, folder: (parts.x, parts.y))
    monkeypatch.setattr(larger, "fits", lambda: studied)
    rows, sets = tmp_path / "ablation.csv", ["madelon", "PCMAC", "BASEHOCK"]
    path = ablation_report.larger_beside(rows)
    assert ablation.run_missing(path, sets, [0, 1], tmp_path, 1.0, None, studied)
    for name in sets[:2]:  # the default comes from the study
        for number in (0, 1):
            row = {"method": "ratoon", "set": name, "split": number, "accuracy": 100.0}
            append_row(tmp_path / "quality.csv", row)
    text = ablation_report.write_ablation(rows, tmp_path / "ablation.md")
    assert "| **the default** | 100.0 | 100.0 | - | - | - | - | 2 |" in text
    [line] = [line for line in text.splitlines() if line.startswith("| none | ")]
    assert line.split(" | ")[2:4] == ["-", "-"]
    assert "| -6" in line


def test_changes_for_larger_sets_leave_out_what_they_say():
    assert {fit.sets for fit in larger.fits().values()} <= {
        ("madelon", "PCMAC", "BASEHOCK"),
        ("PCMAC", "BASEHOCK"),
        ("madelon",),
    }
    rng = np.random.default_rng(0)
    many = apart.problem_of(Split(rng.standard_normal((600, 120)), None, np.arange(600) % 2, None))
    assert {kind.body for kind in larger.only_linear(many)} == {"linear"}
    left_out = set(committee.kinds_for(many)) - set(larger.without_pairs(many))
    assert [kind.q for kind in left_out] == [-1]
