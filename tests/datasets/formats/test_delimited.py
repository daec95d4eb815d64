import csv
import gzip
import io
import time
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon.datasets import Limits, read
from ratoon.datasets.formats.delimited import Splitter
from ratoon.datasets.tables.sample_sheet import read_sample_sheet
from ratoon.errors import (
    FormatError,
    InvalidInputError,
    InvalidParameterError,
    RatoonError,
)

ROWS = "sample,TP53,BRCA1,class\nA,1.5,2,ill\nB,0.5,-3e2,well\nC,0,4,ill\n"
COLUMNS = "gene,A,B,C\nclass,ill,well,ill\nTP53,1.5,0.5,0\nBRCA1,2,-300,4\n"
X = [[1.5, 2], [0.5, -300], [0, 4]]


def check(data):
    assert_array_equal(data.X, np.array(X, dtype=np.float32))
    assert data.feature_names == ("TP53", "BRCA1")
    assert data.sample_names == ("A", "B", "C")
    assert data.class_names == ("ill", "well")
    assert_array_equal(data.y, [0, 1, 0])


@pytest.mark.parametrize("text", [ROWS, COLUMNS])
@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|", " "])
def test_both_orientations_and_every_delimiter_give_the_same_samples(write, text, delimiter):
    check(read(write("table.txt", text.replace(",", delimiter))))


def test_the_notes_give_the_orientation_and_the_reason(write):
    assert read(write("a.csv", ROWS)).notes[0] == (
        "samples are in rows: the row names are headed 'sample'"
    )
    assert read(write("b.csv", COLUMNS)).notes[0] == (
        "samples are in columns: the row names are headed 'gene'"
    )
    sideways = "sample,S1,S2,S3\na,1,2,3\nb,4,5,6\noutcome,ill,well,ill\n"
    data = read(write("c.csv", sideways))
    assert data.notes[0] == "samples are in columns: 'outcome' is a row"
    assert data.class_names == ("ill", "well")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: "# a comment\n\n" + text,
        lambda text: text.replace("TP53", '"TP53"').replace("\nC,", '\n"C",'),
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("1.5", '"1.5"'),
    ],
)
def test_line_ends_marks_comments_and_quotes_change_nothing(write, change):
    for text in (ROWS, COLUMNS):
        check(read(write("table.csv", change(text))))


def test_a_gzipped_table_is_read_like_the_uncompressed_one(write):
    check(read(write("table.csv.gz", gzip.compress(ROWS.encode()))))


def test_names_may_contain_the_delimiter_inside_quotes(write):
    data = read(write("t.csv", 'sample,"a,b",c\n"x,1",1,2\n"y,2",3,4\n'))
    assert data.feature_names == ("a,b", "c")
    assert data.sample_names == ("x,1", "y,2")


def test_a_heading_without_a_first_cell_is_read_as_r_writes_it(write):
    data = read(write("t.tsv", "g1\tg2\nA\t1\t2\nB\t3\t4\n"))
    assert data.feature_names == ("g1", "g2")
    assert data.sample_names == ("A", "B")


def test_a_table_without_names_accepts_a_column_number_as_label(write):
    data = read(write("t.csv", "1,2,0\n3,4,1\n5,6,1\n"), label=-1)
    assert_array_equal(data.X, [[1, 2], [3, 4], [5, 6]])
    assert data.feature_names is None
    assert data.sample_names is None
    assert data.class_names == ("0", "1")


def test_the_only_text_column_of_a_table_without_names_is_the_label(write):
    data = read(write("iris.csv", "5.1,3.5,setosa\n6.2,2.9,virginica\n5.0,3.4,setosa\n"))
    assert data.class_names == ("setosa", "virginica")
    assert data.X.shape == (3, 2)


def test_probe_names_in_rows_mean_samples_in_columns(write):
    rows = "".join(f"{200000 + i}_s_at,{i},{i + 1}\n" for i in range(5))
    data = read(write("t.csv", "x,first,second\n" + rows))
    assert data.X.shape == (2, 5)
    assert data.sample_names == ("first", "second")


def test_text_columns_about_genes_are_ignored_with_a_note(write):
    text = "Name\tDescription\tA\tB\ng1\tkinase\t1\t2\ng2\tsome gene\t3\t4\n"
    data = read(write("t.txt", text))
    assert_array_equal(data.X, [[1, 3], [2, 4]])
    assert "text columns about the features were ignored: 'Description'" in data.notes


def test_a_gct_file_is_a_table_with_two_more_lines(write):
    text = "#1.2\n2\t3\nName\tDescription\tA\tB\tC\ng1\tx\t1\t2\t3\ng2\ty\t4\t5\t6\n"
    data = read(write("t.gct", text))
    assert_array_equal(data.X, [[1, 4], [2, 5], [3, 6]])


