"""`ratoon compare` sets a network beside what else there is."""

import json

import numpy as np

from ratoon.cli import main
from ratoon.datasets import Dataset, write


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
