"""Tables of few columns are parsed by pyarrow in blocks: nothing may depend on that."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.datasets import files, read
from ratoon.datasets.formats import delimited
from ratoon.datasets.tables.arrow import ArrowRows
from ratoon.errors import FormatError

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
BLOCK = 512


def table(n_rows=200, line_end="\n", delimiter=","):
    rng = np.random.default_rng(0)
    rows = [["sample", "a", "kind", "b", "outcome"]]
    for k in range(n_rows):
        first = rng.choice([f"{rng.normal():.4f}", repr(float(rng.normal())), "NA", "", "-3e2"])
        kind = rng.choice(["x", " y ", "NA", "", "été"])
        rows.append([f"S{k}", str(first), str(kind), str(k), "ill" if k % 3 else "well"])
    return line_end.join(delimiter.join(row) for row in rows) + line_end


def changed_at(line, new):
    lines = table().split("\n")
    return "\n".join([*lines[:line], new, *lines[line:]])


@pytest.fixture
def counted(monkeypatch):
    """Return the number of blocks that pyarrow has parsed, in blocks of a few lines."""
    monkeypatch.setattr(files, "_CHUNK", BLOCK)
    monkeypatch.setattr(files, "_HEAD", BLOCK)
    parsed = []
    call = ArrowRows.__call__

    def count(self, block):
        found = call(self, block)
        parsed.append(found is not None)
        return found

    monkeypatch.setattr(ArrowRows, "__call__", count)
    return parsed


def both(path, monkeypatch, **options):
    """Read with blocks and line by line: data or errors."""
    found = []
    for most in (delimited.MOST_COLUMNS, 0):
        monkeypatch.setattr(delimited, "MOST_COLUMNS", most)
        try:
            found.append(read(path, missing="zero", ignore="kind", **options))
        except FormatError as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize(
    "text",
    [
        table(),
        table(line_end="\r\n"),
        table(delimiter="\t"),
        table().rstrip("\n"),
        changed_at(100, "# a comment"),
        changed_at(100, ""),
        changed_at(100, "   "),
        changed_at(100, 'S,"1.5",x,7,"ill"'),
        changed_at(100, "S, 1.5,x,7 ,ill"),
        changed_at(100, "S,1e30,x,+7,ill"),
        changed_at(100, "S,.5,x,5.,ill"),
    ],
)
def test_blocks_and_lines_give_the_same_data(write, monkeypatch, counted, text):
    quick, slow = both(write("table.csv", text), monkeypatch, label="outcome")
    assert sum(counted) >= 3, "some blocks are parsed by pyarrow"
    assert_array_equal(quick.X.view(np.uint32), slow.X.view(np.uint32))
    assert_array_equal(quick.y, slow.y)
    assert quick.sample_names == slow.sample_names
    assert quick.notes == slow.notes


@pytest.mark.parametrize(
    "line", ["S,1,x,7", "S,1,x,7,ill,8", "S,text,x,7,ill", "S,1,x,1_000,ill", "S,é,x,ö,ill"]
)
def test_errors_name_the_line_in_both_ways(write, monkeypatch, counted, line):
    quick, slow = both(write("table.csv", changed_at(150, line)), monkeypatch, label="outcome")
    assert any(counted)
    assert not all(counted), "the block with the error is read line by line"
    assert isinstance(quick, str) or line == "S,é,x,ö,ill"
    assert str(quick) == str(slow)
    assert "line 151" in str(quick) or line == "S,é,x,ö,ill"


def test_latin_1_text_in_a_later_block_is_read(write, monkeypatch, counted):
    text = changed_at(150, "Sé,1,x,7,ill").replace("été", "z").encode("latin-1")
    quick, slow = both(write("table.csv", text), monkeypatch, label="outcome")
    assert "Sé" in quick.sample_names
    assert quick.sample_names == slow.sample_names
    assert any(counted)


def test_wide_tables_are_read_cell_by_cell(write, counted):
    row = ",".join(["1.5"] * (delimited.MOST_COLUMNS + 1))
    assert read(write("wide.csv", "\n".join([row] * 20))).X.shape == (20, 101)
    assert not counted
