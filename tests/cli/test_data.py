"""`ratoon data`: files are made, fetched, listed and examined."""

import json

import numpy as np
import pytest

from ratoon import datasets


def test_data_is_generated_and_shown(ratoon, tmp_path):
    path = tmp_path / "made.npz"
    make = ["data", "make", path, "--features", "50", "--informative", "5", "--samples", "40"]
    outcome = ratoon(*make, "--shares", "0.75,0.25")
    assert outcome.code == 0
    assert "40 samples x 50 genes, 2 classes" in outcome.err
    with np.load(path) as arrays:
        assert arrays["X"].shape == (40, 50)
        assert np.bincount(arrays["y"]).tolist() == [30, 10]
        assert arrays["informative"].size == 5
    facts = json.loads(ratoon("data", "show", path, "--json").out)
    assert facts["n_samples"] == 40
    assert "samples     40" in ratoon("data", "show", path).out


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_the_extension_sets_the_kind_of_generated_file(ratoon, tmp_path, kind):
    path = tmp_path / f"made.{kind}"
    assert ratoon("data", "make", path, "--features", "20", "--informative", "5").code == 0
    with path.open(encoding="utf-8") as file:
        assert file.readline().count("\t" if kind == "tsv" else ",") == 21
    facts = json.loads(ratoon("data", "show", path, "--json").out)
    assert (facts["n_samples"], facts["n_features"]) == (85, 20)
    informative = (tmp_path / "made.informative.txt").read_text(encoding="utf-8").split()
    assert len(set(informative)) == 5
    outcome = ratoon(
        "data", "make", tmp_path / "made.xls", "--features", "20", "--informative", "5"
    )
    assert (outcome.code, "write to .npz, .csv or .tsv" in outcome.err) == (1, True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--shares", "a,b"], "--shares must be positive numbers"),
        (["--shares", "0.5,nan"], "--shares must be positive numbers"),
        (["--shares", "0.2,0.3,0.5"], "one number for each of the 2 classes; got 3"),
        (["--informative", "100"], "informative"),
    ],
)
def test_impossible_sizes_of_data_are_refused(ratoon, tmp_path, wrong, message):
    outcome = ratoon("data", "make", tmp_path / "x.npz", "--features", "20", *wrong)
    assert outcome.code == 1
    assert message in outcome.err
    assert not (tmp_path / "x.npz").exists()


def test_public_sets_are_listed(ratoon):
    listed = json.loads(ratoon("data", "list", "--json").out)
    assert "GLI-85" in {entry["name"] for entry in listed}
    assert "GLI-85" in ratoon("data", "list").out
    one = ratoon("data", "list", "gli-85").out
    for word in ("https://", "licence", "Freije", "SHA-256", "GLI_85.mat"):
        assert word in one
    assert json.loads(ratoon("data", "list", "GLI-85", "--json").out)["shape"] == [85, 22283, 2]
    assert "Did you mean 'GLI-85'" in ratoon("data", "list", "GLI-86").err


def test_fetching_prints_the_path_of_the_file(ratoon, monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "fetch", lambda name, **_: tmp_path / f"{name}.mat")
    assert f"GLI-85 is in {tmp_path}" in ratoon("data", "fetch", "GLI-85").err


def test_an_error_for_an_unknown_set_lists_the_known_ones(ratoon):
    outcome = ratoon("data", "fetch", "GLI-86")
    assert outcome.code == 1
    assert "GLI-85" in outcome.err


def test_a_missing_file_cannot_be_shown(ratoon):
    outcome = ratoon("data", "show", "absent.csv")
    assert (outcome.code, "absent.csv" in outcome.err) == (1, True)
