"""`ratoon compare` sets a network beside what else there is."""

import json

import numpy as np
from sklearn.naive_bayes import GaussianNB

from ratoon.cli import main
from ratoon.datasets import Dataset, write
from ratoon.experiments.compare import classical


def test_every_method_has_a_line(tmp_path, capsys):
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
    told = capsys.readouterr().out
    assert "settings chosen by 2 inner folds" in told
    assert main([*arguments, "--permutations", "0", "--nested", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["inner_folds"] == 3
