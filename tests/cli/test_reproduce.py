"""`ratoon reproduce` writes tables and pictures."""

import json

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
