"""Writes that fail, at any step, leave the old file and nothing else."""

import errno
import os
import resource
import stat
import tempfile
import time

import pytest

from ratoon.errors import RatoonError
from ratoon.storage import Document, SaveError, read_document, write_document
from ratoon.storage.atomic import TEMPORARY, replace_file, write_all
from tests.processes import run_python
from tests.storage.cases import a_document

CALLS = ("open", "write", "lseek", "fsync", "replace", "fchmod", "close")


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.ratoon"
    write_document(Document({"version": "old"}), path)
    return path


def assert_only_the_old_file_is_there(path):
    assert os.listdir(path.parent) == [path.name]
    assert read_document(path).config == {"version": "old"}


class Fault:
    """Let the n-th of the calls that matter fail."""

    def __init__(self, monkeypatch, when, error):
        self.log = []
        for name in CALLS:
            monkeypatch.setattr(os, name, self.wrapped(name, getattr(os, name), when, error))

    def wrapped(self, name, function, when, error):
        def call(*arguments, **options):
            self.log.append(name)
            if len(self.log) == when:
                if name == "close":
                    function(*arguments)
                raise error
            return function(*arguments, **options)

        return call


def what_is_raised(document, path):
    try:
        write_document(document, path)
    except (OSError, KeyboardInterrupt) as error:
        return error
    return None


@pytest.mark.parametrize("kind", ["model", "checkpoint"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT, "interrupt"])
def test_a_fault_at_any_call_leaves_one_complete_file(saved, monkeypatch, kind, error):
    failure = KeyboardInterrupt() if error == "interrupt" else OSError(error, os.strerror(error))
    # Large enough for several writes: arrays of 80 kB.
    networks = a_document(widths=(200, 200), density=0.5).networks
    document = Document({"version": "new"}, networks=networks, kind=kind)
    old = saved.read_bytes()
    for when in range(1, 1000):
        saved.write_bytes(old)
        with monkeypatch.context() as patch:
            fault = Fault(patch, when, failure)
            raised = what_is_raised(document, saved)
        if raised is None:
            break  # the fault was never reached: all calls have been tried
        if error == "interrupt":
            assert raised is failure
        else:
            assert isinstance(raised, SaveError)
            assert raised.errno == error
            assert os.strerror(error) in str(raised)
            assert "model.ratoon" in str(raised)
        assert os.listdir(saved.parent) == [saved.name], fault.log
        found = read_document(saved).config["version"]
        renamed = "replace" in fault.log[:-1]
        assert found == ("new" if renamed else "old"), fault.log
    assert len(fault.log) == when - 1 > 12
    assert read_document(saved).config == {"version": "new"}


def test_files_are_brought_to_disk_before_they_get_their_name(saved, monkeypatch):
    fault = Fault(monkeypatch, 0, None)
    write_document(Document({}), saved)
    last = fault.log[-7:]
    assert last == ["write", "fsync", "close", "replace", "open", "fsync", "close"]


def test_a_full_disk_keeps_the_old_file_and_raises_a_clear_error(saved):
    # The limit on the size of files does what a full disk does, at any byte.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with pytest.raises(
            SaveError, match=r"not saved: .* A file that existed before is unchanged"
        ):
            write_document(a_document(), saved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_only_the_old_file_is_there(saved)


def test_short_writes_are_continued(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:100]))
    write_document(a_document(), tmp_path / "m")
    assert read_document(tmp_path / "m").config == a_document().config


def test_errors_are_both_of_ratoon_and_of_the_system(tmp_path):
    with pytest.raises(RatoonError) as found:
        write_document(Document({}), tmp_path / "nowhere" / "m")
    assert isinstance(found.value, OSError)
    assert found.value.errno == errno.ENOENT


# ------------------------------------------------------------------------------ strange places


def test_a_symbolic_link_still_points_to_the_file_after_a_save(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "here").mkdir()
    target, link = tmp_path / "disk" / "m", tmp_path / "here" / "m"
    link.symlink_to(target)
    for version in (1, 2):  # the first time it points nowhere
        write_document(Document({"version": version}), link)
        assert link.is_symlink()
        assert read_document(link).config == {"version": version}
    assert os.listdir(tmp_path / "disk") == ["m"]
    assert os.listdir(tmp_path / "here") == ["m"]


def test_a_cycle_of_links_is_refused(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(SaveError):
        write_document(Document({}), tmp_path / "a")
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_directory_is_refused(tmp_path):
    (tmp_path / "m").mkdir()
    with pytest.raises(SaveError, match="it is a directory"):
        write_document(Document({}), tmp_path / "m")


def test_a_pipe_and_a_device_are_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    started = time.monotonic()
    with pytest.raises(SaveError, match="not a regular file"):
        write_document(Document({}), tmp_path / "pipe")
    with pytest.raises(SaveError, match="not a regular file"):
        write_document(Document({}), os.devnull)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert time.monotonic() - started < 5


def test_a_read_only_directory_is_refused():
    # Root may write anywhere, so another user tries where the test runs as root.
    code = """
import os, sys
from ratoon.storage import Document, SaveError, write_document
path = os.path.join(sys.argv[1], "m")
write_document(Document({"version": "old"}), path)
os.chmod(sys.argv[1], 0o555)
if os.getuid() == 0:
    os.setuid(65534)
try:
    write_document(Document({}), path)
except SaveError as error:
    print(error)
"""
    with tempfile.TemporaryDirectory() as folder:
        found = run_python(code, folder)
        assert "not saved: Permission denied" in found.stdout, found.stderr
        assert os.listdir(folder) == ["m"]


def test_names_of_any_bytes_and_length_work(tmp_path):
    for name in ("x" * 255, os.fsdecode(b"model\xe9.ratoon"), "a\nb", " ", "-rf"):
        write_document(Document({"name": 1}), tmp_path / name)
        assert read_document(tmp_path / name).config == {"name": 1}
    with pytest.raises(SaveError) as found:
        write_document(Document({}), tmp_path / ("x" * 256))
    assert found.value.errno == errno.ENAMETOOLONG


def test_a_message_about_a_name_that_is_not_text_can_be_printed(tmp_path):
    with pytest.raises(SaveError) as found:
        write_document(Document({}), tmp_path / os.fsdecode(b"nowhere\xe9") / "m")
    str(found.value).encode("utf-8")


def test_a_private_model_stays_private(saved):
    saved.chmod(0o600)
    write_document(Document({"version": "new"}), saved)
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600


def test_a_new_file_gets_the_usual_permissions(tmp_path):
    before = os.umask(0o027)
    try:
        write_document(Document({}), tmp_path / "m")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o640


def test_a_failing_check_keeps_the_old_file(saved):
    def refuse(temporary):
        assert TEMPORARY.fullmatch(os.path.basename(temporary))
        raise ValueError("read back wrong")

    with pytest.raises(ValueError, match="read back wrong"):
        replace_file(saved, lambda descriptor: write_all(descriptor, b"new"), check=refuse)
    assert_only_the_old_file_is_there(saved)


def test_a_checkpoint_damaged_while_written_is_not_renamed_into_place(saved, monkeypatch):
    write = os.write

    def careless(descriptor, data):
        # One bit is lost; the system reports success.
        damaged = bytearray(data)
        if len(damaged) > 2000:
            damaged[-3] ^= 1
        return write(descriptor, damaged)

    document = a_document("checkpoint")
    monkeypatch.setattr(os, "write", careless)
    with pytest.raises(ValueError, match="the file is damaged"):
        write_document(document, saved)
    monkeypatch.undo()
    assert_only_the_old_file_is_there(saved)
