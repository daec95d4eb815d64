"""Memory that nothing points to any more, as the address sanitizer finds it."""

import pytest

from tests.processes import CAN_FIND_LEAKS, run_python

SCRIPT = """
import ctypes, gc, sys, tempfile
from pathlib import Path

sys.path.insert(0, "tests/reliability")
from leaks import one_round

with tempfile.TemporaryDirectory() as folder:
    for number in range(int(sys.argv[1])):
        one_round(number, Path(folder))
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
for _ in range(int(sys.argv[2])):
    library.malloc(ctypes.c_size_t(123457))
gc.collect()
library.__lsan_do_recoverable_leak_check()
"""

pytestmark = pytest.mark.skipif(
    not CAN_FIND_LEAKS, reason="only the address sanitizer finds what was forgotten: make asan"
)


def report(n_rounds, n_forgotten=0):
    """Return what is told as forgotten after so many rounds of fitting, saving and loading."""
    options = "detect_leaks=1:leak_check_at_exit=0:log_path=stderr"
    found = run_python(SCRIPT, n_rounds, n_forgotten, timeout=600, ASAN_OPTIONS=options)
    assert found.returncode == 0, found.stderr
    return found.stderr


def test_native_code_forgets_no_memory():
    assert "_native" not in report(n_rounds=30)


def test_what_is_forgotten_is_found():
    # Without this, a search that never finds anything would be taken for a clean bill.
    assert "123457 byte" in report(n_rounds=0, n_forgotten=1)
