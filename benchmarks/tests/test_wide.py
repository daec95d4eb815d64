"""The comparison on published folds: same folds, checked labels, resumable, any folder."""

from __future__ import annotations

import csv
import sys

import numpy as np
import pytest
import wide

from ratoon.datasets import make_microarray


@pytest.fixture
def folder(tmp_path):
    data, _ = make_microarray(48, 120, 2, 20, random_state=0)
    np.savez(tmp_path / "made_here.npz", X=data.X, y=np.unique(data.labels, return_inverse=True)[1])
    return tmp_path


def publish(folder, checksums):
    with (folder / wide.PUBLISHED).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["set", "fold", "method", "accuracy", "roc_auc", "labels_crc32"])
        for fold, value in enumerate(checksums):
            for method, accuracy in (("TabPFN-Wide-5k", 0.5), ("TabPFN-Wide-8k", 0.25)):
                writer.writerow(["made-here", fold, method, accuracy, 0.5, value])


def run(monkeypatch, folder, *options):
    given = ["wide.py", "--data", folder, "--rows", folder / "rows.csv", "--out", folder / "out.md"]
    monkeypatch.setattr(sys, "argv", [str(word) for word in (*given, *options)])
    wide.main()
    return (folder / "out.md").read_text()


def test_folds_are_compared_with_the_published_ones(monkeypatch, folder):
    parts = wide.folds(*wide.load("made_here", folder))
    publish(folder, [wide.checksum(part.y_test) for part in parts])
    text = run(monkeypatch, folder, "--methods", "ratoon,ridge", "--folds", 2)
    assert "TabPFN-Wide, best of six on each set (published) | 50.0 |" in text
    assert "Folds of the default: made_here 2." in text
    assert "optimistic there: none" in text


def test_other_labels_are_refused(monkeypatch, folder):
    publish(folder, [1] * 30)
    with pytest.raises(SystemExit, match="30 of 30 folds differ"):
        run(monkeypatch, folder, "--folds", 1)


def test_a_set_without_published_results_is_compared_with_the_alternatives(monkeypatch, folder):
    given = ("--methods", "ratoon,ridge", "--folds", 3, "--sets", "made_here")
    text = run(monkeypatch, folder, *given)
    assert "| ridge, cross-validated |" in text
    assert "TabPFN" not in text.split("## Accuracy")[1]


def test_folds_with_a_row_are_not_run_again(monkeypatch, folder):
    given = ("--sets", "made_here", "--methods", "ridge")
    run(monkeypatch, folder, *given, "--folds", 2)
    before = wide.read_rows(folder / "rows.csv")
    run(monkeypatch, folder, *given, "--folds", 3)
    after = wide.read_rows(folder / "rows.csv")
    assert len(after) == 3
    assert before.items() <= after.items()
    run(monkeypatch, folder, *given, "--folds", 1, "--again", "ridge")
    assert len(wide.read_rows(folder / "rows.csv")) == 1


def test_differences_are_paired_by_fold():
    rows = {("ratoon", "a", f): {"accuracy": 80.0 + f} for f in range(3)}
    rows |= {("ridge", "a", f): {"accuracy": 79.0 + f} for f in range(3)}
    [line] = wide.differences(wide.table_of(rows, "accuracy"), ["a"])
    assert line["a"] == "+1.0 ± 0.0"
