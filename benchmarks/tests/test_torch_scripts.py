"""The scripts about PyTorch, exports and ranks run, at sizes that show little."""

from __future__ import annotations

import json

import pytest

from benchmarks.tests.test_scripts import run, run_for_json
from tests.processes import LOOKS_FOR_RACES

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("script", ["torch_layers", "torch_digits", "inference", "ranks"])
def test_help_teaches_by_example(script):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    printed = run(script, "--help")
    assert f"{script}.py --" in printed.split("examples:")[1]


def test_digits_reports_weights_accuracy_and_time(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    found = run_for_json("torch_digits", tmp_path, "--models", "MLP", "--seeds", 1, "--epochs", 1)[
        "rows"
    ]
    assert [row["method"] for row in found] == ["dense", "fixed topology", "SET", "RigL"]
    assert found[0]["weights"] > 30 * found[2]["weights"]


def test_layers_reports_a_time_for_every_density(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    how = ["--layers", "lstm", "--densities", "0.01", "--repeats", 1]
    [row] = run_for_json("torch_layers", tmp_path, *how)["milliseconds"]
    assert row["1 %"] > 0


@pytest.mark.skipif(LOOKS_FOR_RACES, reason="finds a race of onnxruntime's own as a process ends")
def test_inference_reports_size_memory_and_agreement(tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    [row] = run_for_json("inference", tmp_path, "--models", "digits")["networks"]
    assert row["file_mb"] < row["dense_mb"] / 10, json.dumps(row)
    assert row["largest_difference"] < 1e-5