def test_labels_come_from_a_sample_sheet_by_name_in_any_order(write):
    table = write("t.csv", "id,g1,g2\nA,1,2\nB,3,4\n")
    sheet = write("sheet.csv", "name,group,age\nB,case,40\nZ,case,50\nA,control,60\n")
    data = read(table, sample_sheet=sheet, label="group")
    assert data.labels.tolist() == ["control", "case"]
    across = write("across.csv", "id,B,A\ng1,3,1\ng2,4,2\n")
    data = read(across, sample_sheet=sheet, label="group")
    assert data.sample_names == ("B", "A")
    assert data.labels.tolist() == ["case", "control"]


def test_samples_without_a_label_are_an_error_or_dropped(write):
    table = write("t.csv", "id,g1\nA,1\nB,3\nC,5\n")
    sheet = write("sheet.csv", "name,group\nA,x\nB,y\n")
    with pytest.raises(InvalidInputError, match="1 of 3 samples have no label"):
        read(table, sample_sheet=sheet)
    assert read(table, sample_sheet=sheet, unlabelled="drop").sample_names == ("A", "B")


BAD = {
    "no column": (ROWS, {"label": "Class"}, "there is no column 'Class'.*\n.*Did you mean 'class'"),
    "another column": (ROWS, {"label": "clas"}, "Did you mean 'class'"),
    "no group": (ROWS, {"group": "clss"}, "there is no column 'clss'. Did you mean 'class'"),
    "near index": (
        ROWS,
        {"index": "samplx"},
        "no column 'samplx' for index.*Did you mean 'sample'",
    ),
    "cut off": (ROWS + "D,1", {}, "line 5: 2 cells, expected 4"),
    "one delimiter too many": ("id,a,b\nA,1,2\nB,1,2,3\n", {}, "line 3: 4 cells, expected 3"),
    "text among numbers": (
        "id,a,b\n" + "A,1,2\n" * 60 + "B,1,lots\n",
        {"duplicates": "keep"},
        "line 62, column 'b': 'lots' is not a number",
    ),
    "decimal comma": ("id;a;b\n" + "A;1.0;2\n" * 60 + "B;1,5;2\n", {}, "line 62.*\n.*decimal"),
    "two names alike": ("id,a\nA,1\nA,2\n", {}, "'A' occurs 2 times.*samples 1, 2"),
    "two text columns": (
        "id,s,t,a\nA,x,y,1\nB,z,w,2\n",
        {},
        "'s' .number 2. contains text .'x'.*\n.*\n.*table_encoder",
    ),
    "only a heading": ("id,a,b\n", {}, "a heading but no rows.*\n.*again"),
    "only comments": ("# nothing\n\n", {}, "no rows"),
    "one column": ("a\n1\n2\n", {}, "one cell per line"),
    "nothing": ("", {}, "the file is empty"),
    "open quote": ('id,a\n"A,1\n', {}, "line 2: .*\n.*quote"),
    "a web page": ("<!DOCTYPE html><html>Not found</html>", {}, "this is a web page"),
    "infinite": ("id,a\nA,1\nB,inf\n", {}, "infinite, the first in sample 'B', feature 'a'"),
    "missing": ("id,a\nA,1\nB,NA\n", {}, "1 values are missing, the first in sample 'B'"),
    "missing label": ("id,a,class\nA,1,x\nB,2,NA\n", {}, "1 of 2 samples have no label"),
    "UTF-16": ("id,a\nA,1\n".encode("utf-16"), {}, "UTF-16.*\n.*as UTF-8"),
    "zero byte": (b"id,a\nA,1\nB\0,2\n", {}, "line 3 has a zero byte"),
    "text row": ("sample,a,b\nA,1,2\nB,x,y\n", {}, "line 3: no number"),
    "no numbers": ("id,a\nA,x\nB,y\n", {}, "0 numeric features|no row has a number"),
    "genes in words": (
        "id,a,b,class\nA,low,high,x\nB,high,low,y\n",
        {"label": "class"},
        "no row has a number; line 2 has 'low'.*\n.*must be numbers",
    ),
    "one word in a column": (
        "id,a,b,class\nA,1,2,x\nB,low,3,y\nC,2,4,x\nD,3,4,y\n",
        {"label": "class"},
        "line 3, column 'a' .number 2.: 'low' is not a number, but 3 of the 4.*\n.*Correct",
    ),
    "heading too long": ("id,a,b,c,d\nA,1\nB,2\n", {}, "2 cells, but the heading has 5"),
    "no such row": (COLUMNS, {"label": "stage", "orientation": "samples_in_columns"}, "no row"),
    "no index": (ROWS, {"index": "barcode"}, "no column 'barcode' for index="),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_table_is_refused_with_the_place_and_the_fix(write, case):
    text, arguments, message = BAD[case]
    path = write("bad.csv", text)
    with pytest.raises(RatoonError, match=f"(?s)bad.csv.*{message}"):
        read(path, **arguments)


def test_ignored_columns_are_not_read(write):
    data = read(write("t.csv", "id,s,a,b,class\nA,x,1,2,p\nB,y,3,4,q\n"), ignore=("s", "a"))
    assert data.feature_names == ("b",)


@pytest.mark.parametrize("turned", [False, True])
def test_the_time_grows_with_the_cells_not_with_the_square_of_the_columns(write, turned):
    cells = [["sample", *(f"g{j}" for j in range(30_000)), "class"]]
    cells += [[f"s{i}", *("1.25" for _ in range(30_000)), "xy"[i % 2]] for i in range(10)]
    rows = zip(*cells, strict=True) if turned else cells
    path = write("wide.csv", "\n".join(",".join(row) for row in rows))
    start = time.process_time()
    data = read(path, orientation="samples_in_columns" if turned else "samples_in_rows")
    # Measured at 0.3 s; a square of the columns would take minutes.
    assert time.process_time() - start < 5
    assert data.X.shape == (10, 30_000)


def test_rows_and_columns_above_the_limits_are_refused(write):
    path = write("t.csv", ROWS)
    with pytest.raises(FormatError, match="3 rows, the limit is 2"):
        read(path, limits=Limits(rows=2))
    with pytest.raises(FormatError, match="line 1 has"):
        read(path, limits=Limits(line_bytes=10))


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_read_or_refused_with_an_error_of_ours(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "t.csv"
    path.write_bytes(content)
    with suppress(RatoonError):
        read(path)


cells = st.sampled_from(["1", "-2.5", "x", "", "NA", '"', "1e5", "class", "id", "é", "inf"])


@given(
    st.lists(st.lists(cells, max_size=6), max_size=6),
    st.sampled_from(list(",\t; ")),
)
def test_arbitrary_tables_are_read_or_refused_with_an_error_of_ours(
    tmp_path_factory, rows, delimiter
):
    path = tmp_path_factory.mktemp("any") / "t.csv"
    path.write_text("\n".join(delimiter.join(row) for row in rows))
    with suppress(RatoonError):
        read(path)


def wide_files(n_columns):
    """Lines with more cells than there may be: in the heading, in a row, quoted and not."""
    cells = b"1," * (n_columns - 2)
    return {
        "heading": b"id," + b"a," * (n_columns - 2) + b"b\nx," + cells + b"2\n",
        "no heading": b"1," + cells + b"2\n3," + cells + b"4\n",
        "quoted heading": b'"id",' + b"a," * (n_columns - 2) + b"b\nx," + cells + b"2\n",
        "blanks": b"id" + b" a" * (n_columns - 1) + b"\nx" + b" 1" * (n_columns - 1) + b"\n",
        "third line": b"id,a,b\nx,1,2\ny," + cells + b"3\n",
        "third line, quoted": b'id,a,b\nx,1,2\n"y",' + cells + b"3\n",
        "late line": b"id,a,b\n" + b"x,1,2\n" * 90 + b"y," + cells + b"3\n",
        "late line, quoted": b"id,a,b\n" + b"x,1,2\n" * 90 + b'"y",' + cells + b"3\n",
        "late line, quote inside": b"id,a,b\n" + b"x,1,2\n" * 90 + b'y"z,' + cells + b"3\n",
    }


@pytest.mark.parametrize("case", wide_files(2))
def test_too_many_columns_are_counted_before_any_cell_is_made(write, case):
    path = write("a.csv", wide_files(1_000_001)[case])
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=r"1000001 (columns, the limit|cells, expected 3)"):
            read(path, limits=Limits(columns=1_000_000), duplicates="keep")
        assert tracemalloc.get_traced_memory()[1] < 40_000_000  # the cells alone would take 60
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("read_it", [read, lambda path, **how: read_sample_sheet(path, **how)])
def test_a_limit_of_a_few_columns_holds(write, read_it):
    path = write("a.csv", "id,a,b,c\nx,1,2,3\ny,3,4,5\n")
    with pytest.raises(FormatError, match="4 columns, the limit is 3"):
        read_it(path, limits=Limits(columns=3))
    read_it(path, limits=Limits(columns=4))


@given(st.lists(st.text('a1",\u00e9 ', max_size=4), min_size=2, max_size=6), st.integers(0, 8))
def test_cells_are_counted_as_they_are_split(cells, most):
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    splitter = Splitter("a.csv", ",", Limits())
    raw = line.getvalue().encode()
    found = splitter.count(raw, most)
    assert (found > most) == (len(cells) > most)
    assert found >= len(cells) or found > most
    assert splitter.first_cell((1, raw)) == splitter.cells((1, raw))[0] == cells[0]


def test_a_quote_inside_a_cell_does_not_hide_delimiters():
    splitter = Splitter("a.csv", ",", Limits())
    raw = b'5" disk,1,2,"x, ""y""",3'
    assert splitter.count(raw, 1) > 1
    assert splitter.count(raw, 4) == len(splitter.cells((1, raw))) == 5


EUROPEAN = "sample;TP53;BRCA1;class\nA;1,5;2;ill\nB;0,25;-3,5e2;well, mostly\n"


def test_decimal_commas_are_recognised_between_semicolons(write):
    data = read(write("a.csv", EUROPEAN))
    assert data.X.tolist() == [[1.5, 2.0], [0.25, -350.0]]
    assert data.labels.tolist() == ["ill", "well, mostly"]
    assert "numbers have decimal commas" in data.notes


def test_decimal_commas_are_recognised_without_a_heading(write):
    assert read(write("a.csv", "1,5;2,5;3,5\n4,5;5,5;6,5\n")).X.tolist() == [
        [1.5, 2.5, 3.5],
        [4.5, 5.5, 6.5],
    ]


def test_commas_separate_cells_where_points_are_decimal(write):
    assert read(write("a.csv", "a;b,c\n1.5,2.5\n3.5,4.5\n")).feature_names == ("a;b", "c")


def test_the_decimal_mark_can_be_given(write):
    path = write("a.csv", "a;b\n1,5;2\n3;4\n")
    assert read(path, decimal=",").X.tolist() == [[1.5, 2.0], [3.0, 4.0]]
    with pytest.raises(FormatError, match="no row has a number"):
        read(write("a.csv", "a;b\n1,5;2,5\n3,5;4,5\n"), decimal=".")


@pytest.mark.parametrize("delimiter", ["~", ":", "#", "semicolon"])
def test_the_delimiter_can_be_given(write, delimiter):
    mark = ";" if delimiter == "semicolon" else delimiter
    path = write("a.csv", "a|b~,c\n1|2~,3\n4|5~,6\n".replace("~,", mark))
    data = read(path, delimiter=delimiter, ignore="a|b")
    assert data.feature_names == ("c",)
    assert data.X.tolist() == [[3.0], [6.0]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"delimiter": "ab"}, "one character"),
        ({"delimiter": ""}, "one character"),
        ({"delimiter": "1"}, "one character"),
        ({"delimiter": ",", "decimal": ","}, "must differ"),
        ({"decimal": ";"}, "decimal"),
    ],
)
def test_an_invalid_delimiter_or_decimal_mark_is_refused(write, wrong, message):
    with pytest.raises(InvalidParameterError, match=message):
        read(write("a.csv", "a,b\n1,2\n"), **wrong)


