"""Survival from the command line: columns of times and events to risks and probabilities."""

import csv
import io
import json

import numpy as np
import pytest


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 6))
    when, end = rng.exponential(10 * np.exp(-2 * x[:, 0])), rng.exponential(20, 80)
    lines = ["sample,months,status,site," + ",".join(f"gene{k}" for k in range(6))]
    for k, row in enumerate(x):
        status = "1:DECEASED" if when[k] <= end[k] else "0:LIVING"
        cells = ",".join(f"{value:.4f}" for value in row)
        lines.append(f"S{k},{min(when[k], end[k]):.2f},{status},{'AB'[k % 2]}{k % 6},{cells}")
    (tmp_path / "tumours.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "tumours.csv"


def test_a_table_with_times_and_events_gives_a_survival_model(ratoon, table, tmp_path):
    model = tmp_path / "m.ratoon"
    trained = ratoon(
        "train", table, "--time", "months", "--event", "status", "--group", "site", "--test", "0.3",
        "-o", model, "--json",
    )  # fmt: skip
    assert trained.code == 0, trained.err
    scored = json.loads(trained.out)["test_scores"]["concordance"]
    assert 0.7 < scored["low"] + 0.15 < scored["value"] + 0.15 < scored["high"] + 0.3
    predicted = ratoon("predict", model, table, "--survival-at", "0,12", "-q")
    assert predicted.code == 0, predicted.err
    header, *rows = csv.reader(io.StringIO(predicted.out))
    assert header == ["sample", "risk", "S(0)", "S(12)"]
    risks, late = (np.array([float(row[k]) for row in rows]) for k in (1, 3))
    assert all(float(row[2]) == 1.0 for row in rows)
    assert np.corrcoef(np.argsort(np.argsort(risks)), np.argsort(np.argsort(-late)))[0, 1] > 0.99
    scored = ratoon("evaluate", model, table)
    assert "concordance" in scored.out
    page = ratoon("report", model, table, "-o", tmp_path / "page.html", "-q")
    assert page.code == 0, page.err
    assert "Survival by predicted risk" in (tmp_path / "page.html").read_text()
    shown = ratoon(
        "data", "show", table, "--read", "time=months", "--read", "event=status",
        "--read", "ignore=site",
    )  # fmt: skip
    assert shown.code == 0, shown.err
    assert "survival: time from 'months'" in shown.out


def test_training_is_estimated_by_cross_validation(ratoon, table, tmp_path):
    page = tmp_path / "page.html"
    trained = ratoon(
        "train", table, "--time", "months", "--event", "status", "--group", "site", "--cv", "4x2",
        "--epochs", "20", "--report", page,
    )  # fmt: skip
    assert trained.code == 0, trained.err
    words = " ".join(trained.out.split())
    assert "4-fold cross-validation, repeated 2 times, stratified by event within groups" in words
    text = page.read_text()
    assert "Of two samples, the one with the higher predicted risk" in text
    assert "every risk is predicted by models that were trained without the sample" in text
    assert "Highest risk first." in text


def test_training_rows_are_named_when_a_model_is_scored(ratoon, table, tmp_path):
    model = tmp_path / "m.ratoon"
    ratoon(
        "train", table, "--time", "months", "--event", "status", "--group", "site", "--cv", "none",
        "-o", model, "-q",
    )  # fmt: skip
    found = ratoon("evaluate", model, table)
    assert "All 80 samples were used for training. Concordance on them" in found.out
    assert "does not describe new samples" in found.out
    lines = table.read_text().splitlines()[:41]
    new = [f"N{k},{9 + k},{(k + 1) % 2},A0," + ",".join([f"0.{k + 1}"] * 6) for k in range(5)]
    table.write_text("\n".join([*lines, *new]) + "\n")
    found = ratoon("evaluate", model, table)
    assert "concordance (Harrell's C)" in found.out
    assert "40 of 45 samples were used for training; concordance on the 5 others" in found.out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("1:DECEASED", "maybe"), "'maybe' for sample"),
        (("1:DECEASED", "0:LIVING"), "no sample has the event"),
        (("S3,", "S3,x"), "times must be numbers|is not a number"),
    ],
)
def test_columns_that_are_not_times_and_events_are_refused(ratoon, table, change, message):
    import re

    table.write_text(table.read_text().replace(*change))
    found = ratoon("train", table, "--time", "months", "--event", "status", "--group", "site")
    assert found.code == 1
    assert re.search(message, found.err), found.err


def test_survival_options_need_a_survival_model(ratoon, table, model, tmp_path):
    found = ratoon("predict", model, table, "--survival-at", "12", "--read", "ignore=status,site")
    assert found.code == 1
    assert "--survival-at needs a survival model" in found.err
    found = ratoon(
        "train", table, "--time", "months", "--event", "status", "--class-weight", "balanced",
        "--read", "ignore=site",
    )  # fmt: skip
    assert found.code == 1
    assert "--class-weight is for classification" in found.err
