"""Trainings killed at random and at single system calls; longer versions are in `tests/soak`."""

import os
import re

import pytest

from tests.processes import IS_SANITIZED, run_python, run_script
from tests.storage.syscall_faults import can_trace


@pytest.fixture(scope="module")
def strace():
    if reason := can_trace():
        pytest.skip(reason)


def test_a_training_killed_twenty_times_loses_nothing_and_ends_the_same(tmp_path):
    found = run_script("storage/kill_loop.py", tmp_path, "--kills", 20, "--epochs", 30)
    assert found["kills"] >= 20
    assert found["trainings"] >= 1
    assert found["furthest"] >= 3, "kills must come in the middle of work"
    assert found["lost"] == found["different"] == 0


@pytest.mark.skipif(IS_SANITIZED, reason="faults would strike a sanitizer's own system calls too")
@pytest.mark.usefixtures("strace")
def test_faults_at_single_system_calls_lose_nothing(tmp_path):
    found = run_script("storage/syscall_faults.py", tmp_path, "--part", 0.07)
    assert found["trials"] >= 12
    assert found["troubles"] == []


@pytest.mark.usefixtures("strace")
def test_the_disk_has_everything_before_the_name_changes(tmp_path):
    code = """
import sys
from ratoon.storage import write_document
from tests.storage.cases import a_document
from tests.storage.syscall_faults import traced
for kind in ("model", "checkpoint"):
    document = a_document(kind)
    write_document(document, sys.argv[1] + "/warm")
    traced(write_document, document, sys.argv[1] + "/m", log=sys.argv[1] + "/" + kind)
"""
    done = run_python(code, tmp_path)
    assert done.returncode == 0, done.stderr
    folder = re.escape(str(tmp_path))
    temporary = rf"{folder}/\.ratoon-[0-9a-f]{{16}}\.tmp"
    create = rf'openat\(.*"{temporary}", O_RDWR\|O_CREAT\|O_EXCL\|O_NOFOLLOW\|O_CLOEXEC'
    written = [create, rf"write\(\d+<{temporary}>", rf"fsync\(\d+<{temporary}>\) += 0"]
    read_back = [rf'openat\(.*"{temporary}", O_RDONLY', rf"read\(\d+<{temporary}>"]
    named = [
        rf'rename\w*\(.*"{temporary}".*"{folder}/m"',
        rf'openat\(.*"{folder}", O_RDONLY.*O_DIRECTORY',
        rf"fsync\(\d+<{folder}>\) += 0",
    ]
    for kind, expected in (("model", written + named), ("checkpoint", written + read_back + named)):
        log = (tmp_path / kind).read_text()
        assert re.search(r"[\s\S]*?".join(expected), log), log
        assert log.count("rename") == 1
        last_write = log.rindex("write(")
        assert last_write < log.index("fsync("), "nothing is written after the data was synced"
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]
