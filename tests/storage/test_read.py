"""Opening files: what may be opened, and what loading does to the process."""

import os
import time
import tracemalloc

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from ratoon.errors import FormatError
from ratoon.storage import Document, read_document, verify_file, write_document
from tests.processes import IS_SANITIZED, run_python
from tests.storage.cases import a_document, a_network


def test_the_safetensors_library_opens_our_files(tmp_path):
    path = tmp_path / "m.ratoon"
    document = a_document(n_states=2)
    write_document(document, path)
    tensors = safetensors.numpy.load_file(path)
    layer = document.networks[0].layers[0]
    np.testing.assert_array_equal(tensors["networks.0.layers.0.packed"], layer.topology.packed)
    np.testing.assert_array_equal(tensors["networks.0.layers.0.weights"], layer.weights)
    np.testing.assert_array_equal(tensors["arrays.counts"], document.arrays["counts"])
    assert tensors["arrays.flags"].dtype == bool
    with safetensors.safe_open(path, framework="numpy") as file:
        assert file.metadata()["format"] == "ratoon"


def test_a_safetensors_file_of_another_program_is_refused(tmp_path):
    safetensors.numpy.save_file({"a": np.zeros(3)}, tmp_path / "m", {"format": "pt"})
    with pytest.raises(FormatError, match="this is not a ratoon file"):
        read_document(tmp_path / "m")


@pytest.mark.parametrize("content", [b"\x80\x04\x95" + b"." * 40, b"PK\x03\x04" + b"\0" * 60])
def test_pickles_and_archives_are_refused(tmp_path, content):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(FormatError):
        read_document(tmp_path / "m")


def test_only_regular_files_are_opened_and_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    started = time.monotonic()
    n_open = len(os.listdir("/proc/self/fd"))
    for path in (tmp_path / "pipe", tmp_path, os.devnull):
        with pytest.raises(FormatError, match="not a regular file"):
            read_document(path)
        with pytest.raises(FormatError, match="not a regular file"):
            verify_file(path)
    assert len(os.listdir("/proc/self/fd")) == n_open
    assert time.monotonic() - started < 5


def test_a_missing_file_raises_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_document(tmp_path / "m")


def test_a_file_above_the_limit_is_refused_before_it_is_read(tmp_path):
    with open(tmp_path / "m", "wb") as file:
        file.truncate(2**40)  # a terabyte of nothing
    with pytest.raises(FormatError, match="more than the limit"):
        read_document(tmp_path / "m")
    write_document(a_document(), tmp_path / "n")
    with pytest.raises(FormatError, match="more than the limit of 100"):
        read_document(tmp_path / "n", max_bytes=100)


def test_replacing_a_file_does_not_change_what_was_loaded_from_it(tmp_path):
    path = tmp_path / "m"
    write_document(a_document(), path)
    found = read_document(path)
    before = found.networks[0].layers[0].weights.copy()
    with open(path, "r+b") as file:
        file.truncate(0)  # a memory map would now end the process
    np.testing.assert_array_equal(found.networks[0].layers[0].weights, before)


def test_verifying_takes_no_memory_for_the_arrays(tmp_path):
    write_document(Document({}, {"a": np.zeros(10**6)}), tmp_path / "m")
    tracemalloc.start()
    try:
        verify_file(tmp_path / "m")
        assert tracemalloc.get_traced_memory()[1] < 2e6
    finally:
        tracemalloc.stop()


def test_loading_opens_one_file_and_executes_nothing(tmp_path):
    write_document(a_document(), tmp_path / "m")
    code = """
import sys
from ratoon.storage import read_document
read_document(sys.argv[1])  # what is imported late is imported now
events = []
sys.addaudithook(lambda event, arguments: events.append((event, arguments)))
read_document(sys.argv[1])
found = list(events)
allowed = {"open", "object.__getattr__", "sys._getframe", "builtins.id"}
print(sorted({event for event, _ in found} - allowed))
print([name for event, (name, *_) in found if event == "open" and isinstance(name, str)])
"""
    found = run_python(code, tmp_path / "m")
    assert found.stdout.splitlines() == ["[]", str([str(tmp_path / "m")])], found.stderr


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer needs all addresses for itself")
def test_too_little_memory_raises_a_memory_error(tmp_path):
    # 1 million connections: 4 MB of indices, twice while they are checked, and 4 MB of weights.
    network = a_network((2000, 2000), density=0.25, n_states=0)
    write_document(Document({}, networks=[network]), tmp_path / "m")
    code = """
import resource, sys
from ratoon.storage import read_document
assert read_document(sys.argv[1]).networks[0].n_connections == 1_000_000
outcomes = []
for megabytes in (0, 1, 2, 3, 5, 8, 12, 16, 24, 200):
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + megabytes * 2**20, resource.RLIM_INFINITY))
    try:
        outcomes.append(read_document(sys.argv[1]).networks[0].n_connections)
    except MemoryError:
        outcomes.append("MemoryError")
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(outcomes[0], outcomes[-1], set(outcomes) <= {"MemoryError", 1_000_000})
"""
    found = run_python(code, tmp_path / "m")
    assert found.stdout.split() == ["MemoryError", "1000000", "True"], found.stderr
