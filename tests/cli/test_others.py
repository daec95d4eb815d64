"""`ratoon inspect`, `plan`, `bench`, `data`: what they print, as text and as JSON."""

import json

import numpy as np
import pytest

from ratoon import datasets
from ratoon.cli.output import print_json, print_table


def test_inspect_shows_layers_history_and_features(ratoon, model):
    told = ratoon("inspect", model, "--top", "3")
    assert told.code == 0
    assert "SparseMLPClassifier" in told.err
    assert "layers" in told.out
    assert "history" in told.out
    assert "strongest features" in told.out
    assert "gene0" in told.out, "the feature that decides"
    assert max(len(line) for line in told.out.splitlines()) <= 80


def test_inspect_tells_a_program_everything(ratoon, model):
    facts = json.loads(ratoon("inspect", model, "--json", "--top", "2").out)
    assert facts["estimator"] == "SparseMLPClassifier"
    assert facts["classes"] == ["ill", "well"]
    assert facts["file_bytes"] == model.stat().st_size
    assert facts["epochs"] == len(facts["history"])
    assert len(facts["strongest_features"]) == 2
    assert facts["strongest_features"][0]["feature"] == "gene0"
    first = facts["layers"][0]
    assert first["inputs"] == 12
    low, middle, high = first["input_degree"]
    assert low <= middle <= high
    assert first["density"] == first["connections"] / (12 * first["outputs"])
    assert first["requested_density"] == pytest.approx(first["density"], rel=0.05)


def test_inspect_numbers_features_that_have_no_names(ratoon, regressor):
    facts = json.loads(ratoon("inspect", regressor, "--json", "--top", "1").out)
    assert facts["strongest_features"][0]["feature"] == 0
    assert facts["classes"] == []


def test_inspect_refuses_other_files(ratoon, tmp_path):
    assert ratoon("inspect", tmp_path / "absent").code == 1
    (tmp_path / "text").write_text("no model")
    told = ratoon("inspect", tmp_path / "text")
    assert (told.code, "Traceback" in told.err) == (1, False)


# ------------------------------------------------------------------------------------------ plan


def test_the_million_neuron_network_is_planned_without_being_built(ratoon):
    arguments = ["plan", "54675", "--samples", "1397", "--outputs", "18", "--epsilon", "10"]
    told = ratoon(*arguments, "--hidden", "500000,500000", "--batch-size", "5", "--json")
    plan = json.loads(told.out)
    assert plan["widths"] == [54675, 500000, 500000, 18]
    # 5,546,750 + 10,000,000 + 5,000,180
    assert plan["n_connections"] == sum(plan["connections"]) == 20_546_930
    assert plan["peak_bytes"] < 1.2e9
    assert plan["seconds_per_epoch"] > 0


def test_a_plan_reads_well(ratoon):
    told = ratoon("plan", "1000", "--hidden", "300", "--density", "0.1", "--threads", "1")
    assert "1,000 -> 300 -> 2" in told.out
    assert "peak" in told.out
    assert "1 thread" in told.out


@pytest.mark.parametrize(
    "wrong", [["--hidden", "x"], ["--preset", "x"], ["--epsilon", "-1"], ["--density", "2"]]
)
def test_a_plan_that_cannot_be_is_refused(ratoon, wrong):
    told = ratoon("plan", "100", *wrong)
    assert (told.code, "Traceback" in told.err) == (1, False)


# ----------------------------------------------------------------------------------------- bench


def test_bench_measures_what_it_is_asked_to(ratoon):
    told = ratoon("bench", "--models", "b", "--steps", "1", "--repeats", "1", "--json")
    figures = json.loads(told.out)
    assert set(figures) == {"isa", "threads", "load", "models"}
    [b] = figures["models"]
    assert (b["model"], b["connections"], b["batch"]) == ("b", 410_400, 5)
    assert min(b["step_ms"], b["rewire_ms"], b["ns_per_connection"]) > 0


def test_bench_prints_a_table_that_fits(ratoon):
    told = ratoon("bench", "--models", "d", "--steps", "1", "--repeats", "1")
    assert "GLI-85" in told.out
    assert "462,830" in told.out
    assert max(len(line) for line in told.out.splitlines()) <= 80


