"""Small files that unpack to gigabytes: refused within two seconds and half a gigabyte.

The bombs are 2 GiB of zeros.  To make them cheaply, a chunk of 16 MiB is compressed once and its
compressed bytes are repeated, which deflate allows after a full flush.
"""

import gzip
import struct
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import pytest

from ratoon.datasets import Limits, read
from ratoon.errors import FormatError

PIECE, REPEATS = 2**24, 128


def deflated(prefix, filler, wbits):
    squeeze = zlib.compressobj(9, wbits=wbits)
    content = squeeze.compress(prefix) + squeeze.flush(zlib.Z_FULL_FLUSH)
    piece = squeeze.compress(filler * (PIECE // len(filler))) + squeeze.flush(zlib.Z_FULL_FLUSH)
    return content + piece * REPEATS + squeeze.flush()


def gzip_bomb(path, prefix, filler):
    members = gzip.compress(prefix) + gzip.compress(filler * (PIECE // len(filler))) * REPEATS
    path.write_bytes(members)


def npz_bomb(path):
    header = struct.pack("<6sBBH", b"\x93NUMPY", 1, 0, 118)
    shape = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**14}, {2**14}), }}"
    stored = deflated(header + shape.ljust(117).encode() + b"\n", b"\0", -15)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", stored)
    content = bytearray(path.read_bytes())
    size = struct.pack("<I", PIECE * REPEATS + 128)
    for signature, method, length in ((b"PK\3\4", 8, 22), (b"PK\1\2", 10, 24)):
        place = content.rindex(signature)
        content[place + method : place + method + 2] = b"\x08\0"
        content[place + length : place + length + 4] = size
    path.write_bytes(content)


def mat_bomb(path):
    shape = (2**14, 2**14)
    flags = struct.pack("<4I", 6, 8, 6, 0)
    dims = struct.pack("<2I2i", 5, 8, *shape)
    name = struct.pack("<I4s", (1 << 16) | 1, b"X")
    n_values = PIECE * REPEATS
    body = flags + dims + name + struct.pack("<2I", 9, n_values)
    packed = deflated(struct.pack("<2I", 14, len(body) + n_values) + body, b"\0", 15)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x100) + b"IM"
    path.write_bytes(header + struct.pack("<2I", 15, len(packed)) + packed)


SERIES = (
    b'!Series_title\t"x"\n!series_matrix_table_begin\n"ID_REF"\t"GSM1"\t"GSM2"\t"GSM3"\n"a_at"\t1'
)
BOMBS = {
    "bomb_series_matrix.txt.gz": lambda path: gzip_bomb(path, SERIES, b"\t0"),
    "lines_series_matrix.txt.gz": lambda path: gzip_bomb(
        path, SERIES + b"\t1\t1\n", b"a\t0\t0\t0\n"
    ),
    "bomb.libsvm.gz": lambda path: gzip_bomb(path, b"1 1:1\n", b"1 1:1 2:0\n"),
    "bomb-idx3.gz": lambda path: gzip_bomb(
        path, b"\0\0\x08\x02" + struct.pack(">2I", 2**11, 2**20), b"\0"
    ),
    "bomb.npz": npz_bomb,
    "bomb.mat": mat_bomb,
}

CHILD = """
import sys
from pathlib import Path
from ratoon.datasets import read
from ratoon.errors import FormatError
for path in sys.argv[1:]:
    try:
        read(path)
    except FormatError as error:
        refused = "limit" in str(error)
    else:
        refused = False
    # Not getrusage: that peak begins with what the process had before it became this program.
    status = Path("/proc/self/status").read_text()
    print(refused, int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_every_bomb_is_refused_in_little_memory(tmp_path):
    for name, make in BOMBS.items():
        make(tmp_path / name)
        assert (tmp_path / name).stat().st_size < 10 * 2**20
    command = [sys.executable, "-c", CHILD, *(str(tmp_path / name) for name in BOMBS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)

    for name, line in zip(BOMBS, done.stdout.splitlines(), strict=True):
        refused, megabytes = line.split()
        assert refused == "True", name
        # Unpacked completely, it would take 2 GiB.
        assert int(megabytes) < 512, name


def test_a_highly_compressed_harmless_file_is_read(tmp_path):
    X = np.zeros((1000, 2000), dtype=np.float64)
    X[:, 0] = np.arange(1000)
    np.savez_compressed(tmp_path / "a.npz", X=X)
    assert (tmp_path / "a.npz").stat().st_size * 100 < X.nbytes
    assert read(tmp_path / "a.npz").X.nnz == 999


def test_the_limit_can_be_raised_by_name(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"id,a\n" + b"x,1\n" * 5000))
    small = Limits(free_bytes=1000, expansion=2)
    with pytest.raises(FormatError, match=r"pass limits=Limits\(expansion=\d+\)") as caught:
        read(path, limits=small, duplicates="keep")
    raised = int(str(caught.value).split("expansion=")[1].split(")")[0])
    raised = Limits(free_bytes=1000, expansion=raised)
    assert read(path, limits=raised, duplicates="keep").n_samples == 5000
