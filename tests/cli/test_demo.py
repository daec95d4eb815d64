"""`ratoon demo`: three parts in a log, a picture, a report, and results as JSON."""

import json

import pytest

from ratoon.cli import demo, demo_digits


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Smaller data and networks than those of --quick."""
    monkeypatch.setattr(demo, "WIDTH", 500)
    small = demo.Size(
        genes=400,
        informative=40,
        digits_epochs=2,
        epochs=2,
        splits=2,
        neurons=2_000,
        million_epochs=2,
    )
    monkeypatch.setattr(demo, "QUICK", small)


def test_the_demo_shows_three_parts_and_writes_a_picture_and_a_report(ratoon, tmp_path):
    picture = tmp_path / "demo.png"
    outcome = ratoon("demo", "--quick", "-o", picture)
    assert outcome.code == 0, outcome.err
    assert "1. Many samples: 1,797 images of digits" in outcome.out
    for strategy in demo_digits.STRATEGIES.values():
        assert strategy in outcome.out
    assert "2. Few samples: 85 of 400 genes, 2 classes" in outcome.out
    assert "split 2 of 2: SET " in outcome.out
    for method in demo.NAMES.values():
        assert method in outcome.out
    assert "3. 2,000 hidden neurons" in outcome.out
    for step in ("built: ", "epoch 2 of 2: 12 steps", "connections replaced", "saved: "):
        assert step in outcome.out
    assert max(len(line) for line in outcome.out.splitlines()) <= 88
    assert "\r" not in outcome.out + outcome.err
    assert "warning" not in outcome.err
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert "trained with SET" in page
    assert "were held out" in page
    assert f"The picture is in {picture}." in outcome.err
    assert f"is in {tmp_path / 'demo.html'}." in outcome.err


def test_results_for_programs_do_not_depend_on_threads(ratoon, tmp_path):
    def results(threads):
        outcome = ratoon(
            "demo", "--quick", "--splits", "1", "--json", "--threads", threads,
            "-o", tmp_path / "d.png",
        )  # fmt: skip
        assert outcome.err == ""
        return json.loads(outcome.out)

    one, two = results(1), results(2)
    assert one["digits"]["accuracy"] == two["digits"]["accuracy"]
    assert set(one["digits"]["accuracy"]) == set(demo_digits.STRATEGIES)
    assert [row["method"] for row in one["methods"]] == ["SET", "static", "default", "ridge"]
    for a, b in zip(one["methods"], two["methods"], strict=True):
        assert 0.0 <= a["accuracy"] <= 1.0
        assert a["accuracy_of_splits"] == b["accuracy_of_splits"]
    large = one["million"]
    assert large["replaced"] == two["million"]["replaced"] > 0
    assert large["connections"] == two["million"]["connections"]
    assert large["dense_connections"] == 1000 * (400 + 1000 + 2)
    assert large["file_bytes"] > 4 * large["connections"]


def test_set_and_static_start_with_the_same_network_of_the_paper():
    from ratoon.estimators.presets import Shape
    from ratoon.estimators.settings import resolve

    shape = Shape(56, 22_283, 2)
    found = [
        resolve(demo.paper_network(3, rewired=rewired, seed=0, threads=1), shape)
        for rewired in (True, False)
    ]
    assert found[0].n_connections == found[1].n_connections
    assert (found[0].epsilon, found[0].batch_size) == (10.0, 1)


@pytest.mark.parametrize(
    ("name", "message"), [("no/demo.png", "there is no folder"), ("demo.xyz", "must end in .png")]
)
def test_a_picture_that_cannot_be_written_is_refused_before_training(
    ratoon, tmp_path, name, message
):
    outcome = ratoon("demo", "-o", tmp_path / name)
    assert outcome.code == 1
    assert message in outcome.err
    assert outcome.out == ""