def test_bench_knows_its_models(ratoon):
    told = ratoon("bench", "--models", "b,z")
    assert (told.code, "z is none of a, b, c, d, f" in told.err) == (1, True)


# ------------------------------------------------------------------------------------------ data


def test_data_is_made_and_looked_at(ratoon, tmp_path):
    path = tmp_path / "made.npz"
    make = ["data", "make", path, "--features", "50", "--informative", "5", "--samples", "40"]
    told = ratoon(*make, "--shares", "0.75,0.25")
    assert told.code == 0
    assert "40 samples x 50 genes, 2 classes" in told.err
    with np.load(path) as arrays:
        assert arrays["X"].shape == (40, 50)
        assert np.bincount(arrays["y"]).tolist() == [30, 10]
        assert arrays["informative"].size == 5
    facts = json.loads(ratoon("data", "show", path, "--json").out)
    assert facts["n_samples"] == 40
    assert "samples     40" in ratoon("data", "show", path).out


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_data_is_made_as_the_kind_of_file_that_was_named(ratoon, tmp_path, kind):
    path = tmp_path / f"made.{kind}"
    assert ratoon("data", "make", path, "--features", "20", "--informative", "5").code == 0
    with path.open(encoding="utf-8") as file:
        assert file.readline().count("\t" if kind == "tsv" else ",") == 21
    facts = json.loads(ratoon("data", "show", path, "--json").out)
    assert (facts["n_samples"], facts["n_features"]) == (85, 20)
    informative = (tmp_path / "made.informative.txt").read_text(encoding="utf-8").split()
    assert len(set(informative)) == 5
    told = ratoon("data", "make", tmp_path / "made.xls", "--features", "20", "--informative", "5")
    assert (told.code, "write to .npz, .csv or .tsv" in told.err) == (1, True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--shares", "a,b"], "--shares must be positive numbers"),
        (["--shares", "0.5,nan"], "--shares must be positive numbers"),
        (["--shares", "0.2,0.3,0.5"], "3 numbers for 2 classes"),
        (["--informative", "100"], "informative"),
    ],
)
def test_data_that_cannot_be_made_is_refused(ratoon, tmp_path, wrong, message):
    told = ratoon("data", "make", tmp_path / "x.npz", "--features", "20", *wrong)
    assert told.code == 1
    assert message in told.err
    assert not (tmp_path / "x.npz").exists()


def test_public_sets_are_listed(ratoon):
    listed = json.loads(ratoon("data", "list", "--json").out)
    assert "GLI-85" in {entry["name"] for entry in listed}
    assert "GLI-85" in ratoon("data", "list").out
    one = ratoon("data", "list", "gli-85").out
    for word in ("https://", "licence", "Freije", "SHA-256", "GLI_85.mat"):
        assert word in one
    assert json.loads(ratoon("data", "list", "GLI-85", "--json").out)["shape"] == [85, 22283, 2]
    assert "did you mean 'GLI-85'" in ratoon("data", "list", "GLI-86").err


def test_fetching_says_where_the_file_is(ratoon, monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "fetch", lambda name: tmp_path / f"{name}.mat")
    assert f"GLI-85 is in {tmp_path}" in ratoon("data", "fetch", "GLI-85").err


def test_an_unknown_set_is_answered_with_the_known_ones(ratoon):
    told = ratoon("data", "fetch", "GLI-86")
    assert told.code == 1
    assert "GLI-85" in told.err


def test_a_file_that_is_not_there_cannot_be_shown(ratoon):
    told = ratoon("data", "show", "absent.csv")
    assert (told.code, "absent.csv" in told.err) == (1, True)


# ---------------------------------------------------------------------------------------- output


def test_numbers_of_numpy_are_numbers_in_json(capsys):
    print_json({"a": np.float32(0.5), "b": np.int64(3), "c": np.arange(2)})
    assert json.loads(capsys.readouterr().out) == {"a": 0.5, "b": 3, "c": [0, 1]}


def test_square_brackets_survive_in_tables(capsys):
    print_table("x [bold]", ["[name]"], [["[red]gene"]])
    shown = capsys.readouterr().out
    assert "x [bold]" in shown
    assert "[name]" in shown
    assert "[red]gene" in shown
