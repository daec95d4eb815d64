"""Memory leaks, as found by the address sanitizer."""

import re

import pytest

from tests.processes import CAN_FIND_LEAKS, run_python

SCRIPT = """
import ctypes, gc, sys, tempfile
from pathlib import Path
from ratoon.topology import Topology
from tests.reliability.leaks import one_round

with tempfile.TemporaryDirectory() as folder:
    for number in range(int(sys.argv[1])):
        one_round(number, Path(folder))
for seed in range(int(sys.argv[2])):
    # One reference more than there are holders: what holds native memory is never let go.
    array = Topology.random((9, 9), 20, seed=seed).degrees()[0]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(array.base.obj))
    del array
gc.collect()
ctypes.CDLL(None).__lsan_do_recoverable_leak_check()
"""

pytestmark = pytest.mark.skipif(
    not CAN_FIND_LEAKS, reason="only the address sanitizer finds what was forgotten: make asan"
)


OURS = re.compile(r"ratoon::|nanobind::|/_native\.")


def report(n_rounds, n_forgotten=0):
    """Return the leaks reported after some rounds of fitting, saving and loading."""
    options = "detect_leaks=1:leak_check_at_exit=0:log_path=stderr"
    found = run_python(SCRIPT, n_rounds, n_forgotten, timeout=600, ASAN_OPTIONS=options)
    assert found.returncode == 0, found.stderr
    return found.stderr


def test_native_code_leaks_no_memory():
    assert not OURS.search(report(n_rounds=30))


def test_a_leak_is_found():
    # Or else a search that never finds anything would pass for good news.
    assert OURS.search(report(n_rounds=0, n_forgotten=3))
