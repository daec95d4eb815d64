"""`ratoon inspect`: what it prints, as text and as JSON."""

import json


def test_inspect_shows_layers_history_and_features(ratoon, model):
    outcome = ratoon("inspect", model, "--top", "3")
    assert outcome.code == 0
    assert "SparseMLPClassifier" in outcome.err
    assert "layers" in outcome.out
    assert "trained for" in outcome.err
    assert "history" in outcome.out
    assert "strongest features" in outcome.out
    assert "gene0" in outcome.out, "the feature that decides"
    assert max(len(line) for line in outcome.out.splitlines()) <= 80


def test_inspect_prints_all_facts_as_json(ratoon, model):
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
    assert first["requested_density"] is None  # a committee chooses its connections itself


def test_inspect_numbers_features_that_have_no_names(ratoon, regressor):
    facts = json.loads(ratoon("inspect", regressor, "--json", "--top", "1").out)
    assert facts["strongest_features"][0]["feature"] == 0
    assert facts["classes"] == []


def test_inspect_refuses_other_files(ratoon, tmp_path):
    assert ratoon("inspect", tmp_path / "absent").code == 1
    (tmp_path / "text").write_text("no model")
    outcome = ratoon("inspect", tmp_path / "text")
    assert (outcome.code, "Traceback" in outcome.err) == (1, False)


def test_inspect_names_the_groups_that_are_neurons(ratoon, table, tmp_path):
    sets, path = tmp_path / "sets.gmt", tmp_path / "m.ratoon"
    sets.write_text("low\tx\tgene0\tgene1\nhigh\tx\tgene2\tgene3\tgene4\n")
    how = ["--label", "outcome", "--groups", sets, "--within", "-q", "-o", path]
    assert ratoon("train", table, *how).code == 0
    outcome = ratoon("inspect", path)
    assert "strongest groups" in outcome.out
    groups = json.loads(ratoon("inspect", path, "--json").out)["groups"]
    assert {group["group"] for group in groups} == {"low", "high"}


def test_inspect_prints_a_model_card(ratoon, model):
    outcome = ratoon("inspect", model, "--card")
    assert outcome.code == 0
    assert outcome.out.startswith("---\nlibrary_name: ratoon\n")
    assert "| classes | ill, well |" in outcome.out
    assert "gene0" in outcome.out
    refused = ratoon("inspect", model, "--card", "--json")
    assert refused.code == 1
    assert "--card and --json" in refused.err
