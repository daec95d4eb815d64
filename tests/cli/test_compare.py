"""`ratoon compare` and `ratoon compare-strategies`."""

import json

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from ratoon.cli import main
from ratoon.datasets import Dataset, write
from ratoon.evolution import STRATEGIES
from ratoon.experiments.compare import classical
from ratoon.experiments.strategies import SELECTING


def test_every_method_has_a_row(tmp_path, capsys):
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    x = (rng.normal(size=(24, 6)) + y[:, None]).astype(np.float32)
    write(Dataset(x, y, class_names=("ill", "well")), tmp_path / "few.csv")
    arguments = ["compare", str(tmp_path / "few.csv"), "--folds", "2", "--repeats", "1"]
    assert main([*arguments, "--permutations", "0", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["methods"]
    assert [row["method"] for row in rows][:4] == ["ratoon", "SET", "FixProb", "ridge"]
    assert all(0.0 <= row["accuracy"] <= 1.0 for row in rows)
    assert rows[0]["p"] is None


def test_settings_can_be_chosen_by_inner_folds(tmp_path, capsys, monkeypatch):
    from ratoon.cli import compare

    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    x = (rng.normal(size=(24, 6)) + y[:, None]).astype(np.float32)
    write(Dataset(x, y, class_names=("ill", "well")), tmp_path / "few.csv")
    monkeypatch.setattr(compare, "networks", lambda: {"ratoon": lambda seed: GaussianNB()})
    monkeypatch.setattr(compare, "network_grids", lambda: {"ratoon": {"var_smoothing": (0.1, 1)}})
    few = {"l1 logistic": classical(6)["l1 logistic"]}
    monkeypatch.setattr("ratoon.experiments.compare.classical", lambda n_features: few)
    arguments = ["compare", str(tmp_path / "few.csv"), "--folds", "2", "--repeats", "1", "-q"]
    assert main([*arguments, "--permutations", "0", "--nested", "--inner", "2"]) == 0
    outcome = capsys.readouterr().out
    assert "hyperparameters chosen by 2 inner folds" in outcome
    assert main([*arguments, "--permutations", "0", "--nested", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["inner_folds"] == 3


# --------------------------------------------------------------------------- compare-strategies

QUICK = ("--epochs", "3", "--hidden", "20", "--splits", "2")


def test_every_strategy_that_is_not_for_features_has_a_row(ratoon, table):
    done = ratoon("compare-strategies", table, "--label", "outcome", *QUICK, "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    compared = {line["strategy"] for line in found["strategies"]}
    assert compared == set(STRATEGIES) - {"guided_set", *SELECTING}
    assert (found["samples"], found["features"], found["classes"]) == (60, 12, 2)
    for line in found["strategies"]:
        assert 0.0 <= line["accuracy"] <= 1.0
        assert 0.0 < line["explored"] <= 1.0
        assert line["array_bytes"] > 12 * 20
    by_name = {line["strategy"]: line for line in found["strategies"]}
    assert by_name["set"]["n_rewirings"] == 2
    assert by_name["set"]["seconds_per_rewiring"] > 0
    assert by_name["static"]["gain"] is None
    assert by_name["static"]["seconds_per_rewiring"] is None


def test_digits_are_known_by_name_and_can_be_drawn(ratoon, tmp_path):
    picture = tmp_path / "digits.svg"
    done = ratoon(
        "compare-strategies", "digits", *QUICK[:4], "--splits", "1",
        "--strategies", "static,set", "--plot", picture,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "64-20-10" in done.out
    assert "set" in done.out
    assert "rigl" not in done.out
    assert picture.read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("digits", "--strategies", "static,sett"), "no strategy 'sett'"),
        (("digits", "--plot", "out.xyz"), "must end in .png"),
        (("nowhere.csv",), "no such file"),
        (("digits", "--hidden", "many"), "whole numbers"),
    ],
)
def test_a_wrong_option_is_refused_before_training(ratoon, options, message):
    done = ratoon("compare-strategies", *options)
    assert done.code == 1
    assert message in done.err
    assert "split 1" not in done.err
