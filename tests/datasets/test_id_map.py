"""ID maps: two columns, and an error with file and line where there are not."""

import gzip

import pytest

from ratoon.datasets import read_id_map
from ratoon.errors import FormatError


@pytest.mark.parametrize("mark", ["\t", ",", ";", "  "])
def test_pairs_are_read_with_any_separator(tmp_path, mark):
    path = tmp_path / "map.txt"
    lines = ["# probes of a chip", f"1007_s_at{mark}DDR1{mark}extra", "", f'"121_at"{mark}PAX8']
    path.write_text("\r\n".join(lines), encoding="utf-8")
    assert read_id_map(path) == {"1007_s_at": "DDR1", "121_at": "PAX8"}


def test_gzipped_maps_are_read(tmp_path):
    path = tmp_path / "map.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n"))
    assert read_id_map(path) == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\nlonely\n", "line 2: not a pair of names: 'lonely'"),
        ("a,b\nc,\n", "line 2: not a pair"),
        ("a,b\nx,y\na,c\n", "line 3: 'a' is both 'b' and 'c'; leave one"),
        ("# nothing\n", "no pairs of names"),
    ],
)
def test_what_is_no_map_is_refused_by_line(tmp_path, text, said):
    path = tmp_path / "map.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=said) as caught:
        read_id_map(path)
    assert str(path) in str(caught.value)


def test_the_same_pair_twice_is_no_contradiction(tmp_path):
    path = tmp_path / "map.csv"
    path.write_text("a,b\na,b\n", encoding="utf-8")
    assert read_id_map(path) == {"a": "b"}
