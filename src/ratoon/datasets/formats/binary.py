"""Files that are something else: known by their first bytes, refused with advice."""

from __future__ import annotations

from pathlib import Path

from ratoon.errors import FormatError

_KNOWN: tuple[tuple[bytes, str, str], ...] = (
    (b"\xd0\xcf\x11\xe0", "an old Excel file (.xls)", "Save it as .xlsx or CSV"),
    (b"%PDF", "a PDF document", "Export the table as CSV"),
    (b"\x89PNG", "a picture (PNG)", "Pass the folder with one folder of pictures per class"),
    (b"\xff\xd8\xff", "a picture (JPEG)", "Pass the folder with one folder of pictures per class"),
    (b"BZh", "a bzip2 archive", "Unpack it"),
    (b"\xfd7zXZ", "an xz archive", "Unpack it"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive", "Unpack it"),
    (b"7z\xbc\xaf", "a 7-Zip archive", "Unpack it"),
    (b"Rar!", "a RAR archive", "Unpack it"),
    (b"SQLite format 3", "an SQLite database", "Export the table as CSV"),
    (b"ARROW1", "an Arrow (Feather) file", "Save it as Parquet"),
    (b"BAM\x01", "aligned reads (BAM)", "Count reads per gene and save the counts as CSV"),
    (b"##fileformat=VCF", "a variant file (VCF)", "Convert the genotypes to a table"),
    (
        b"[CEL]",
        "an Affymetrix CEL file",
        "Normalise the arrays, for instance with RMA, and save the table",
    ),
    (
        b"\x40\x00\x00\x00\x04",
        "an Affymetrix CEL file",
        "Normalise the arrays, for instance with RMA, and save the table",
    ),
    (
        b";\x01\x00\x00",
        "an Affymetrix CEL file",
        "Normalise the arrays, for instance with RMA, and save the table",
    ),
    (b"<stata_dta>", "a Stata file", "Export the table as CSV"),
    (b"$FL2", "an SPSS file", "Export the table as CSV"),
)
_TAR_AT, _TAR = 257, b"ustar"


def refuse_known_binary(path: Path, head: bytes) -> None:
    """Raise if the first bytes are those of a known kind of file that is not a table."""
    for magic, what, advice in _KNOWN:
        if head.startswith(magic):
            raise FormatError(f"{path}: this is {what}, which cannot be read. {advice}.")
    if head[_TAR_AT:].startswith(_TAR):
        raise FormatError(f"{path}: this is a tar archive. Unpack it and pass the file inside.")
