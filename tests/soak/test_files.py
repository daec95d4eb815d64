"""Files, in the long run: kills, faults, damage and mutants, as many as time allows."""

import random
import time

import pytest

from tests.processes import run_script
from tests.storage.cases import a_document, to_bytes
from tests.storage.syscall_faults import can_trace
from tests.storage.test_damage import is_refused

pytestmark = pytest.mark.soak

ENOUGH = 10**9


@pytest.mark.parametrize("threads", [1, 2])
def test_random_kills_lose_nothing(tmp_path, minutes, say, threads):
    options = ["--kills", ENOUGH, "--minutes", minutes, "--threads", threads]
    found = run_script("storage/kill_loop.py", tmp_path, *options, "--seed", threads, timeout=None)
    say(found)
    assert found["lost"] == found["different"] == 0


def test_faults_at_every_system_call_lose_nothing(tmp_path, minutes, say):
    if reason := can_trace():
        pytest.skip(reason)
    found = run_script("storage/syscall_faults.py", tmp_path, "--minutes", minutes, timeout=None)
    say(found)
    assert found["troubles"] == []


def test_sealed_mutants_are_refused_or_harmless(minutes, say):
    seed = random.SystemRandom().randrange(2**31)
    options = ["--mutants", ENOUGH, "--minutes", minutes, "--seed", seed]
    found = run_script("storage/mutant_loop.py", *options, timeout=None)
    say(found)
    assert found["troubles"] == []
    assert found["slow"] == 0


def test_every_flipped_bit_of_a_larger_file_is_refused(minutes, say):
    raw = bytearray(to_bytes(a_document(n_states=2)))
    assert 3000 < len(raw) <= 8192
    flips = [(place, bit) for place in range(len(raw)) for bit in range(8)]
    random.Random(0).shuffle(flips)
    stop, tried = time.monotonic() + 60 * minutes, 0
    for place, bit in flips:
        raw[place] ^= 1 << bit
        assert is_refused(bytes(raw)), (place, bit)
        raw[place] ^= 1 << bit
        tried += 1
        if time.monotonic() > stop:
            break
    say(f"{tried} of {len(flips)}")
