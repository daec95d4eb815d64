"""Files that are something else: known by their first bytes, refused with advice."""

from __future__ import annotations

import zipfile
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
_OFFICE = {
    "word/": ("a Word document", "Copy the table to a spreadsheet and save that as CSV"),
    "ppt/": ("a PowerPoint document", "Copy the table to a spreadsheet and save that as CSV"),
}
_PROBE, _FEW = 4096, 8
_READ = (b"PK", b"PAR1", b"\x89HDF\r\n\x1a\n", *(b"\x80" + bytes([n]) for n in range(2, 6)))
"""First bytes of binary formats that are read, and of pickles, which have their own message."""
_NAMED_BY_SUFFIX = {".mat", ".npz", ".npy", ".h5", ".h5ad", ".hdf5", ".parquet", ".xlsx", ".ods"}
"""Damaged files of these names get the message of their format."""


def refuse_known_binary(path: Path, head: bytes) -> None:
    """Raise if the first bytes are those of a known kind of file that is not a table."""
    for magic, what, advice in _KNOWN:
        if head.startswith(magic):
            raise FormatError(f"{path}: this is {what}, which cannot be read. {advice}.")
    if head[_TAR_AT:].startswith(_TAR):
        raise FormatError(f"{path}: this is a tar archive. Unpack it and pass the file inside.")
    if head.startswith(b"PK"):
        _refuse_other_archive(path)
    if path.suffix.lower() not in _NAMED_BY_SUFFIX and _is_unknown(head):
        raise FormatError(
            f"{path}: this is a binary file of a kind that is not known: its first bytes are"
            f" {head[:8].hex(' ')}.\n"
            "  Export the table as CSV from the program that wrote it, or pass format= if it is one"
            " of the known formats."
        )


def _refuse_other_archive(path: Path) -> None:
    """Raise for a zip archive that holds something other than NumPy arrays."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return  # the reader of .npz says what is damaged
    if not names or any(name.endswith(".npy") for name in names):
        return
    for folder, (what, advice) in _OFFICE.items():
        if any(name.startswith(folder) for name in names):
            raise FormatError(f"{path}: this is {what}, which cannot be read. {advice}.")
    shown = ", ".join(sorted(names)[:3]) + (", ..." if len(names) > 3 else "")
    raise FormatError(
        f"{path}: this is a zip archive with {shown}. Unpack it and pass the file inside."
    )


def _is_unknown(head: bytes) -> bool:
    """Whether the first bytes are neither text nor those of a format that is read."""
    if head.startswith(_READ) or head[512:].startswith(_READ):
        return False
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False  # UTF-16: the reader of text says what to do
    probe = head[:_PROBE]
    control = sum(byte < 9 or 13 < byte < 32 for byte in probe)
    return control > max(_FEW, 0.02 * len(probe))
