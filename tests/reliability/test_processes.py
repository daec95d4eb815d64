"""Leaks, children and Ctrl-C, briefly; `tests/soak` does the same for longer."""

import sys

import pytest

from ratoon.evolution import STRATEGIES
from tests.processes import IS_SANITIZED, run_script

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer keeps freed memory back on purpose")
def test_fits_leave_neither_memory_nor_files_nor_threads():
    # The first rounds use every strategy at least once: code and caches are then loaded.
    assert len(STRATEGIES) <= 25
    found = run_script("reliability/leaks.py", "--first", 25, "--last", 55)
    assert found["megabytes_grown"] < 1.0
    assert found["files_grown"] == found["threads_grown"] == 0


def test_children_of_servers_and_pools_train_to_the_same_bytes():
    found = run_script("reliability/cycles.py", "--cycles", 2, "--kinds", "forkserver", "loky")
    assert found == {"cycles": {"forkserver": 1, "loky": 1}, "hung": 0, "different": 0}


def test_ctrl_c_ends_any_kind_of_native_work_and_leaves_objects_usable():
    found = run_script("reliability/latency.py", "--tries", 4)
    # How long it took is a figure, not a test: see `tests/soak`.
    assert {kind: (of["tries"], of["failed"]) for kind, of in found.items()} == dict.fromkeys(
        ["train", "rewire", "predict", "draw"], (1, 0)
    )
