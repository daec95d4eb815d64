"""The scripts for speed at wide minibatches run, at sizes that show nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None and shutil.which("clang++") is None, reason="no C++ compiler"
)


def run(script, tmp_path, *options):
    target = tmp_path / "out.json"
    command = [sys.executable, str(FOLDER / f"{script}.py"), *options, "--json", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(target.read_text())


@needs_compiler
def test_the_roofline_has_a_limit_for_every_pass(tmp_path):
    found = run("roofline", tmp_path, "--rows", "50", "--repeats", "1")
    assert found["peak"] > 0
    assert all(one["both"] > 0 for one in found["limits"])


@needs_compiler
def test_throughput_is_a_share_of_the_limit(tmp_path):
    options = [
        "--width",
        "64",
        "--densities",
        "10",
        "--batches",
        "32",
        "--rounds",
        "1",
        "--seconds",
        "0.01",
    ]
    rows = run("throughput", tmp_path, *options)["rows"]
    assert len(rows) == 5
    assert all(row["now"] > 0 and row["share"] > 0 for row in rows)


def test_every_option_is_a_line_of_variants(tmp_path):
    options = ["--samples", "64", "--rounds", "1", "--strategies", "set,snfs"]
    rows = run("variants", tmp_path, *options)["rows"]
    groups = {row["option"] for row in rows}
    assert groups >= {"activation", "dropout", "loss", "optimizer", "dtype", "X", "strategy"}


def test_the_graph_challenge_finds_the_categories_of_scipy(tmp_path):
    options = [
        "--neurons",
        "1024",
        "--layers",
        "9",
        "--inputs",
        "60",
        "--check",
        "40",
        "--others",
        "scipy",
        "--repeats",
        "1",
    ]
    rows = run("graph_challenge", tmp_path, *options)["rows"]
    assert {row["categories as SciPy's"] for row in rows} == {"yes"}
    assert all(row["largest difference"] < 1e-3 for row in rows)


def test_a_crossover_is_a_density(tmp_path):
    pytest.importorskip("torch")
    options = [
        "--widths",
        "64",
        "--batches",
        "8",
        "--threads",
        "1",
        "--rounds",
        "2",
        "--seconds",
        "0.05",
    ]
    rows = run("crossover", tmp_path, *options, "--svg", str(tmp_path / "x.svg"))["rows"]
    assert all(0 < row["crossing"] <= 1 for row in rows)
    assert (tmp_path / "x.svg").stat().st_size < 150_000
