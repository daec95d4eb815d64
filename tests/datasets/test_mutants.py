"""Damaged and hostile variants of a good file of each format of our own parsers.

A mutant is read or refused with a `RatoonError`; any other exception, and any crash, fails.  What
is read is used, so that a bad index that slipped through would show.  The short version runs with
every test run; `tests/soak` reads as many as time allows.
"""

import gzip
import io
import struct

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from ratoon.datasets import Limits, read
from ratoon.errors import RatoonError

SMALL = Limits(array_bytes=10**7, rows=10**5, columns=10**5, expanded_bytes=10**7)
X = np.round(np.random.default_rng(0).normal(size=(6, 5)), 3) * (np.arange(5) != 2)
WORDS = [b"\0", b"\xff", b"nan", b"-", b"\n", b"\t", b",", b":", b'"', b"99999999999", b"1e999"]
INTEGERS = [0, 1, 255, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1]


def mat(compress):
    buffer = io.BytesIO()
    names = np.array(["a", "b", "c", "d", "e"], dtype=object)
    variables = {"X": sp.csc_matrix(X), "Y": np.arange(6) % 2, "genes": names, "Z": X}
    scipy.io.savemat(buffer, variables, do_compression=compress)
    return buffer.getvalue()


def npz(save, *arguments, **arrays):
    buffer = io.BytesIO()
    save(buffer, *arguments, **arrays)
    return buffer.getvalue()


def csv():
    rows = [f"s{i}," + ",".join(map(str, row)) + f",{'xy'[i % 2]}" for i, row in enumerate(X)]
    return ("sample,a,b,c,d,e,class\n" + "\n".join(rows) + "\n").encode()


def series_matrix():
    lines = ['!Series_title\t"t"', "!Sample_characteristics_ch1" + '\t"kind: x"\t"kind: y"' * 3]
    lines += ["!series_matrix_table_begin", "ID_REF" + "".join(f'\t"GSM{i}"' for i in range(6))]
    lines += [f'"g{j}"\t' + "\t".join(map(str, X[:, j])) for j in range(5)]
    return "\n".join([*lines, "!series_matrix_table_end\n"]).encode()


def matrix_market():
    entries = [f"{i + 1} {j + 1} {X[i, j]}" for i, j in zip(*X.nonzero(), strict=True)]
    heading = f"%%MatrixMarket matrix coordinate real general\n6 5 {len(entries)}\n"
    return (heading + "\n".join(entries) + "\n").encode()


def libsvm():
    rows = ["1 " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row) if v) for row in X]
    return "\n".join(rows).encode()


def idx():
    return bytes([0, 0, 0x0E, 3]) + struct.pack(">3I", 6, 1, 5) + X.astype(">f8").tobytes()


def arff():
    names = "".join(f"@attribute {name} numeric\n" for name in "abcde")
    rows = "\n".join(",".join(map(str, row)) + f",{'xy'[i % 2]}" for i, row in enumerate(X))
    return f"@relation x\n{names}@attribute class {{x,y}}\n@data\n{rows}\n".encode()


def gct():
    rows = [f"g{j}\td\t" + "\t".join(map(str, X[:, j])) for j in range(5)]
    heading = "#1.2\n5\t6\nName\tDescription\t" + "\t".join(f"s{i}" for i in range(6))
    return "\n".join([heading, *rows, ""]).encode()


def soft_data_set():
    subset = "^SUBSET = {0}\n!subset_description = {0}\n!subset_sample_id = {1}\n"
    lines = [subset.format("x", "M0,M1,M2"), "!subset_type = disease", subset.format("y", "M3,M4")]
    lines += ["!subset_type = disease", "^DATASET = GDS1", "!dataset_table_begin"]
    lines += ["ID_REF\tIDENTIFIER\t" + "\t".join(f"M{i}" for i in range(6))]
    lines += [f"g{j}\tn\t" + "\t".join(map(str, X[:, j])) for j in range(5)]
    return "\n".join(["^DATABASE = Geo", *lines, "!dataset_table_end\n"]).encode()


