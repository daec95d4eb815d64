"""`--read`: everything the reader can be told, from the command line and from a configuration."""

import json
import re

import pytest

from ratoon.cli.options import KEYS, reading_options
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
    told = ratoon("train", sheet / "genes.csv", *how, *network)
    assert told.code == 0
    assert "labels from column 'state' of sheet.csv" in told.err


def test_a_configuration_may_hold_several(ratoon, sheet):
    write_table(sheet / "genes.csv", n=20, outcome=False, columns=["gene0", "gene1", "junk"])
    config = sheet / "run.toml"
    config.write_text(
        f'[train]\nlabel = "state"\nread = ["sample_sheet={sheet / "sheet.csv"}", "ignore=junk"]\n'
    )
    network = ["--hidden", "5", "--epsilon", "2", "--epochs", "1"]
    told = ratoon("train", sheet / "genes.csv", "--config", config, *network, "--json")
    assert json.loads(told.out)["layers"][0]["inputs"] == 2


def test_an_error_says_how_the_command_line_spells_the_way_out(ratoon, tmp_path):
    twice = tmp_path / "twice.csv"
    twice.write_text("id,a,class\nA,1,x\nA,2,y\nB,3,x\nC,4,y\n")
    told = ratoon("train", twice, "--label", "class")
    assert told.code == 1
    assert "On the command line: --read duplicates=keep." in told.err
    network = ["--hidden", "5", "--epsilon", "2", "--epochs", "1"]
    told = ratoon("train", twice, "--label", "class", "--read", "duplicates=keep", *network)
    assert told.code == 0


@pytest.mark.parametrize("wrong", ["duplicates", "color=red", "=x", "label=y"])
def test_unknown_keys_are_refused_with_the_known_ones(wrong):
    with pytest.raises(InvalidParameterError, match="with a key of sample_sheet"):
        reading_options([wrong])


def test_every_key_is_an_argument_of_read():
    import inspect

    from ratoon.datasets import read

    assert set(KEYS) <= set(inspect.signature(read).parameters)


def test_a_limit_that_an_error_names_can_be_raised(ratoon, sheet):
    genes = sheet / "genes.csv"
    told = ratoon("data", "show", genes, "--read", "limits.rows=10")
    assert told.code == 1
    [way_out] = re.findall(r"On the command line: --read (\S+)\.\n", told.err)
    assert ratoon("data", "show", genes, "--read", way_out).code == 0
    assert "a number is expected" in ratoon("data", "show", genes, "--read", "limits.rows=x").err
    assert "limits. and one of" in ratoon("data", "show", genes, "--read", "limits.x=3").err


def test_options_of_their_own_are_named_too(ratoon, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("id,a,b,c\nA,1,x,u\nB,2,y,u\nC,3,x,v\n")
    told = ratoon("data", "show", table)
    assert "--label NAME, --read index=NAME, --read ignore=NAME." in told.err
    table.write_text("id,a,class\nA,1,x\nB,,y\nC,3,x\n")
    assert "On the command line: --missing mean." in ratoon("train", table).err
