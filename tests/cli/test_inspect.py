"""`ratoon inspect`: what it prints, as text and as JSON."""

import json

import pytest


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
