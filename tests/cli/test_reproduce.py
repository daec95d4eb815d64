"""`ratoon reproduce` writes tables and pictures."""

import json

import pytest

from ratoon.cli import main


def test_tables_and_pictures_are_written(tmp_path):
    arguments = ["reproduce", "confusion", "--sets", "GLI-85", "--quick", "--scale", "0.005"]
    assert main([*arguments, "-o", str(tmp_path), "-q"]) == 0
    assert "GLI-85" in (tmp_path / "confusion.md").read_text(encoding="utf-8")
    assert (tmp_path / "confusion-GLI-85.png").stat().st_size > 0


def test_json_holds_the_table(capsys):
    assert main(["reproduce", "connections", "--sets", "CLL-SUB-111", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0][1] == "409,033"


def test_a_file_needs_the_name_of_its_set(capsys):
    assert main(["reproduce", "accuracy", "--data", "x.mat"]) == 1
    assert "NAME=FILE" in capsys.readouterr().err


@pytest.mark.slow
def test_every_table_has_a_picture(tmp_path):
    arguments = ["reproduce", "all", "--sets", "GLI-85", "--quick", "--scale", "0.002", "-q"]
    assert main([*arguments, "--epochs", "1", "-o", str(tmp_path)]) == 0
    tables = {path.stem for path in tmp_path.glob("*.md")}
    assert len(tables) == 10
    pictures = [path.name for path in tmp_path.glob("*.png")]
    for table in tables:
        assert any(name.startswith(table) for name in pictures), table


def test_the_same_command_continues_where_it_was_stopped(tmp_path, capsys):
    arguments = ["reproduce", "curves", "--sets", "GLI-85", "--epochs", "2", "--scale", "0.002"]
    assert main([*arguments, "--trials", "1", "-o", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main([*arguments, "--trials", "2", "-o", str(tmp_path)]) == 0
    assert capsys.readouterr().err.count("from the store") == 2


def test_a_picture_names_generated_data():
    from ratoon.cli.reproduce import _data_of
    from ratoon.paper.reproduction import Reproduction

    found = Reproduction("Accuracy", [], kinds={"GLI-85": "generated stand-in", "SMK": "SMK"})
    assert _data_of(found, "GLI-85") == "GLI-85: generated stand-in"
    assert _data_of(found, "SMK") == "SMK"
    assert _data_of(found, "seconds") == "seconds, generated stand-in"
    assert _data_of(Reproduction("Connections", []), "") == ""
