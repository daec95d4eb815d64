"""Every script runs, at sizes that show nothing, and writes what it promises."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.processes import run_python

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = (
    "reading",
    "selection",
    "epoch",
    "threads",
    "rewire",
    "million",
    "scaling",
    "giant",
    "peers",
    "plan",
    "tox",
    "strategies",
    "strategies_accuracy",
    "dynamic",
    "boltzmann",
    "wide",
    "genes",
)
TOX = Path(__file__).parents[3] / "shared" / "data" / "TOX-171.mat"


def run(script, *options):
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{script}.py"), *map(str, options)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_for_json(script, folder, *options):
    out = folder / "out.json"
    printed = run(script, *options, "--json", out)
    assert "| " in printed, "a table for people"
    found = json.loads(out.read_text())
    assert {"commit", "cpu", "isa", "versions", "load"} <= found["machine"].keys()
    assert {"before", "after", "others_cores"} == found["machine"]["load"].keys()
    return found


# All in one child, which imports what they share once.
HELP = """
import contextlib, io, json, runpy, sys
folder, *scripts = sys.argv[1:]
sys.path.insert(0, folder)
said = {}
for script in scripts:
    path = f"{folder}/{script}.py"
    sys.argv, printed = [path, "--help"], io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(path, run_name="__main__")
    except SystemExit as ended:
        said[script] = ended.code, printed.getvalue()
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def helps():
    done = run_python(HELP, FOLDER, *SCRIPTS, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_help_teaches_by_example(helps, script):
    code, printed = helps[script]
    assert code in (0, None)
    assert "examples:" in printed
    assert f"{script}.py --" in printed


@pytest.mark.slow
def test_epoch_reports_times_memory_and_ratios(tmp_path):
    found = run_for_json(
        "epoch", tmp_path, "--models", "b", "--repeats", 1, "--budget", 0.4, "--minibatches", 3
    )
    model = found["models"]["b"]
    promised = {"train_s", "rewire_s", "test_s", "connections", "peak_rss_mb", "train_cpu_s"}
    assert promised <= model.keys()
    assert all(model[name] > 0 for name in promised)
    assert model["connections"] == 410_400
    assert model["minibatches_measured"] == 3
    assert {"train_over_prototype", "scipy_over_ours", "paper_over_ours"} <= model.keys()
    assert "scaled" in model["scipy_numpy"]["how"]
    assert model["scipy_numpy"]["rewire_s"] > 0


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs two cores, and Linux to hold threads on them",
)
def test_threads_are_compared_with_two_processes(tmp_path):
    found = run_for_json(
        "threads", tmp_path, "--models", "b", "--rounds", 2, "--seconds", 0.05, "--minibatches", 2
    )
    model = found["models"]["b"]
    kinds = {"one", "two", "two_processes", "one_beside_busy", "two_beside_busy"}
    assert kinds == model["ms_by_round"].keys()
    assert all(len(values) == 2 and min(values) > 0 for values in model["ms_by_round"].values())
    assert {"gain", "ceiling", "of_ceiling", "beside_busy"} <= model.keys()
    assert model["near_rounds"] + model["far_rounds"] <= len(model["apart_ns_by_round"]) == 2


@pytest.mark.slow
def test_rewire_is_compared_with_both_implementations(tmp_path):
    found = run_for_json("rewire", tmp_path, "--sizes", "500", "--threads", "1,2")
    [layer] = found["layers"]
    assert layer["connections"] == 10_000
    assert layer["implementation_1_over_native"] > 1
    assert layer["implementation_2_over_native"] > 1
    assert layer["paper_implementation_1_s"] == 0.58
    assert {"native_1t_ms", "native_1t_cpu_ms", "native_2t_ms", "build_1t_ms"} <= layer.keys()


@pytest.mark.slow
def test_million_runs_all_stages(tmp_path):
    found = run_for_json(
        "million", tmp_path, "--scale", 0.002, "--minibatches", 2, "--budget", 0.2,
        "--folder", tmp_path,
    )  # fmt: skip
    phases = [row["phase"] for row in found["phases"]]
    assert phases == [
        "build", "train, batch 5", "rewire", "predict", "save", "load", "predict again",
    ]  # fmt: skip
    assert found["same_after_loading"] is True
    assert found["beside_data_mb"] < found["peak_rss_mb"]
    assert found["scipy"]["SciPy + NumPy"]["over_ours"] > 0


@pytest.mark.slow
def test_giant_steps_with_every_batch_and_leaves_no_file(tmp_path):
    found = run_for_json("giant", tmp_path, "--neurons", 2000, "--folder", tmp_path)
    phases = [row["phase"] for row in found["phases"]]
    assert phases[:3] == ["build", "train, batch 5", "train, batch 1"]
    assert found["neurons"] == 2000 + 54675 + 18
    assert found["same_after_loading"] is True
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.slow
def test_scaling_doubles_and_counts_by_the_connection(tmp_path):
    found = run_for_json("scaling", tmp_path, "--min", 1e4, "--max", 2e4, "--budget", 0.1)
    small, large = found["sizes"]
    assert large["connections"] == pytest.approx(2 * small["connections"], rel=0.1)
    # Index, weight and momentum; biases and theirs come on top.
    assert 12 <= small["parameter_bytes"] < 13
    assert {"step_ns", "rewire_ns", "build_ns", "peak_bytes", "rows_in"} <= small.keys()


