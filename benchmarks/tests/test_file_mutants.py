"""The harness that damages files: its mutator, its bookkeeping, and ratoon's line of the table."""

import os
import signal
import sys

import numpy as np
import pytest
from common.mutants import mutant, try_mutants

from tests.processes import IS_SANITIZED

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
# From Python 3.12 on, forking with threads running warns; the children only read a file.
forks = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")

CONTENT = bytes(range(200))


def test_mutants_differ_from_the_file_and_from_each_other():
    made = {mutant(CONTENT, np.random.default_rng(k)) for k in range(300)}
    assert len(made) > 270, "a few may fall together"
    assert CONTENT not in made
    assert mutant(CONTENT, np.random.default_rng(5)) == mutant(CONTENT, np.random.default_rng(5))


@forks
def test_every_outcome_is_distinguished(tmp_path):
    def load(path):
        with open(path, "rb") as file:
            raw = file.read()
        if raw == CONTENT:
            return
        match len(raw) % 6:
            case 0:
                os.kill(os.getpid(), signal.SIGKILL)
            case 1:
                raise ValueError
            case 2:
                raise MemoryError
            case 3:
                os.kill(os.getpid(), signal.SIGALRM)

    found = try_mutants(CONTENT, load, count=60, seed=0, folder=str(tmp_path))
    ends = [len(mutant(CONTENT, np.random.default_rng([0, k]))) % 6 for k in range(60)]
    assert found == {
        "mutants": 60,
        "died": ends.count(0),
        "clean error": ends.count(1),
        "out of memory": ends.count(2),
        "hung": ends.count(3),
        "accepted": ends.count(4) + ends.count(5),
    }
    assert min(ends.count(k) for k in range(4)) > 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits address space the way Linux does")
@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer needs terabytes of addresses")
@forks
def test_mutants_of_ratoon_files_are_refused_or_harmless():
    from file_mutants import measure

    for name in ("ratoon", "ratoon sealed"):
        found = measure(name, 40, seed=1)
        assert found["died"] == found["hung"] == found["out of memory"] == 0
        assert found["clean error"] >= 20


def test_a_library_that_is_not_installed_is_left_out_with_a_reason(monkeypatch):
    import file_mutants

    missing = file_mutants.Loader("no_such_package", ".x", None, None)
    monkeypatch.setitem(file_mutants.LOADERS, "missing", missing)
    found = file_mutants.measure("missing", 10, seed=0)
    assert found == {"loader": "missing", "skipped": "no_such_package is not installed"}
