"""The package itself: what its stub promises is what it has."""

import ast
from pathlib import Path

import ratoon


def test_the_stub_names_every_public_name():
    stub = ast.parse(Path(ratoon.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imported = {
        alias.asname
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    [listed] = [ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign)]
    assert listed == ratoon.__all__
    assert imported | {"__version__"} == set(ratoon.__all__)