@pytest.mark.slow
def test_peers_are_measured_or_left_out_with_a_reason(tmp_path):
    picture = tmp_path / "peers.svg"
    found = run_for_json(
        "peers", tmp_path, "--models", "cifar99,b", "--budget", 0.1, "--limit-gb", 0.1,
        "--references", "ratoon,SciPy + NumPy,scikit-learn MLPClassifier", "--plot", picture,
        "--stream-elements", 1e6, "--max-connections", 4e4, "--peers-max-connections", 4e4,
    )  # fmt: skip
    assert found["models"]["cifar99"]["ratoon"]["seconds"] > 0
    assert found["models"]["cifar99"]["scikit-learn MLPClassifier"]["seconds"] > 0
    assert "GB" in found["models"]["b"]["scikit-learn MLPClassifier"]["skipped"]
    assert found["best_other"]["b"]["by"] == "SciPy + NumPy"
    assert found["roofline"]["stream_gb_s"] > 0
    assert len(found["growth"]["ratoon"]) == 2
    assert picture.read_text().lstrip().startswith("<?xml")


@pytest.mark.slow
def test_peers_continue_where_they_ended(tmp_path):
    only = ("--references", "ratoon", "--no-growth", "--budget", 0.05, "--stream-elements", 1e6)
    first = run_for_json("peers", tmp_path, "--models", "b", *only)
    tables = tmp_path / "peers.md"
    both = run_for_json(
        "peers", tmp_path, "--models", "b,cifar99", *only, "--resume", "--markdown", tables
    )
    assert both["models"]["b"] == first["models"]["b"]
    assert both["roofline"] == first["roofline"]
    assert both["models"]["cifar99"]["ratoon"]["others_cores"] >= 0
    assert "|  | b | cifar99 |" in tables.read_text()
    late = run_for_json("peers", tmp_path, "--models", "d", *only, "--resume", "--minutes", 0)
    assert late == both, "nothing was measured, and nothing is written"
    again = run_for_json("peers", tmp_path, "--models", "b", *only, "--resume", "--rounds", 2)
    rounds = again["models"]["b"]["ratoon"]["seconds_by_round"]
    assert len(rounds) == 2
    assert again["models"]["b"]["ratoon"]["seconds"] == min(rounds)


@pytest.mark.slow
def test_plans_are_compared_with_fits(tmp_path):
    found = run_for_json("plan", tmp_path, "--models", "", "--squares", 1e3, "--budget", 0.1)
    for network in found["networks"].values():
        assert all(value > 0 for value in network.values())


@pytest.mark.slow
def test_tox_reports_best_last_and_mean_of_last_ten(tmp_path):
    if not TOX.exists():
        pytest.skip("TOX-171 is not next to the repository")
    found = run_for_json("tox", tmp_path, "--epochs", 2, "--splits", 1, "--hidden", 50)
    for name in ("SET", "FixProb"):
        assert {"best", "last", "last_ten"} <= found["results"][name].keys()
        assert len(found["curves"][name][0]) == 2
    assert found["released"]["SET"]["last"] == 78.4


@pytest.mark.slow
def test_reading_measures_both_kinds_of_file(tmp_path):
    found = run_for_json("reading", tmp_path, "--samples", 6, "--probes", 50, "--repeats", 1)
    plain, zipped = found["files"]
    assert plain["shape"] == zipped["shape"] == "6 x 50"
    assert plain["file_mb"] > zipped["file_mb"]
    assert plain["peak_rss_mb"] > 10


@pytest.mark.slow
def test_reading_compares_csv_readers(tmp_path):
    rows = run_for_json("reading", tmp_path, "--csv", "--shrink", 4000, "--repeats", 1)["files"]
    assert [row["columns"] for row in rows] == [8, 30, 100, 500, 2000]
    assert all(row["ratoon / pyarrow"] > 0 for row in rows)


@pytest.mark.slow
def test_selection_continues_where_it_stopped_and_compares_means(tmp_path):
    options = ["--seeds", 1, "--splits", 0, "--methods", "ANOVA F,chance"]
    files = ["--rows", tmp_path / "rows.csv", "--out", tmp_path / "out.md"]
    assert "2 generated" not in run("selection", *options, *files)
    before = (tmp_path / "rows.csv").read_text()
    printed = run("selection", *options, *files)
    assert (tmp_path / "rows.csv").read_text() == before, "nothing is run twice"
    assert "| ANOVA F |" in printed
    assert "mean of 1 generated sets" in (tmp_path / "out.md").read_text()


@pytest.mark.slow
def test_panels_are_scored_on_available_sets(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    np.savez(tmp_path / "colon.npz", X=rng.normal(size=(60, 30)) + 2.0 * y[:, None], y=y)
    options = ["--seeds", 1, "--splits", 1, "--methods", "ANOVA F,chance", "--data", tmp_path]
    printed = run("selection", *options, "--rows", tmp_path / "r.csv", "--out", tmp_path / "o.md")
    assert "colon 1." in printed
    assert (tmp_path / "o.png").read_bytes().startswith(b"\x89PNG")