def test_a_delimiter_is_refused_for_formats_without_one(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(3))
    with pytest.raises(InvalidParameterError, match="for text tables"):
        read(tmp_path / "a.npz", delimiter=";")


GCT = "#1.2\n2\t3\nName\tDescription\tS1\tS2\tS3\ng1\tna\t1\t2\t3\ng2\tna\t4\t5\t6\n"


@pytest.mark.parametrize("labels", ["0 1 1", "ALL AML AML"])
def test_a_cls_file_beside_a_gct_file_has_its_labels(write, labels):
    write("a.cls", f"3 2 1\n# ALL AML\n{labels}\n")
    data = read(write("a.gct", GCT))
    assert data.labels.tolist() == ["ALL", "AML", "AML"]
    assert data.X.shape == (3, 2)


def test_a_cls_file_can_be_the_sample_sheet(write):
    numeric = write("b.cls", "#numeric\n#age\n1.5 2.5 3.5\n")
    assert read(write("a.gct", GCT), sample_sheet=numeric).y.tolist() == [1.5, 2.5, 3.5]


@pytest.mark.parametrize("text", ["3 2 1\n# A B\n0 1\n", "3 2 1\n0 1 1\n", "#numeric\n", "\n"])
def test_a_damaged_cls_file_is_refused(write, text):
    with pytest.raises(FormatError, match=r"b\.cls"):
        read(write("a.gct", GCT), sample_sheet=write("b.cls", text))
