import os
import shutil
import subprocess
import sys

import pytest

from ratoon.errors import FormatError, InvalidParameterError, RatoonError
from ratoon.storage import (
    CheckpointDirectory,
    CheckpointWarning,
    Document,
    LockedError,
    SaveError,
    directory,
    write_document,
)
from ratoon.storage.directory import LOCK_NAME, DirectoryLock
from tests.processes import run_python


def a_checkpoint(number):
    return Document({"number": number}, kind="checkpoint")


@pytest.fixture
def checkpoints(tmp_path):
    with CheckpointDirectory(tmp_path / "run") as directory:
        for number in (1, 2, 3):
            directory.save(number, a_checkpoint(number))
        yield directory


def damage(path):
    with open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))


def test_the_last_two_are_kept(checkpoints):
    assert checkpoints.numbers() == [2, 3]
    assert sorted(os.listdir(checkpoints.path)) == [
        "checkpoint-00000002.ratoon",
        "checkpoint-00000003.ratoon",
        "lock",
    ]


def test_the_newest_is_found_without_a_lock(checkpoints):
    number, document = CheckpointDirectory(checkpoints.path).latest()
    assert number == 3
    assert document.config == {"number": 3}


def test_directories_are_made_as_deep_as_needed(tmp_path):
    with CheckpointDirectory(tmp_path / "a" / "b" / "c") as directory:
        directory.save(1, a_checkpoint(1))
    assert directory.latest()[0] == 1


def test_a_file_in_place_of_the_directory_is_an_error(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(OSError):
        CheckpointDirectory(tmp_path / "run").acquire()


def test_an_empty_or_missing_directory_has_none(tmp_path):
    assert CheckpointDirectory(tmp_path).latest() is None
    assert CheckpointDirectory(tmp_path / "missing").latest() is None


@pytest.mark.parametrize("harm", [damage, lambda path: os.truncate(path, 0)])
def test_a_damaged_checkpoint_is_skipped_with_a_warning(checkpoints, harm):
    harm(checkpoints.path_of(3))
    with pytest.warns(
        CheckpointWarning, match=r"using the older .*02\.ratoon, because\n.*03\.rato"
    ):
        number, _ = checkpoints.latest()
    assert number == 2


def test_an_error_is_raised_if_no_checkpoint_is_usable(checkpoints):
    for number in (2, 3):
        damage(checkpoints.path_of(number))
    with pytest.raises(FormatError, match=r"(?s)no checkpoint can be used.*03\.rat.*02\.rat"):
        checkpoints.latest()


def test_a_model_with_the_name_of_a_checkpoint_is_not_used(checkpoints):
    write_document(Document({}), checkpoints.path_of(4))
    with pytest.warns(CheckpointWarning, match="this is a model, not a checkpoint"):
        assert checkpoints.latest()[0] == 3


@pytest.mark.parametrize("name", ["checkpoint-00000009.ratoon", "checkpoint-100000000.ratoon"])
def test_a_link_to_a_missing_file_is_skipped_with_a_warning(checkpoints, name):
    os.symlink("missing", os.path.join(checkpoints.path, name))
    with pytest.warns(CheckpointWarning, match="link to a missing file"):
        found = checkpoints.latest()
    assert found is not None


def test_another_spelling_of_a_number_is_not_a_checkpoint(checkpoints):
    before = checkpoints.numbers()
    with open(os.path.join(checkpoints.path, "checkpoint-000000009.ratoon"), "w") as file:
        file.write("x")
    assert checkpoints.numbers() == before
    assert checkpoints.latest() is not None


def test_checkpoints_after_the_resumed_one_are_removed(checkpoints):
    checkpoints.save(9, a_checkpoint(9))
    checkpoints.save(4, a_checkpoint(4))
    assert checkpoints.numbers() == [3, 4]


def test_the_same_number_can_be_written_again(checkpoints):
    checkpoints.save(3, Document({"number": "again"}, kind="checkpoint"))
    assert checkpoints.numbers() == [2, 3]
    assert checkpoints.latest()[1].config == {"number": "again"}


def test_writing_needs_the_lock(tmp_path):
    with pytest.raises(RuntimeError, match="lock the directory before writing"):
        CheckpointDirectory(tmp_path).save(1, a_checkpoint(1))


def test_models_and_impossible_numbers_are_refused(checkpoints):
    for number, kind in ((1, "model"), (-1, "checkpoint"), (10**12, "checkpoint")):
        with pytest.raises(InvalidParameterError):
            checkpoints.save(number, Document({}, kind=kind))


def test_temporary_files_of_killed_writers_are_removed_and_no_others(tmp_path):
    for name in (".ratoon-0123456789abcdef.tmp", "notes.txt", ".ratoon-xyz.tmp", "checkpoint-1"):
        (tmp_path / name).write_text("x")
    with CheckpointDirectory(tmp_path) as directory:
        assert directory.numbers() == []
        expected = [".ratoon-xyz.tmp", "checkpoint-1", "lock", "notes.txt"]
        assert sorted(os.listdir(tmp_path)) == expected


def test_file_times_do_not_matter(checkpoints):
    os.utime(checkpoints.path_of(2), (4e9, 4e9))
    os.utime(checkpoints.path_of(3), (0, 0))
    assert checkpoints.latest()[0] == 3


def test_a_second_holder_is_refused_until_the_first_releases_the_lock(tmp_path):
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


def test_a_second_process_is_refused_with_the_number_of_the_first(tmp_path):
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
from ratoon.storage.directory import DirectoryLock
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


def move_away(folder):
    folder.rename(folder.with_name("moved away"))


@pytest.mark.parametrize("remove", [shutil.rmtree, move_away])
def test_a_directory_made_anew_by_another_is_not_written_to(tmp_path, remove):
    folder = tmp_path / "run"
    with CheckpointDirectory(folder) as mine:
        mine.save(1, a_checkpoint(1))
        remove(folder)
        with CheckpointDirectory(folder) as other:
            other.save(7, a_checkpoint(7))
            with pytest.raises(LockedError, match="deleted or replaced while this process"):
                mine.save(2, a_checkpoint(2))
            assert other.numbers() == [7]


def test_a_directory_without_its_lock_file_is_not_written_to(tmp_path):
    with CheckpointDirectory(tmp_path) as mine:
        os.unlink(tmp_path / LOCK_NAME)
        with pytest.raises(LockedError, match="deleted or replaced"):
            mine.save(1, a_checkpoint(1))
        assert mine.numbers() == []


def test_a_directory_replaced_during_a_write_keeps_the_files_of_the_other(tmp_path, monkeypatch):
    folder, other = tmp_path / "run", CheckpointDirectory(tmp_path / "run")
    write = directory.write_document

    def replaced_first(document, path):
        monkeypatch.setattr(directory, "write_document", write)
        shutil.rmtree(folder)
        other.acquire()
        other.save(0, a_checkpoint(0))
        write(document, path)

    with CheckpointDirectory(folder) as mine:
        mine.save(1, a_checkpoint(1))
        monkeypatch.setattr(directory, "write_document", replaced_first)
        with pytest.raises(LockedError, match="deleted or replaced"):
            mine.save(2, a_checkpoint(2))
    assert 0 in other.numbers()
    other.release()


def test_a_deleted_directory_is_an_error_of_the_system(tmp_path):
    with CheckpointDirectory(tmp_path / "run") as mine:
        shutil.rmtree(tmp_path / "run")
        with pytest.raises(SaveError, match="No such file"):
            mine.save(1, a_checkpoint(1))
