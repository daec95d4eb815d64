import io
import tarfile
import zipfile

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


def zipped(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/"), text)
    return path


def test_archives_are_named_for_what_they_hold(tmp_path):
    with pytest.raises(FormatError, match="this is a Word document"):
        read(zipped(tmp_path / "a.docx", word__document="<w/>"))
    with pytest.raises(FormatError, match=r"a zip archive with genes\.csv\. Unpack it"):
        read(zipped(tmp_path / "a.zip", **{"genes.csv": "a,b\n1,2\n"}))


def test_an_unknown_binary_file_is_called_one(tmp_path):
    path = tmp_path / "a.dat"
    path.write_bytes(bytes(range(256)) * 20)
    with pytest.raises(FormatError, match=r"a kind that is not known.*00 01 02 03"):
        read(path)
