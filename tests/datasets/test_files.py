import gzip
import hashlib
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratoon.datasets import Limits, read
from ratoon.datasets.files import read_lines, survey
from ratoon.errors import FormatError, InvalidInputError


@given(st.lists(st.text("ab\t ", max_size=5)), st.booleans(), st.booleans())
def test_lines_are_read_as_written(tmp_path_factory, lines, packed, windows):
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    content = (("\r\n" if windows else "\n").join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    assert [line.decode() for line in read_lines(path, Limits())] == lines or lines == []


def test_a_long_file_keeps_its_lines_across_chunks(write):
    lines = [str(i).encode() * (i % 50) for i in range(60_000)]
    path = write("a.txt", b"\n".join(lines))
    assert list(read_lines(path, Limits())) == lines


def test_the_digest_is_of_the_bytes_as_stored(write):
    content = gzip.compress(b"some text" * 1000) + gzip.compress(b"a second member")
    assert survey(write("a.gz", content), Limits()) == hashlib.sha256(content).hexdigest()
    [line] = read_lines(write("a.gz", content), Limits())
    assert line.endswith(b"second member")


def test_a_damaged_gzip_is_refused(write):
    content = bytearray(gzip.compress(bytes(range(256)) * 100))
    content[40] ^= 0xFF
    with pytest.raises(FormatError, match="damaged"):
        survey(write("a.gz", bytes(content)), Limits())
    with pytest.raises(FormatError, match="damaged"):
        survey(write("b.gz", gzip.compress(b"x") + b"trailing rubbish"), Limits())
    survey(write("c.gz", gzip.compress(b"x") + b"\0" * 512), Limits())


def test_a_missing_file_is_an_error_with_similar_names(write):
    path = write("colon.mat", "x")
    with pytest.raises(InvalidInputError, match=r"(?s)no such file.*colon\.mat"):
        read(path.with_name("colon.npz"))


def test_folders_and_pipes_are_not_opened(tmp_path):
    with pytest.raises(InvalidInputError):
        survey(tmp_path, Limits())
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe.csv")
        with pytest.raises(InvalidInputError, match="not a regular file"):
            read(tmp_path / "pipe.csv")


def test_a_file_above_the_limit_is_not_opened(write):
    with pytest.raises(FormatError, match="limit is 10"):
        read(write("a.csv", "id,a\nA,1\nB,2\n"), limits=Limits(file_bytes=10))


def test_unusual_file_names_are_read(tmp_path):
    for name in ("with blank.csv", "ünïcödé.csv", "a.b.c.csv", "noextension"):
        path = tmp_path / name
        path.write_text("id,a\nA,1\nB,2\n")
        assert read(path).n_samples == 2


def test_a_symbolic_link_to_a_file_is_followed(write, tmp_path):
    (tmp_path / "link.csv").symlink_to(write("a.csv", "id,a\nA,1\nB,2\n"))
    assert read(tmp_path / "link.csv").n_samples == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.pkl", b"\x80\x04\x95\x10\x00"),
        ("a.csv", b"cos\nsystem\n(S'echo'\ntR."),
        ("a.npz", b"not a zip"),
        ("a.h5ad", b"not HDF5"),
        ("a.xlsx", b"nor this"),
        ("a.npy", b"\x93NUMPY\x01\x00"),
    ],
)
def test_pickles_and_files_with_a_wrong_extension_are_refused(write, name, content):
    with pytest.raises(FormatError, match=name):
        read(write(name, content))
