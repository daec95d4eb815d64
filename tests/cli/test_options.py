"""`--read` and configuration files; errors about Python arguments name options instead."""

import json
import os
import re

import pytest

from ratoon.cli.options import KEYS, in_shell_words, reading_options
from ratoon.errors import InvalidParameterError
from tests.cli.conftest import write_table


@pytest.fixture
def sheet(tmp_path):
    write_table(tmp_path / "genes.csv", n=20, outcome=False)
    lines = ["name,age,state", *(f"S{k},{30 + k},{'ill' if k % 2 else 'well'}" for k in range(20))]
    (tmp_path / "sheet.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_labels_come_from_a_sample_sheet(ratoon, sheet):
    how = ["--read", f"sample_sheet={sheet / 'sheet.csv'}", "--label", "state"]
    facts = json.loads(ratoon("data", "show", sheet / "genes.csv", *how, "--json").out)
    assert facts["n_samples"] == 20
    network = ["--hidden", "5", "--epsilon", "2", "--epochs", "1"]
    outcome = ratoon("train", sheet / "genes.csv", *how, *network)
    assert outcome.code == 0
    assert "labels from column 'state' of sheet.csv" in outcome.err


def test_a_configuration_can_have_several_options_of_read(ratoon, sheet):
    write_table(sheet / "genes.csv", n=20, outcome=False, columns=["gene0", "gene1", "junk"])
    config = sheet / "run.toml"
    config.write_text(
        f'[train]\nlabel = "state"\nread = ["sample_sheet={sheet / "sheet.csv"}", "ignore=junk"]\n'
    )
    network = ["--hidden", "5", "--epsilon", "2", "--epochs", "1"]
    outcome = ratoon("train", sheet / "genes.csv", "--config", config, *network, "--json")
    assert json.loads(outcome.out)["layers"][0]["inputs"] == 2


def test_an_error_of_the_reader_names_the_option_to_use(ratoon, tmp_path):
    twice = tmp_path / "twice.csv"
    twice.write_text("id,a,class\nA,1,x\nA,2,y\nB,3,x\nC,4,y\n")
    outcome = ratoon("train", twice, "--label", "class")
    assert outcome.code == 1
    assert "or pass --read duplicates=keep if" in outcome.err
    network = ["--hidden", "5", "--epsilon", "2", "--epochs", "1"]
    outcome = ratoon("train", twice, "--label", "class", "--read", "duplicates=keep", *network)
    assert outcome.code == 0


@pytest.mark.parametrize("wrong", ["duplicates", "hue=red", "=x", "label=y"])
def test_unknown_keys_are_refused_with_the_known_ones(wrong):
    with pytest.raises(InvalidParameterError, match="Keys: sample_sheet"):
        reading_options([wrong])


def test_every_key_is_an_argument_of_read():
    import inspect

    from ratoon.datasets import read

    assert set(KEYS) <= set(inspect.signature(read).parameters)


def test_a_limit_that_an_error_names_can_be_raised(ratoon, sheet):
    genes = sheet / "genes.csv"
    outcome = ratoon("data", "show", genes, "--read", "limits.rows=10")
    assert outcome.code == 1
    [way_out] = re.findall(r"--read (limits\.rows=\d+)", outcome.err)
    assert ratoon("data", "show", genes, "--read", way_out).code == 0
    assert (
        "the value must be a number" in ratoon("data", "show", genes, "--read", "limits.rows=x").err
    )
    assert "Limits: limits.file_bytes" in ratoon("data", "show", genes, "--read", "limits.x=3").err


def test_label_and_missing_are_named_as_options(ratoon, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("id,a,b,c\nA,1,x,u\nB,2,y,u\nC,3,x,v\n")
    outcome = ratoon("data", "show", table)
    assert "--label NAME; if it contains the sample names, pass --read index=NAME" in outcome.err
    table.write_text("id,a,class\nA,1,x\nB,,y\nC,3,x\n")
    assert "Pass --missing mean" in ratoon("train", table).err


@pytest.mark.parametrize(
    ("message", "reworded"),
    [
        ("Choose another label, or task='classification'.", "or --task classify."),
        ("missing='mean' does not work; pass sparse=False", "--read sparse=false"),
        ("SparseMLPRegressor: `n_jobs` must be positive", "--threads must be positive"),
        ("runs/label=3.csv: line 1", "runs/label=3.csv: line 1"),
        ("label=x.csv: line 1", "label=x.csv: line 1"),
        ("loss=0.5 and task='x'", "loss=0.5 and --task x"),
    ],
)
def test_python_arguments_become_options_and_file_names_stay(message, reworded):
    assert reworded in in_shell_words(message)


@pytest.mark.parametrize("path", ["/dev/full", "/dev/zero"])
def test_a_configuration_that_never_ends_is_refused(ratoon, table, path):
    if not os.path.exists(path):
        pytest.skip("the system has no such device")
    outcome = ratoon("train", table, "--config", path)
    assert outcome.code == 2
    assert "more than 1,048,576 bytes" in " ".join(outcome.err.replace("│", " ").split())
