"""Forms of SET: names that are what they say, resumable rows, table."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from quality import guided_forms
from quality.forms import FORMS, GUIDED, RIGL, growth, known_beforehand, strategy
from quality.growth import Growth
from quality.guided_forms_report import write_forms
from quality.sets import WIDE, Split

from ratoon.evolution import SET, Clock, GuidedSET, LayerState
from ratoon.topology import Topology

CLOCK = Clock(4, steps_per_epoch=23, total_steps=920)
STRENGTH = np.arange(1.0, 51.0)
KNOWN = dict.fromkeys(("f", "class", "ridge"), STRENGTH)
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "guided-forms.csv"


@pytest.fixture
def layers():
    rng = np.random.default_rng(0)
    shapes = ((50, 40), (40, 30))
    return [
        LayerState(Topology.random(shape, 200, seed=1), rng.standard_normal(200).astype(np.float32))
        for shape in shapes
    ]


def assert_same(mine, its):
    for one, other in zip(mine, its, strict=True):
        np.testing.assert_array_equal(one.topology.positions, other.topology.positions)
        np.testing.assert_array_equal(one.origin, other.origin)
        np.testing.assert_array_equal(one.grown_weights, other.grown_weights)


@pytest.mark.parametrize("grown", ["zero", "init"])
@pytest.mark.parametrize("behind", [None, 0.9])
def test_defaults_change_no_bit_of_guided_set(layers, grown, behind):
    mine = Growth(STRENGTH, grown=grown, behind=behind).rewire(layers, CLOCK, 7)
    assert_same(mine, GuidedSET(STRENGTH, grown=grown).rewire(layers, CLOCK, 7))


def test_guided_set_has_its_name():
    [name] = [form for form in GUIDED if "GuidedSET" in form]
    found, default = growth(name, KNOWN), GuidedSET(STRENGTH)
    for part in ("power", "zeta", "grown", "every", "until", "anneal", "schedule"):
        assert getattr(found, part) == getattr(default, part), part


def test_later_layers_can_use_another_strategy(layers):
    of = "F^2; zero; 10 times to 5 %; zeta 0.9"
    usual, slower, left = (
        growth(of + more, KNOWN).rewire(layers, CLOCK, 7)
        for more in ("", "; layers behind zeta 0.3", "; layers behind left")
    )
    assert_same(usual[:1], slower[:1])
    assert_same(usual[:1], left[:1])
    counts = [int(found[1].is_grown.sum()) for found in (usual, slower, left)]
    assert counts[0] > 2 * counts[1] > 0 == counts[2]
    assert growth("F; init; each epoch to 25 %; zeta 0.1", KNOWN).behind == 0.3


def test_a_fraction_of_growth_is_uniform():
    strength = np.zeros(50)
    strength[:5] = 1.0
    layer = LayerState(Topology.random((50, 4000), 1000, seed=0), np.ones(1000, dtype=np.float32))
    shares = []
    for anywhere in (0.0, 0.5, 1.0):
        form = Growth(strength, zeta=0.9, anywhere=anywhere)
        rewiring = form.rewire([layer], CLOCK.at(0), 0)[0]
        inputs = rewiring.topology.pairs()[0][rewiring.is_grown]
        shares.append(float(np.mean(inputs < 5)))
    assert shares == pytest.approx([1.0, 0.55, 0.1], abs=0.05)


def test_anywhere_is_set(layers):
    mine = growth("anywhere; zero; each epoch to 25 %; zeta 0.5", KNOWN)
    its = SET(0.5, grown="zero", until=0.25, anneal="cosine")
    assert mine.schedule == its.schedule
    assert_same(mine.rewire(layers, CLOCK, 7), its.rewire(layers, CLOCK, 7))


def test_half_of_init_is_half_as_much(layers):
    whole, half = (
        growth(f"F; {weights}; each epoch to 25 %; zeta 0.3", KNOWN).rewire(layers, CLOCK, 7)[0]
        for weights in ("init", "half of init")
    )
    np.testing.assert_allclose(half.grown_weights, whole.grown_weights / 2)
    assert half.grown_weights.dtype == np.float32


@pytest.mark.parametrize(
    ("moments", "due"),
    [
        ("every 2 steps to 2.5 %", list(range(2, 24, 2))),
        ("every 5 steps to 5 %", list(range(5, 47, 5))),
        ("each epoch to 25 %", list(range(23, 231, 23))),
        ("each epoch to 5 % constant", [23, 46]),
    ],
)
def test_moments_are_those_of_the_name(moments, due):
    schedule = growth(f"F; zero; {moments}; zeta 0.3", KNOWN).schedule
    assert schedule.due_steps(CLOCK.at(0), 920) == due
    assert schedule.factor(CLOCK.at(due[-1])) == pytest.approx(
        1.0 if "constant" in moments else 0.0, abs=0.02
    )


def test_every_form_is_there_once_and_makes_a_strategy():
    assert len(set(FORMS)) == len(FORMS)
    for form in FORMS:
        assert strategy(form, KNOWN, 114).schedule is not None
    assert strategy(RIGL, KNOWN, 114).schedule.due_steps(CLOCK.at(0), 60) == [23, 46]


def test_stored_rows_are_of_these_forms():
    if not RESULTS.exists():
        pytest.skip("the rows are made by `benchmarks/quality.py --guided-forms`")
    with RESULTS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["form"] for row in rows} <= set(FORMS)
    assert {row["set"] for row in rows} == set(WIDE)


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    x = rng.standard_normal((60, 40))
    x[:, 0] += 4 * (y == 0)
    return Split(x[:40], x[40:], y[:40], y[40:])


def test_strengths_come_from_training_rows(parts):
    found = known_beforehand(parts)
    assert found.keys() == {"f", "class", "ridge"}
    for strength in found.values():
        assert strength.argmax() == 0
    assert not np.allclose(found["class"], found["f"])
    other = known_beforehand(parts._replace(x_test=1 - parts.x_test))
    np.testing.assert_array_equal(other["ridge"], found["ridge"])


def test_a_form_learns_what_is_easy(parts):
    easy = replace_signal(parts)
    assert guided_forms.run_one(GUIDED[0], easy, known_beforehand(easy), 0) > 80


def replace_signal(parts):
    told = 3 * np.eye(3)[np.concatenate((parts.y, parts.y_test))].repeat(4, axis=1)
    return parts._replace(
        x=np.hstack((parts.x, told[:40])), x_test=np.hstack((parts.x_test, told[40:]))
    )


def test_results_are_stored_and_divergence_is_reported(tmp_path, monkeypatch, parts):
    calls = []

    def pretended(form, its, known, seed):
        calls.append((form, seed))
        is_b = its.x.mean() > 50
        if form == "static":
            return 60.0 if is_b else 50.0
        if form == RIGL:
            return math.nan if is_b and seed == 100 else 58.0
        return 63.0 + (seed - 100) / 9

    monkeypatch.setattr(
        guided_forms, "load_once", lambda name, folder: (parts.x + 100 * (name == "b"), parts.y)
    )
    monkeypatch.setattr(guided_forms, "run_one", pretended)
    rows = tmp_path / "guided-forms.csv"
    assert not guided_forms.run_missing(rows, ["a", "b"], [100, 109], tmp_path, 0.0)
    assert guided_forms.run_missing(rows, ["a", "b"], [100, 109], tmp_path, 1.0)
    assert guided_forms.run_missing(rows, ["a", "b"], [100, 109], tmp_path, 1.0)
    assert len(calls) == 4 * len(FORMS)
    assert [seed for _, seed in calls] == sorted(seed for _, seed in calls)
    assert f"{RIGL},b,100,\n" in rows.read_text()
    text = write_forms(rows, tmp_path / "guided-forms.md")
    assert "| static: accuracy | 2 | 55.0 | - | 50.0 | 60.0 |" in text
    assert "| SET that settles | 2 | +8.5 ± 0.4 | +9.0 ± nan | +13.5 ± 0.5 | +3.5 ± 0.5 |" in text
    assert f"| {RIGL} | 2 | +8.0 ± 0.0 | +8.0 ± nan | +8.0 ± 0.0 | 1 diverged |" in text