def soft_family():
    lines = ["^SERIES = G", "^PLATFORM = P", "!platform_table_begin", "ID", "!platform_table_end"]
    for i, row in enumerate(X):
        lines += [f"^SAMPLE = M{i}", f"!Sample_characteristics_ch1 = kind: {'xy'[i % 2]}"]
        lines += ["!sample_table_begin", "ID_REF\tVALUE"]
        lines += [*(f"g{j}\t{value}" for j, value in enumerate(row)), "!sample_table_end"]
    return "\n".join(lines).encode()


def r_list():
    """A list of a matrix and a vector, as R writes it without compression."""
    matrix = struct.pack(">3i", 526, X.size, 0)[:8] + X.T.astype(">f8").tobytes()
    sizes = struct.pack(">9i", 1026, 1, 262153, 3, 0, 0, 0, 0, 0)[:16] + b"dim"
    sizes += struct.pack(">5i", 13, 2, 6, 5, 254)
    names = struct.pack(">4i", 1026, 1, 262153, 5) + b"names" + struct.pack(">2i", 16, 2)
    names += b"".join(struct.pack(">2i", 262153, 1) + name for name in (b"X", b"y"))
    vector = struct.pack(">8i", 13, 6, 0, 1, 0, 1, 0, 1)
    head = b"X\n" + struct.pack(">4i", 3, 0x40000, 0x30500, 5) + b"UTF-8"
    whole = struct.pack(">2i", 531, 2) + matrix + sizes + vector + names
    return head + whole + struct.pack(">i", 254)


GOOD = {
    "packed.mat": mat(True),
    "plain.mat": mat(False),
    "dense.npz": npz(np.savez, X=X, y=np.arange(6) % 2),
    "sparse.npz": npz(sp.save_npz, sp.csr_matrix(X), compressed=False),
    "table.csv": csv(),
    "table.csv.gz": gzip.compress(csv()),
    "s_series_matrix.txt": series_matrix(),
    "lone.mtx": matrix_market(),
    "rows.libsvm": libsvm(),
    "table.arff": arff(),
    "table.gct": gct(),
    "data_set.soft": soft_data_set(),
    "family.soft": soft_family(),
    "list.rds": r_list(),
    "rows-idx3": idx(),
    "rows-idx3.gz": gzip.compress(idx()),
}


def mutant(content, rng):
    """Change, cut, repeat or insert a few bytes, preferring the limits of integers."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        place = int(rng.integers(len(content)))
        length = int(rng.integers(1, 9))
        match rng.integers(7):
            case 0:
                content[place] ^= 1 << int(rng.integers(8))
            case 1:
                content[place] = int(rng.integers(256))
            case 2:
                value = INTEGERS[rng.integers(len(INTEGERS))]
                content[place : place + 4] = value.to_bytes(4, "little")
            case 3:
                del content[place : place + length]
            case 4:
                content[place:place] = content[place : place + length]
            case 5:
                content[place:place] = WORDS[rng.integers(len(WORDS))]
            case 6:
                del content[max(place, 1) :]
        if not content:
            return b"x"
    return bytes(content)


def read_mutants(folder, name, count, seed):
    if name.endswith(".rds"):
        pytest.importorskip("rdata")
    rng = np.random.default_rng(seed)
    path = folder / name
    path.write_bytes(GOOD[name])
    read(path)
    for number in range(count):
        path.write_bytes(mutant(GOOD[name], rng))
        try:
            data = read(path, limits=SMALL, missing="keep", duplicates="keep")
        except RatoonError:
            continue
        except Exception as error:
            error.add_note(f"mutant {number} of {name}, seed {seed}")
            raise
        with np.errstate(all="ignore"):
            data.X @ np.ones(data.n_features, dtype=data.X.dtype)


@pytest.mark.parametrize("name", GOOD)
def test_mutants_are_read_or_refused_with_an_error_of_ours(tmp_path, name):
    read_mutants(tmp_path, name, 150, seed=1)
