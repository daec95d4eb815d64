"""Deeply nested text: refused before it is parsed, whatever the recursion limit is."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratoon.nesting import check_json_depth, parse_json, parse_toml
from tests.processes import run_python

DEEP = 500_000

values = st.recursive(
    st.none() | st.integers() | st.text(alphabet="[]{}\"\\\\ab#'\n"),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='[{"\\\\'), inner),
    max_leaves=20,
)


def depth_of(value):
    if not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth_of, inner), default=0)


@given(values)
def test_the_depth_of_text_is_that_of_its_value(value):
    text, depth = json.dumps(value), depth_of(value)
    assert parse_json(text, max_depth=depth) == value
    if depth:
        with pytest.raises(ValueError, match="nested more than"):
            check_json_depth(text, depth - 1)


@pytest.mark.parametrize(
    "text",
    [
        "[" * DEEP,
        '{"a":' * DEEP,
        "[" * DEEP + "]" * DEEP,
        "]" * DEEP + "[" * DEEP,
        "[]" * DEEP + "[" * 17,
        '"' + '\\"' * DEEP + '"' + "[" * 17,
    ],
)
def test_nested_json_is_refused(text):
    with pytest.raises(ValueError, match="nested more than 16 deep"):
        parse_json(text)


def test_an_endless_string_is_read_once():
    with pytest.raises(json.JSONDecodeError):
        parse_json('["' + '\\"[' * DEEP)


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * DEEP,
        "a = " + "{b = " * DEEP,
        'a = "]"\nb = ' + "[" * 17 + "]" * 17,
        "a = '''\n'\n'''\nb = " + "[" * 17 + "]" * 17,
    ],
)
def test_nested_toml_is_refused(text):
    with pytest.raises(ValueError, match="nested more than 16 deep"):
        parse_toml(text)


BRACKETS = "[" * 40


@pytest.mark.parametrize(
    "text",
    [
        f'a = "{BRACKETS}"',
        f"a = '{BRACKETS}'",
        f'a = """\n"{BRACKETS}\n"" """',
        f"a = '''\n'{BRACKETS}\n'''",
        f'a = 1 # " {BRACKETS}\nb = [[2]]',
        f'a = "\\\\" # {BRACKETS}',
        "[[a.b]]\nc = [[1], {d = [2]}]\n" * 40,
    ],
)
def test_brackets_in_strings_and_comments_of_toml_do_not_count(text):
    assert parse_toml(text) == tomllib.loads(text)


def test_a_model_file_of_brackets_is_refused_at_any_recursion_limit(tmp_path):
    header = b'{"__metadata__":' + b"[" * DEEP + b"]" * DEEP + b"}"
    header += b" " * (-len(header) % 8)
    path = tmp_path / "model.ratoon"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    code = """
import sys
from ratoon import load
from ratoon.errors import FormatError
from ratoon.inference import Predictor
sys.setrecursionlimit(10**9)
for read in (load, Predictor.load):
    try:
        read(sys.argv[1])
    except FormatError as error:
        print("nested more than" in str(error))
"""
    done = run_python(code, path)
    assert done.stdout == "True\nTrue\n", done.stderr


def test_records_of_brackets_are_refused(tmp_path):
    from ratoon.datasets.public import fetch
    from ratoon.errors import FormatError
    from ratoon.paper.trial import _read

    path = tmp_path / fetch._CHECKSUMS
    path.write_text("[" * DEEP)
    with pytest.raises(FormatError, match="not valid JSON"):
        fetch._records(tmp_path)
    assert _read(path, {}) is None
