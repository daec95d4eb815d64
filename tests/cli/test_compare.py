"""`ratoon compare` and `ratoon compare-strategies`."""

import json
import sys

import numpy as np
import pytest
from rich.console import Console
from sklearn.naive_bayes import GaussianNB

from ratoon.cli import main
from ratoon.datasets import Dataset, write
from ratoon.evolution import STRATEGIES
from ratoon.experiments.compare import classical
from ratoon.experiments.strategies import SELECTING


def test_every_method_has_a_row(tmp_path, capsys):
    arguments = ["compare", str(few_samples(tmp_path)), "--folds", "2", "--repeats", "1"]
    assert main([*arguments, "--permutations", "0", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["methods"]
    assert [row["method"] for row in rows][:4] == ["ratoon", "SET", "FixProb", "ridge"]
    assert all(0.0 <= row["accuracy"] <= 1.0 for row in rows)
    assert rows[0]["p"] is None


def test_settings_can_be_chosen_by_inner_folds(tmp_path, capsys, monkeypatch):
    from ratoon.cli import compare

    monkeypatch.setattr(compare, "networks", lambda: {"ratoon": lambda seed: GaussianNB()})
    monkeypatch.setattr(compare, "network_grids", lambda: {"ratoon": {"var_smoothing": (0.1, 1)}})
    few = {"l1 logistic": classical(6)["l1 logistic"]}
    monkeypatch.setattr("ratoon.experiments.compare.classical", lambda n_features: few)
    arguments = ["compare", str(few_samples(tmp_path)), "--folds", "2", "--repeats", "1", "-q"]
    assert main([*arguments, "--permutations", "0", "--nested", "--inner", "2"]) == 0
    outcome = capsys.readouterr().out
    assert "hyperparameters chosen by 2 inner folds" in outcome
    assert main([*arguments, "--permutations", "0", "--nested", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["inner_folds"] == 3


def test_rivals_are_chosen_by_name(tmp_path, capsys, monkeypatch):
    from ratoon.cli import compare

    monkeypatch.setattr(compare, "networks", lambda: {"ratoon": lambda seed: GaussianNB()})
    path = str(few_samples(tmp_path))
    arguments = ["compare", path, "--folds", "2", "--repeats", "1", "--permutations", "0"]
    assert main([*arguments, "--rivals", "mrPSVM,iwss", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["methods"]
    assert [row["method"] for row in rows] == ["ratoon", "mrPSVM", "IWSS"]
    assert main([*arguments, "--rivals", "svm,nothing"]) == 1
    assert "no method 'nothing'" in capsys.readouterr().err


def few_samples(folder):
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    x = (rng.normal(size=(24, 6)) + y[:, None]).astype(np.float32)
    write(Dataset(x, y, class_names=("ill", "well")), folder / "few.csv")
    return folder / "few.csv"


def test_too_few_splits_have_no_p_value_and_the_table_fits_80_columns(
    tmp_path, capsys, monkeypatch
):
    from ratoon.cli import compare, terminal

    monkeypatch.setattr(compare, "networks", lambda: {"FixProb": lambda seed: GaussianNB()})
    monkeypatch.setattr(terminal, "console", Console(width=200))
    path = str(few_samples(tmp_path))
    arguments = ["compare", path, "--folds", "2", "--rivals", "largest,svm", "--permutations", "1"]
    assert main([*arguments, "--repeats", "1"]) == 0
    done = capsys.readouterr()
    cells = [line.split() for line in done.out.splitlines() if "largest class" in line]
    assert "-" in cells[0]
    assert "2 splits are too few; at least 5 are needed" in done.err
    assert "corrected resampled t test" in done.err
    assert max(map(len, done.out.splitlines())) <= 80
    assert main([*arguments, "--repeats", "3"]) == 0
    assert "too few" not in capsys.readouterr().err


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


RULES = """
from ratoon.evolution import SET

class Mine(SET):
    pass
"""


def test_strategies_of_a_module_in_the_current_folder_can_be_compared(
    ratoon, tmp_path, monkeypatch
):
    (tmp_path / "rules_of_mine.py").write_text(RULES)
    monkeypatch.chdir(tmp_path)
    chosen = "static,rules_of_mine:Mine(zeta=0.1, until=0.5)"
    how = ["--splits", "1", "--epochs", "2", "--hidden", "9", "--json"]
    found = ratoon("compare-strategies", "digits", "--strategies", chosen, *how)
    assert found.code == 0, found.err
    names = [line["strategy"] for line in json.loads(found.out)["strategies"]]
    assert names == ["static", "rules_of_mine:Mine(zeta=0.1, until=0.5)"]
    assert str(tmp_path) not in sys.path


def test_the_help_lists_strategies(ratoon):
    assert "neuron_pruning" in ratoon("compare-strategies", "--help").out


def test_two_splits_of_strategies_have_no_p_value_and_the_table_fits_80_columns(
    table, capsys, monkeypatch
):
    from ratoon.cli import terminal

    monkeypatch.setattr(terminal, "console", Console(width=200))
    arguments = ["compare-strategies", str(table), "--label", "outcome", "--epochs", "2"]
    assert main([*arguments, "--hidden", "20", "--splits", "2"]) == 0
    done = capsys.readouterr()
    assert "2 splits are too few; at least 5 are needed" in done.err
    assert "0.00 " not in done.out
    assert "-0.0 " not in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_a_comparison_can_end_with_a_page(tmp_path, capsys, monkeypatch):
    from ratoon.cli import compare

    monkeypatch.setattr(compare, "networks", lambda: {"ratoon": lambda seed: GaussianNB()})
    page = tmp_path / "page.html"
    given = ["compare", str(few_samples(tmp_path)), "--folds", "3", "--repeats", "2", "--json"]
    given += ["--rivals", "ridge,largest", "--permutations", "1", "--report", str(page)]
    assert main(given) == 0
    rows = {row["method"]: row for row in json.loads(capsys.readouterr().out)["methods"]}
    text = page.read_text(encoding="utf-8")
    assert text.count('<figure><svg class="chart rows"') == 2
    mean = 100 * rows["ridge"]["accuracy"]
    assert f"<td>{mean:.1f} ±" in text
    assert "difference to ratoon" in text
    assert "How to repeat it" in text
    assert f"--report {page}" in text


def test_strategies_can_end_with_a_page(tmp_path, capsys):
    page = tmp_path / "page.html"
    given = ["compare-strategies", str(few_samples(tmp_path)), "--strategies", "static,set"]
    given += ["--splits", "5", "--epochs", "2", "--hidden", "8", "-q", "--report", str(page)]
    assert main(given) == 0
    text = page.read_text(encoding="utf-8")
    assert "Strategies on few.csv" in text
    assert "difference to static" in text
    assert main([*given[:-1], str(tmp_path / "absent" / "page.html")]) == 1
