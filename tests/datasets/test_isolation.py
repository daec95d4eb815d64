import os
import signal
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from ratoon.datasets import Isolation, Limits, isolation, read
from ratoon.errors import FormatError, InvalidInputError
from tests.processes import IS_SANITIZED

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs memory limits")

CSV = "sample,TP53,MYC,class\nA,1.5,2,ill\nB,0.5,3,well\n"


def same(left, right):
    assert type(left.X) is type(right.X)
    if left.is_sparse:
        assert (left.X != right.X).nnz == 0
    else:
        assert_array_equal(left.X, right.X)
    assert_array_equal(left.y, right.y)
    for name in ("feature_names", "sample_names", "class_names", "sha256", "source"):
        assert getattr(left, name) == getattr(right, name)


def test_the_result_is_the_same_as_in_this_process(write, tmp_path):
    path = write("a.csv", CSV)
    same(read(path, isolated=True), read(path))
    np.savez(tmp_path / "b.npz", X=sp.identity(5).toarray(), y=[1, 2, 1, 2, 1])
    options = {"sparse": True, "dtype": "float64", "limits": Limits(rows=10)}
    same(read(tmp_path / "b.npz", isolated=True, **options), read(tmp_path / "b.npz", **options))


def test_errors_keep_their_type_and_message(write):
    path = write("a.csv", CSV)
    with pytest.raises(InvalidInputError, match="no column 'stage'"):
        read(path, label="stage", isolated=True)
    with pytest.raises(FormatError, match="cut off"):
        read(write("bad.csv", CSV + "C,1"), isolated=True)


def replace_child(monkeypatch, tmp_path, code):
    """Let the child run other code, as a malicious file would."""
    script = tmp_path / "child.py"
    script.write_text(code)
    run = isolation.subprocess.run
    monkeypatch.setattr(
        isolation.subprocess,
        "run",
        lambda command, **rest: run([sys.executable, str(script)], **rest),
    )


def test_a_crash_of_the_reader_is_an_error_in_this_process(write, tmp_path, monkeypatch):
    code = """
import os, signal
signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # a sanitizer has a handler of its own
os.kill(os.getpid(), signal.SIGSEGV)
"""
    replace_child(monkeypatch, tmp_path, code)
    with pytest.raises(FormatError, match=f"signal {signal.SIGSEGV:d}"):
        read(write("a.csv", CSV), isolated=True)
    assert os.getpid()


def test_a_reader_that_hangs_is_stopped(write, tmp_path, monkeypatch):
    replace_child(monkeypatch, tmp_path, "import time; time.sleep(60)")
    with pytest.raises(FormatError, match=r"more than 0\.3 seconds"):
        read(write("a.csv", CSV), isolated=Isolation(seconds=0.3))


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer ends the process that runs out of memory")
def test_a_reader_that_needs_too_much_memory_is_stopped(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.ones((3000, 1000)))
    with pytest.raises(FormatError, match="needs more than 5000000 bytes of memory"):
        read(tmp_path / "a.npz", isolated=Isolation(memory_bytes=5_000_000))


def test_indices_from_the_child_are_checked(write, tmp_path, monkeypatch):
    code = """
import json, sys, numpy as np
from pathlib import Path
folder = Path(json.load(sys.stdin)["folder"])
for part, values in (("data", [1.0]), ("indices", [10**6]), ("indptr", [0, 1])):
    np.save(folder / f"X_{part}.npy", np.array(values))
names = dict.fromkeys(("feature_names", "sample_names", "class_names", "sha256"))
result = {"sparse": True, "shape": [1, 3], "has_y": False, "notes": [], **names}
(folder / "answer.json").write_text(json.dumps(result))
"""
    replace_child(monkeypatch, tmp_path, code)
    with pytest.raises(FormatError, match="index 1000000 lies outside"):
        read(write("a.csv", CSV), isolated=True)


def test_values_filled_in_come_back(write):
    path = write("a.csv", "id,a,b\nA,1,2\nB,,4\nC,3,5\n")
    here, there = read(path, missing="mean"), read(path, missing="mean", isolated=True)
    assert there.naming.fill.tolist() == here.naming.fill.tolist() == [2.0, np.float32(11 / 3)]
