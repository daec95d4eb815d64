import datetime
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.datasets import Limits, read
from ratoon.errors import FormatError, InvalidInputError

pytest.importorskip("python_calamine", reason="python-calamine is behind the excel extra")
openpyxl = pytest.importorskip("openpyxl", reason="openpyxl writes the workbooks of these tests")


@pytest.fixture
def save(tmp_path):
    """Write a workbook; keyword arguments are sheets of rows."""

    def save(name="a.xlsx", **sheets):
        book = openpyxl.Workbook()
        book.remove(book.active)
        for title, rows in sheets.items():
            sheet = book.create_sheet(title)
            for row in rows:
                sheet.append(row)
        book.save(tmp_path / name)
        return tmp_path / name

    return save


TABLE = [
    ["sample", "TP53", "BRCA1", "class"],
    ["A", 1.5, 2, "ill"],
    ["B", None, 3, "well"],
    ["C", 0.1, 1e-7, "well, mostly"],
]


def test_a_sheet_is_read_as_a_table(save):
    data = read(save(one=TABLE), missing="keep", dtype="float64")
    assert_array_equal(data.X, [[1.5, 2], [np.nan, 3], [0.1, 1e-7]])
    assert data.feature_names == ("TP53", "BRCA1")
    assert data.sample_names == ("A", "B", "C")
    assert data.labels.tolist() == ["ill", "well", "well, mostly"]


def test_genes_may_be_in_rows(save):
    rows = [["gene", "S1", "S2"], ["TP53", 1, 2], ["BRCA1", 3, 4]]
    data = read(save(one=rows))
    assert_array_equal(data.X, [[1, 3], [2, 4]])
    assert data.feature_names == ("TP53", "BRCA1")


def test_the_sheet_is_chosen_by_name_and_others_are_noted(save):
    path = save(notes=[["a", "b"], [1, 2]], expression=TABLE)
    assert read(path).feature_names == ("a", "b")
    assert any("sheet 'notes' was read" in note for note in read(path).notes)
    assert read(path, matrix="expression", missing="zero").X.shape == (3, 2)
    with pytest.raises(InvalidInputError, match=r"no sheet 'x'.*'notes', 'expression'"):
        read(path, matrix="x")


def test_dates_are_text_and_can_be_ignored(save):
    day = datetime.date(2020, 1, 2)
    path = save(one=[["sample", "a", "day"], ["A", 1, day], ["B", 2, day]])
    assert read(path, ignore="day", label=None).feature_names == ("a",)


def test_a_damaged_or_empty_workbook_is_refused(save, tmp_path, write):
    path = save(one=TABLE)
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        sheet = archive.getinfo("xl/worksheets/sheet1.xml")
    for place in range(sheet.header_offset + 40, sheet.header_offset + 140):
        content[place] ^= 0xFF
    with pytest.raises(FormatError, match=r"bad\.xlsx"):
        read(write("bad.xlsx", bytes(content)))
    with pytest.raises(FormatError, match="no rows"):
        read(save("empty.xlsx", one=[]))
    with pytest.raises(FormatError, match=r"not a \.xlsx file"):
        read(write("text.xlsx", "this is not a workbook\n"))


def test_a_workbook_that_unpacks_to_too_much_is_refused(save):
    with pytest.raises(FormatError, match="expanded_bytes"):
        read(save(one=TABLE), limits=Limits(expanded_bytes=1000))
