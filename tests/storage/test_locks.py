import os
import subprocess
import sys

import pytest

from ratoon.errors import RatoonError
from ratoon.storage import LockedError
from ratoon.storage.locks import LOCK_NAME, DirectoryLock
from tests.processes import run_python


def test_a_second_holder_is_refused_until_the_first_lets_go(tmp_path):
    mine, other = DirectoryLock(tmp_path), DirectoryLock(tmp_path)
    mine.acquire()
    mine.acquire()  # once more does no harm
    with pytest.raises(LockedError, match="in use by this process"):
        other.acquire()
    assert not other.held
    mine.release()
    other.acquire()
    assert other.held
    other.release()


def test_a_second_process_is_refused_and_told_who_has_it(tmp_path):
    lock = DirectoryLock(tmp_path)
    lock.acquire()
    code = """
import sys
from ratoon.storage import CheckpointDirectory, LockedError
try:
    CheckpointDirectory(sys.argv[1]).acquire()
except LockedError as error:
    print(error)
"""
    found = run_python(code, tmp_path)
    lock.release()
    expected = f"in use by process {os.getpid()}; wait for it to end, or choose another directory"
    assert expected in found.stdout, found.stderr


def test_the_system_frees_the_lock_of_a_killed_process(tmp_path):
    code = f"""
import fcntl, os, sys, time
descriptor = os.open({str(tmp_path / LOCK_NAME)!r}, os.O_RDWR | os.O_CREAT)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"locked\n"
        lock = DirectoryLock(tmp_path)
        with pytest.raises(LockedError, match="in use by another process"):
            lock.acquire()
        holder.kill()
        holder.wait()
        lock.acquire()
        lock.release()


def test_a_child_does_not_keep_its_parents_lock(tmp_path):
    # The child outlives the parent; were it to hold the lock, the last line would fail.
    code = """
import os, sys, time
from ratoon.storage.locks import DirectoryLock
lock = DirectoryLock(sys.argv[1])
lock.acquire()
if os.fork() == 0:
    os.close(1), os.close(2)
    time.sleep(20 if not lock.held else 0)
    os._exit(0)
"""
    assert run_python(code, tmp_path).returncode == 0
    lock = DirectoryLock(tmp_path)
    lock.acquire()
    lock.release()


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / LOCK_NAME).symlink_to(victim)
    with pytest.raises(OSError):
        DirectoryLock(tmp_path).acquire()
    assert victim.read_text() == "precious"


def test_the_error_can_be_caught_as_ours(tmp_path):
    with_lock = DirectoryLock(tmp_path)
    with_lock.acquire()
    with pytest.raises(RatoonError):
        DirectoryLock(tmp_path).acquire()
    with_lock.release()
