import pytest

from ratoon.datasets import read
from ratoon.errors import FormatError, InvalidInputError

TABLE = "id,g1,g2\nA,1,2\nB,3,4\n"


@pytest.mark.parametrize(
    ("sheet", "arguments", "message"),
    [
        ("id,group\nA,x\nA,y\n", {}, "sample 'A' occurs in rows"),
        ("id,group\nA,x,1\n", {}, "line 2: 3 cells, but the heading has 2"),
        ("id\nA\n", {}, "a sample sheet needs a heading"),
        ("id,group\n", {}, "a sample sheet needs a heading"),
        ("id,group,age\nA,x,1\nB,y,2\n", {}, "several columns; pass label= with one of 'group'"),
        ("id,group\nA,x\nB,y\n", {"label": "stage"}, "no column 'stage'"),
        ("id,group\nP,x\nQ,y\n", {}, "the data have 'A', 'B', the sheet has 'P', 'Q'"),
    ],
)
def test_a_bad_sheet_is_refused_with_the_reason(write, sheet, arguments, message):
    with pytest.raises((FormatError, InvalidInputError), match=message):
        read(write("t.csv", TABLE), sample_sheet=write("sheet.csv", sheet), **arguments)


def test_samples_without_names_cannot_be_matched(write):
    with pytest.raises(InvalidInputError, match="Pass index="):
        read(write("t.csv", "1,2\n3,4\n"), sample_sheet=write("sheet.csv", "id,g\nA,x\nB,y\n"))


def test_cells_of_a_sheet_may_be_quoted_and_of_any_delimiter(write):
    sheet = write("sheet.tsv", 'id\tgroup\tnote\n"B"\tcase\t"a, b"\nA\tcontrol\t\n')
    data = read(write("t.csv", TABLE), sample_sheet=sheet, label="group")
    assert data.labels.tolist() == ["control", "case"]
    assert "labels from column 'group' of sheet.tsv" in data.notes
