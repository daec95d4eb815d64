"""`ratoon explain` and `ratoon enrich`, and gene sets in the report."""

import csv
import json

import pandas as pd
import pytest

from ratoon import load
from tests.cli.conftest import write_table


@pytest.fixture
def new(tmp_path):
    return write_table(tmp_path / "new.csv", seed=5, n=6, outcome=False)


@pytest.fixture
def sets(tmp_path):
    path = tmp_path / "sets.gmt"
    lines = ["first\tx\tGENE0\tgene1\tgene2", "second\tx\tgene3\tgene4\tgene5\tnobody"]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_sample_is_explained_by_name(ratoon, model, new):
    outcome = ratoon("explain", model, new, "--sample", "S2", "--top", "2")
    assert outcome.code == 0
    assert "S2: margin of" in outcome.out
    assert "gene0" in outcome.out, "the feature that decides"
    assert "(all other features)" in outcome.out
    assert "S3" not in outcome.out


def test_the_parts_of_a_sample_sum_up_to_its_output(ratoon, model, new):
    [found] = json.loads(ratoon("explain", model, new, "-s", "S2", "--top", "12", "--json").out)
    total = found["base"] + sum(row["contribution"] for row in found["features"])
    assert total == pytest.approx(found["output"], abs=1e-3)
    row = {part["feature"]: [part["value"]] for part in found["features"]}
    columns = [f"gene{k}" for k in range(12)]
    decision = load(model).decision_function(pd.DataFrame(row)[columns])
    assert abs(found["output"]) == pytest.approx(abs(decision[0]), rel=1e-3)


def test_the_first_samples_are_shown_and_all_go_to_a_file(ratoon, model, new, tmp_path):
    outcome = ratoon("explain", model, new)
    assert "3 of 6 samples are shown" in outcome.err
    path, picture = tmp_path / "why.csv", tmp_path / "why.png"
    assert ratoon("explain", model, new, "-o", path, "--picture", picture, "--top", "2").code == 0
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert {row["sample"] for row in rows} == {f"S{i}" for i in range(6)}
    assert picture.stat().st_size > 0


def test_a_class_can_be_named(ratoon, model, new):
    outcome = ratoon("explain", model, new, "-s", "1", "--target", "ill", "--json")
    assert json.loads(outcome.out)[0]["explained"] == "ill"
    refused = ratoon("explain", model, new, "--target", "dead")
    assert (refused.code, "must be one of ['ill', 'well']" in refused.err) == (1, True)


def test_an_unknown_sample_is_refused_with_examples(ratoon, model, new):
    outcome = ratoon("explain", model, new, "--sample", "S99")
    assert outcome.code == 1
    assert "no sample 'S99'" in outcome.err
    assert "such as S0, S1, S2" in outcome.err


def test_a_regressor_is_explained(ratoon, regressor, folder):
    outcome = ratoon("explain", regressor, folder / "numbers.npz")
    assert outcome.code == 0
    assert "predicted" in outcome.out


def test_gene_sets_are_tested_against_the_ranking(ratoon, model, sets, tmp_path):
    table = tmp_path / "sets.csv"
    outcome = ratoon("enrich", model, sets, "--least", "2", "--top", "3", "-o", table)
    assert outcome.code == 0
    assert "first" in outcome.out
    assert "1 members are not features" in outcome.err
    found = json.loads(ratoon("enrich", model, sets, "--least", "2", "--json").out)
    first = found["sets"][0]
    assert first["set"] == "first"
    assert "gene0" in first["leading"]
    assert found["ranking"].endswith("training rows")
    with table.open(encoding="utf-8") as file:
        assert [row["set"] for row in csv.DictReader(file)] == ["first", "second"]


def test_a_background_and_an_id_map_are_honoured(ratoon, model, sets, tmp_path):
    names = tmp_path / "background.txt"
    names.write_text("\n".join(f"gene{i}" for i in range(6)))
    arguments = ["enrich", model, sets, "--least", "2", "--json"]
    found = json.loads(ratoon(*arguments, "--background", names).out)
    assert found["background"] == 6
    ids = tmp_path / "ids.csv"
    ids.write_text("gene11,nobody\n")
    found = json.loads(ratoon(*arguments, "--id-map", ids).out)
    assert {row["set"]: row["size"] for row in found["sets"]} == {"first": 3, "second": 4}
    names.write_text("nothing\n")
    assert "none of its names is a feature" in ratoon(*arguments, "--background", names).err


def test_the_report_has_gene_sets_and_contributions(ratoon, model, sets, table, tmp_path):
    page = tmp_path / "page.html"
    with sets.open("a") as file:
        file.write("wide\tx\t" + "\t".join(f"gene{i}" for i in range(6)) + "\n")
    how = ["--label", "outcome", "--gene-sets", sets, "-o", page]
    assert ratoon("report", model, table, *how).code == 0
    text = page.read_text(encoding="utf-8")
    assert "Gene sets" in text
    assert "leading features" in text
    assert "Why these predictions" in text
    assert "surest ill" in text
    assert "on 200 training rows" in text


@pytest.mark.parametrize("sample", ["9" * 5_000, "\u00b2", "0", "-1"])
def test_a_sample_that_is_not_there_is_refused_with_what_there_is(ratoon, model, new, sample):
    outcome = ratoon("explain", model, new, "--sample", sample)
    assert outcome.code == 1
    assert "or a number from 1 to 6" in outcome.err
