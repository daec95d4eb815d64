import io
import tarfile

import pytest

from ratoon.datasets import read
from ratoon.errors import FormatError


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", r"an old Excel file \(\.xls\).*Save it as \.xlsx"),
        (b"%PDF-1.7", "a PDF document"),
        (b"\x89PNG\r\n", "a picture"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"[CEL]\nVersion=3\n", "an Affymetrix CEL file.*RMA"),
        (b"##fileformat=VCFv4.2\n", "a variant file"),
    ],
)
def test_a_known_kind_of_file_is_named(write, head, message):
    with pytest.raises(FormatError, match=message):
        read(write("data.txt", head + bytes(600)))


def test_a_tar_archive_is_named(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("a.csv"), io.BytesIO())
    with pytest.raises(FormatError, match="tar archive"):
        read(tmp_path / "a.tar")
