"""Small files that claim much: cells far away, long sequences, wide values, odd numbers.

They are refused with an error that can be read, within seconds and with little memory, or read.
"""

import bz2
import gzip
import lzma
import random
import struct
import zipfile

import numpy as np
import pytest

from ratoon.datasets import open_stored, read
from ratoon.errors import RatoonError
from tests.adversary.attacks import only_ratoon_errors, repeat
from tests.processes import IS_SANITIZED

resource = pytest.importorskip("resource")

ROOM = 2**31
NUMBERS = (
    *("0", "1", "-1", "2147483648", "4294967295", "9" * 18, "9" * 19, "9" * 5_000, "\u00b2"),
    *("1e10", "1e18", "nan", "inf", "0x10", "", "+1", "\u0663"),
)
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def write_workbook(path, cell):
    """Write a workbook with a small table, and one more cell at the given place."""
    table = [("A1", "sample"), ("B1", "f"), ("A2", "s"), ("B2", "1"), ("A3", "t"), ("B3", "2")]
    cells = "".join(f'<row><c r="{at}" t="str"><v>{v}</v></c></row>' for at, v in table)
    last = f'<row><c r="{cell}"><v>1</v></c></row>'
    files = {
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}"><Relationship Id="r1"'
        f' Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{SHEET}" xmlns:r="{OFFICE}"><sheets>'
        '<sheet name="S" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}"><Relationship Id="rId1"'
        f' Type="{OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{SHEET}"><sheetData>{cells}{last}'
        "</sheetData></worksheet>",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def sequence_of_r(name, *numbers):
    """Return an .rds file with a sequence that is stored as its length, start and step."""

    def symbol(text):
        return struct.pack(">iii", 1, 0x40009, len(text)) + text

    listed = [symbol(name), symbol(b"base"), struct.pack(">iii", 13, 1, 13)]
    pairs = b"".join(struct.pack(">i", 2) + item for item in listed) + struct.pack(">i", 254)
    state = struct.pack(">ii", 14, len(numbers)) + struct.pack(f">{len(numbers)}d", *numbers)
    head = b"X\n" + struct.pack(">iiii", 3, 0x40000, 0x30500, 5) + b"UTF-8"
    return head + struct.pack(">i", 238) + pairs + state + struct.pack(">i", 254)


def workbook(choose, folder):
    cells = (
        "XFD1048576",
        "ZZZZZZ99999999",
        "A1048577",
        "XFE1",
        "A0",
        "0",
        "\u00c91",
        "B99999999999",
    )
    write_workbook(folder / "x.xlsx", choose.choice(cells))
    return folder / "x.xlsx"


def r_sequence(choose, folder):
    lengths = (1e10, 1e18, np.nan, np.inf, -5.0, 3e7, 5.0)
    kind = choose.choice((b"compact_intseq", b"compact_realseq"))
    path = folder / "x.rds"
    path.write_bytes(sequence_of_r(kind, choose.choice(lengths), 1.0, choose.choice((0.0, 1.0))))
    return path


def r_bomb(choose, folder):
    pack = choose.choice((bz2.compress, lzma.compress, gzip.compress))
    path = folder / "x.rds"
    path.write_bytes(pack(b"X\n" + bytes(3 * 10**8)))
    return path


def arff(choose, folder):
    widths = choose.choice((10, 10**6))
    kind = choose.choice(("numeric", "{a," + "b" * widths + "}", "date yyyy", "string", "{", "x"))
    rows = "1,a\n" * choose.choice((1, 50_000))
    path = folder / "x.arff"
    path.write_text(f"@relation x\n@attribute n numeric\n@attribute c {kind}\n@data\n{rows}")
    return path


def matrix_market(choose, folder):
    size = " ".join(choose.choice(NUMBERS) for _ in range(3))
    path = folder / "x.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate real general\n{size}\n1 1 1\n")
    return path


def gct(choose, folder):
    path = folder / "x.gct"
    path.write_text(f"#1.2\n{choose.choice(NUMBERS)}\t2\nName\tDescription\ta\tb\nx\ty\t1\t2\n")
    (folder / "x.cls").write_text(f"2 2 1\n# A B\n{choose.choice(NUMBERS)} 1\n")
    return path


def npy(choose, folder):
    shapes = ("(-1, 10)", "(True, 10)", "(10**9, 10)", "(" * 3_000, "(0, 0)", "(2**70, 1)", "()")
    kinds = ("'<f8'", "'|O'", "'<f3'", "[('a', '<f8')]", "'<U99999999'", "None", "'\\x00'")
    header = (
        f"{{'descr': {choose.choice(kinds)}, 'fortran_order': False, 'shape':"
        f" {choose.choice(shapes)}}}\n"
    ).encode()
    path = folder / "x.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(80))
    return path


def npz(choose, folder):
    member = npy(choose, folder).read_bytes()
    with zipfile.ZipFile(folder / "x.npz", "w") as archive:
        archive.writestr("X.npy", member)
    return folder / "x.npz"


def idx(choose, folder):
    sizes = [choose.choice((0, 1, 28, 2**16, 2**32 - 1)) for _ in range(3)]
    path = folder / "x-idx3-ubyte"
    path.write_bytes(bytes([0, 0, 8, 3]) + struct.pack(">3I", *sizes) + bytes(784))
    return path


KINDS = (workbook, r_sequence, r_bomb, arff, matrix_market, gct, npy, npz, idx)
NEEDED = {workbook: "python_calamine", r_sequence: "rdata", r_bomb: "rdata"}


def attack(seed, kind, folder):
    path = kind(random.Random(seed), folder)
    sheet = path.with_suffix(".cls")
    with only_ratoon_errors(seconds=120):
        if path.suffix == ".npy":
            open_stored(path)
        elif sheet.exists() and path.suffix == ".gct":
            read(path, sample_sheet=sheet)
        else:
            read(path)


@pytest.fixture
def little_memory():
    if IS_SANITIZED:
        pytest.skip("sanitizers need the address space")
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_file_that_claims_much_is_refused_with_little_memory(tmp_path, little_memory, kind):
    pytest.importorskip(NEEDED.get(kind, "numpy"))
    for seed in range(1 if kind is r_bomb else 8):
        attack(seed, kind, tmp_path)


def test_a_workbook_with_a_cell_far_away_is_refused(tmp_path):
    pytest.importorskip("python_calamine")
    write_workbook(tmp_path / "x.xlsx", "B4")
    assert read(tmp_path / "x.xlsx", missing="zero").X.shape == (3, 1)
    for cell in ("XFD1048576", "ZZZZZZ99999999"):
        write_workbook(tmp_path / "x.xlsx", cell)
        with pytest.raises(RatoonError, match="cells far outside the table"):
            read(tmp_path / "x.xlsx")


@pytest.mark.soak
def test_files_that_claim_much_are_refused_for_long(tmp_path, little_memory, minutes, say):
    repeat(lambda seed: attack(seed, KINDS[seed % len(KINDS)], tmp_path), minutes, say)
