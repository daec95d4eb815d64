"""Text files whose lines end in LF, CR LF, CR or a mixture have the same content."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ratoon.datasets import Limits, read, read_edge_list, read_gmt, read_id_map
from ratoon.datasets.files import read_lines

NAMES = ("TP53", "MDM2", "BRCA1", "EGFR")
MTX = "%%MatrixMarket matrix coordinate real general\n% comment\n3 4 3\n1 1 1.5\n2 4 -2\n3 2 7\n"
GCT = "#1.2\n2\t3\nName\tAbout\tS1\tS2\tS3\nTP53\tx\t1\t2\t3\nMDM2\ty\t4\t5\t6\n"
SERIES = (
    '!Series_title\t"a"\n!Sample_geo_accession\t"S1"\t"S2"\t"S3"\n'
    '!Sample_title\t"one"\t"two"\t"three"\n!series_matrix_table_begin\n'
    '"ID_REF"\t"S1"\t"S2"\t"S3"\n"TP53"\t1.5\t2\t3\n"MDM2"\t4\t5\t6\n!series_matrix_table_end\n'
)


def content_of(data):
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    y = None if data.y is None else data.y.tolist()
    return X.tolist(), y, data.feature_names, data.sample_names, data.class_names


def read_table(path):
    return content_of(read(path))


def read_with_sheet(path):
    table = path.with_name("data.csv")
    table.write_text("id,a,b\nA,1,2\nB,3,4\nC,5,6\n")
    return content_of(read(table, sample_sheet=path))


def groups_of(found):
    return found.names, found.matrix.toarray().tolist()


CASES = {
    "gmt": ("s.gmt", "p53\tnone\tTP53\tMDM2\nbreast\t\tBRCA1\tTP53\nx\t\tEGFR\n"),
    "edges": ("e.txt", "# pairs\nTP53\tp53\nMDM2\tp53\n\nBRCA1\tbreast\n"),
    "id map": ("m.txt", "# map\n1,TP53\n2,MDM2\n3,BRCA1\n"),
    "libsvm": ("a.libsvm", "1 1:2.5 3:1\n0 2:4\n# comment\n1 1:1 2:2 3:3\n"),
    "csv": ("a.csv", "id,TP53,MDM2,class\nA,1.5,2,ill\nB,0.5,3,well\nC,7,8,ill\n"),
    "tsv, quoted": ("a.tsv", 'id\ta\tb\tc\n"A, 1"\t1\t2\t3\n"B"\t4\t5\t6\n'),
    "gct": ("a.gct", GCT),
    "sample sheet": ("s.csv", "sample,group\nA,ill\nB,well\nC,ill\n"),
    "matrix market": ("a.mtx", MTX),
    "series matrix": ("a_series_matrix.txt", SERIES),
}
READERS = {
    "gmt": lambda path: groups_of(read_gmt(path, NAMES)),
    "edges": lambda path: groups_of(read_edge_list(path, NAMES)),
    "id map": read_id_map,
    "sample sheet": read_with_sheet,
}
MARK = b"\xef\xbb\xbf"


def check(folder, case, ends, *, marked=False, packed=False):
    name, text = CASES[case]
    reader = READERS.get(case, read_table)
    (folder / name).write_text(text, newline="")
    expected = reader(folder / name)
    lines = text.splitlines()
    raw = "".join(line + end for line, end in zip(lines, ends, strict=False)).encode()
    raw = MARK * marked + raw
    (folder / name).write_bytes(gzip.compress(raw) if packed else raw)
    assert reader(folder / name) == expected


ENDS = st.lists(st.sampled_from(["\n", "\r", "\r\n"]), min_size=12, max_size=12)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("end", ["\r", "\r\n", "\r\r\n", "\n"])
@pytest.mark.parametrize("marked", [False, True])
def test_every_line_end_gives_the_same_content(tmp_path, case, end, marked):
    check(tmp_path, case, [end] * 12, marked=marked)


def try_mixtures(tmp_path_factory, case, ends, marked, packed):
    check(tmp_path_factory.getbasetemp(), case, ends, marked=marked, packed=packed)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(CASES)), ENDS, st.booleans(), st.booleans())
def test_mixed_line_ends_give_the_same_content(tmp_path_factory, case, ends, marked, packed):
    try_mixtures(tmp_path_factory, case, ends, marked, packed)


@pytest.mark.soak
@settings(max_examples=20_000, deadline=None)
@given(st.sampled_from(sorted(CASES)), ENDS, st.booleans(), st.booleans())
def test_mixed_line_ends_give_the_same_content_for_long(
    tmp_path_factory, case, ends, marked, packed
):
    try_mixtures(tmp_path_factory, case, ends, marked, packed)


@pytest.mark.parametrize("place", range(2**20 - 3, 2**20 + 2))
@pytest.mark.parametrize("end", [b"\r", b"\r\n", b"\n"])
def test_a_line_end_at_the_border_of_two_chunks_ends_one_line(tmp_path, place, end):
    path = tmp_path / "a.txt"
    path.write_bytes(b"a" * place + end + b"b" + end)
    assert [len(line) for line in read_lines(path, Limits())] == [place, 1]
