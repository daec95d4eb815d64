"""The study of predictive quality: its scores, comparisons, rows and tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from quality.compare import difference, mean_ranks, tabulated
from quality.regression import generate, run_case, study
from quality.report import write_report
from quality.rows import METHODS, append_row, missing, read_rows, run_all, run_one
from quality.scores import calibration_error, scores_of
from quality.sets import load, names_in, remarks, split, standardised

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "quality.py"


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    x = rng.standard_normal((60, 120)).astype(np.float32)
    x[:, :10] += 2 * y[:, None]
    data = tmp_path / "data"
    data.mkdir()
    np.savez(data / "mine.npz", X=x, y=y + 1)
    return data


def test_splits_are_stratified_and_scaled_by_training_rows(folder):
    assert names_in(folder) == ["mine"]
    x, y = load("mine", folder)
    assert np.unique(y).tolist() == [0, 1]
    parts = split(x, y, 3)
    assert np.bincount(parts.y_test).tolist() == [10, 10]
    z = standardised(parts)
    np.testing.assert_allclose(z.x.mean(axis=0), 0, atol=1e-9)
    assert np.abs(z.x_test.mean(axis=0)).max() > 0.1


def test_unusual_sets_are_cleaned_and_reported(folder):
    x = np.random.default_rng(1).standard_normal((31, 8))
    x[:, 2], x[4, 3] = 5.0, np.nan
    np.savez(folder / "odd.npz", X=x, y=np.r_[np.repeat(["ill", "well"], 15), ["alone"]])
    found, y = load("odd", folder)
    assert np.bincount(y).tolist() == [15, 15]
    parts = split(found, y, 0)
    assert np.isfinite(parts.x).all()
    assert np.isfinite(parts.x_test).all()
    told = remarks("odd", folder)
    assert "30 x 8, 2 classes of 15-15" in told
    for word in ("1 row left out", "1 missing", "1 features are constant"):
        assert word in told


def test_a_failing_method_is_reported_and_skipped(folder, tmp_path, monkeypatch, capsys):
    def fail(parts, seed):
        raise ValueError("no such luck\nand more")

    monkeypatch.setitem(METHODS, "l1", fail)
    wanted = [("l1", "mine", 0), ("ridge", "mine", 0)]
    assert run_all(tmp_path / "rows.csv", wanted, folder, 1) == 1
    assert "l1 failed on mine, split 0: no such luck\n" in capsys.readouterr().err
    assert missing(tmp_path / "rows.csv", wanted) == wanted[:1]


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("forest", "xgboost")])
def test_every_method_learns_what_is_easy(folder, method):
    if method == "lightgbm":
        pytest.importorskip("lightgbm")
    row = run_one(method, "mine", 0, folder)
    assert row["accuracy"] > 70
    assert row["cpu_seconds"] >= 0


def test_scores_of_perfect_and_of_guessed_probabilities():
    y = np.array([0, 1, 1, 1])
    perfect = scores_of(y, y, np.eye(2)[y])
    assert perfect["accuracy"] == perfect["balanced"] == 100
    assert perfect["log_loss"] == perfect["brier"] == perfect["calibration_error"] == 0
    guess = scores_of(y, np.ones(4), np.full((4, 2), 0.5))
    assert guess["accuracy"] == 75
    assert guess["balanced"] == 50
    assert guess["log_loss"] == pytest.approx(np.log(2))


def test_calibration_error_is_the_gap_between_confidence_and_accuracy():
    chances = np.tile([0.9, 0.1], (10, 1))
    assert calibration_error(np.r_[np.zeros(6, int), np.ones(4, int)], chances) == pytest.approx(
        0.3
    )


def test_stored_rows_are_not_computed_again(tmp_path):
    path = tmp_path / "rows.csv"
    append_row(path, {"method": "ridge", "set": "a", "split": 0, "accuracy": 80.0})
    append_row(path, {"method": "ridge", "set": "a", "split": 0, "accuracy": 90.0})
    [row] = read_rows(path)
    assert row["accuracy"] == 90
    assert np.isnan(row["brier"])
    assert missing(path, [("ridge", "a", 0), ("ridge", "a", 1)]) == [("ridge", "a", 1)]


def rows_of(accuracies):
    return [
        {
            **dict.fromkeys(
                ("balanced", "log_loss", "brier", "calibration_error", "best_on_test"), np.nan
            ),
            "method": method,
            "set": name,
            "split": number,
            "accuracy": value,
            "cpu_seconds": 1.0,
        }
        for (method, name), values in accuracies.items()
        for number, value in enumerate(values)
    ]


ACCURACIES = {
    ("ratoon", "colon"): [80.0, 84.0],
    ("ridge", "colon"): [79.0, 85.0, 10.0],
    ("ratoon", "ALLAML"): [95.0, 97.0],
    ("ridge", "ALLAML"): [91.0, 93.0],
}


def test_differences_are_paired_over_the_splits_both_have():
    table = tabulated(rows_of(ACCURACIES), "accuracy")
    found = difference(table, "ratoon", "ridge", ["colon", "ALLAML"])
    assert found.means == {"colon": 0.0, "ALLAML": 4.0}
    assert found.mean == 2.0
    assert found.worst() == ("colon", 0.0)
    assert found.half_over_splits() == pytest.approx(1.96 * 1.0 / 2)
    assert found.half_over_sets() == pytest.approx(12.706 * 2.0, rel=1e-3)
    assert difference(table, "ratoon", "l1", ["colon"]) is None


def test_ranks_and_critical_difference_follow_nemenyi():
    table = {(m, f"s{i}"): {0: 90.0 - k} for k, m in enumerate("abc") for i in range(10)}
    ranks, critical = mean_ranks(table, list("abc"), [f"s{i}" for i in range(10)])
    assert ranks == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert critical == pytest.approx(2.343 * np.sqrt(3 * 4 / 60), rel=1e-2)


def test_the_report_has_tables_a_summary_and_a_picture(tmp_path):
    text = write_report(rows_of(ACCURACIES), tmp_path / "quality.md")
    assert "| **ratoon, default** | 82.0 ± 2.0 | 96.0 ± 1.0 | 89.00 | 2 |" in text
    assert "+2.00" in text
    assert (tmp_path / "quality.png").stat().st_size > 1000
    assert "ridge CV" in (tmp_path / "quality-summary.csv").read_text()


def test_generated_regression_has_the_given_noise():
    x, y = generate((60, 200, 5, 0.5), seed=0)
    assert x.shape == (1060, 200)
    assert y.std() == pytest.approx(np.sqrt(1.25), rel=0.1)


@pytest.mark.slow
def test_a_regression_case_compares_all_models():
    assert {"ratoon", "ridge", "lasso", "elastic_net"} <= run_case((60, 150, 5, 0.3), 0).keys()


def test_a_regression_study_continues_where_it_stopped(tmp_path, monkeypatch):
    done = []

    def run(case, seed):
        done.append(seed)
        names = ("ratoon", "ridge", "lasso", "elastic_net")
        return dict.fromkeys(names, 0.5 + seed) | {f"{name} s": 1.0 for name in names}

    monkeypatch.setattr("quality.regression.run_case", run)
    case = (60, 150, 5, 0.3)
    study(tmp_path / "r.md", 2, 1, 1.0, [case])
    text = study(tmp_path / "r.md", 3, 1, 1.0, [case])
    assert done == [0, 1, 2]
    assert "| 1.500 | 1.500 | 1.500 | 1.500 | +0.000 ± 0.000 |" in text


@pytest.mark.slow
def test_the_script_runs_on_a_given_folder(folder, tmp_path):
    done = subprocess.run(
        [
            *(sys.executable, SCRIPT, "--data", folder, "--splits", "0-1", "--sets", "mine"),
            *("--methods", "ridge,f_ridge"),
            *("--rows", tmp_path / "rows.csv", "--out", tmp_path / "q.md"),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "4 fits" in done.stdout
    assert "## Other sets" in (tmp_path / "q.md").read_text()
