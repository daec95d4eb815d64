"""`ratoon export` and `ratoon slim`."""

import json

import pytest

import ratoon as package
from tests.processes import LOOKS_FOR_RACES


@pytest.mark.skipif(LOOKS_FOR_RACES, reason="finds a race of onnx's own")
@pytest.mark.parametrize("options", [(), ("--weights", "int8")])
def test_export_writes_an_onnx_file(ratoon, model, tmp_path, options):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    outcome = ratoon("export", model, "-o", tmp_path / "m.onnx", *options)
    assert outcome.code == 0, outcome.err
    assert "kB" in outcome.err
    onnx.checker.check_model(str(tmp_path / "m.onnx"))
    assert ratoon("export", model, "-o", tmp_path / "m.onnx", "-q").err == ""


def test_export_refuses_other_weights_in_the_words_of_the_shell(ratoon, model, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    outcome = ratoon("export", model, "-o", tmp_path / "m.onnx", "--weights", "int4")
    assert outcome.code == 1
    assert "--weights must be bfloat16 or int8" in outcome.err


def test_slim_shows_score_and_size_of_every_copy(ratoon, model, table):
    rows = json.loads(ratoon("slim", model, table, "--label", "outcome", "--json").out)
    assert [row["prune"] for row in rows] == [0.0, 0.25, 0.5, 0.75]
    assert rows[0]["agreement"] == 1.0
    sizes = [row["file_bytes"] for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    assert "removed" in ratoon("slim", model, table, "--label", "outcome").out


def test_slim_writes_the_first_copy(ratoon, model, table, tmp_path):
    options = ("--label", "outcome", "--prune", "0.5", "--weights", "bfloat16")
    outcome = ratoon("slim", model, table, *options, "-o", tmp_path / "small.ratoon")
    assert outcome.code == 0, outcome.err
    small, whole = package.load(tmp_path / "small.ratoon"), package.load(model)
    assert small.network_.weight_type == "bfloat16"
    assert small.network_.n_connections <= 0.5 * whole.network_.n_connections + 5


@pytest.mark.parametrize("prune", ["1", "-0.1", "half", ""])
def test_slim_refuses_other_fractions(ratoon, model, table, prune):
    outcome = ratoon("slim", model, table, f"--prune={prune}")
    assert outcome.code == 1
    assert "--prune must be fractions" in outcome.err
