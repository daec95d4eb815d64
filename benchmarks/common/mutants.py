"""Damage a file in small ways, load and use it in a child that may die, and count what happens."""

from __future__ import annotations

import os
import resource
import signal
import traceback
from collections.abc import Callable

import numpy as np

Load = Callable[[str], None]
Repair = Callable[[bytes], bytes]

LIMIT_BYTES = 6 * 2**30
"""Address space of a child: a mutant that claims a terabyte is a MemoryError, not our problem."""
LONGEST_S = 2
"""Seconds of processor time after which a mutant counts as hanging; asleep, thirty times that."""
NUMBERS = [0, 1, 127, 128, 255, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1]
TEXTS = [b"-1", b"0", b"99999999", b"4294967296", b"nan", b"inf", b"1e999", b"", b'"', b"}", b"]"]
OUTCOMES = {b"a": "accepted", b"e": "clean error", b"m": "out of memory"}


def mutant(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one to three places: a bit, a byte, a number, digits; cut or repeat a few bytes.

    >>> mutant(b"weights: 1 2 3", np.random.default_rng(0)) != b"weights: 1 2 3"
    True
    """
    changed = bytearray(content)
    while changed == content:
        _change(changed, rng)
    return bytes(changed)


def _change(changed: bytearray, rng: np.random.Generator) -> None:
    for _ in range(int(rng.integers(1, 4))):
        if not changed:
            break
        place = int(rng.integers(len(changed)))
        length = int(rng.integers(1, 9))
        match int(rng.integers(7)):
            case 0:
                changed[place] ^= 1 << int(rng.integers(8))
            case 1:
                changed[place] = int(rng.integers(256))
            case 2:
                width = int(rng.choice([2, 4, 8]))
                number = NUMBERS[int(rng.integers(len(NUMBERS)))] % 2 ** (8 * width)
                changed[place : place + width] = number.to_bytes(width, "little")
            case 3:
                changed[place : place + length] = TEXTS[int(rng.integers(len(TEXTS)))]
            case 4:
                del changed[place : place + length]
            case 5:
                changed[place:place] = changed[place : place + length]
            case 6:
                # A digit in a text, a small number elsewhere: the most plausible wrong value.
                changed[place] = int(rng.choice(list(b"0123456789")))


def try_mutants(
    content: bytes, load: Load, *, count: int, seed: int, folder: str, repair: Repair | None = None
) -> dict[str, int]:
    """Load ``count`` mutants of a file, each once; return how many came to which end.

    A child continues until a mutant ends it; then another child continues.
    """
    found = {"mutants": 0, "died": 0, "hung": 0, "clean error": 0, "out of memory": 0}
    found["accepted"] = 0
    while found["mutants"] < count:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _work(content, load, found["mutants"], count, seed, folder, repair, writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as file:
            outcomes = file.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for letter, name in OUTCOMES.items():
            found[name] += outcomes.count(letter)
        found["mutants"] += len(outcomes)
        if code > 0:
            raise RuntimeError(f"a child could not do its work: it ended with {code}")
        if code < 0:
            found["mutants"] += 1
            found["hung" if -code in (signal.SIGALRM, signal.SIGPROF) else "died"] += 1
    return found


def _work(
    content: bytes,
    load: Load,
    first: int,
    count: int,
    seed: int,
    folder: str,
    repair: Repair | None,
    out: int,
) -> None:
    """Be the child: try mutants until one ends the process."""
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)
    stderr = os.dup(2)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    path = os.path.join(folder, "mutant")
    code = 0
    try:
        with open(path, "wb") as file:
            file.write(content)
        load(path)  # imports what it needs, outside of any limit
        for number in range(first, count):
            changed = mutant(content, np.random.default_rng([seed, number]))
            with open(path, "wb") as file:
                file.write(changed if repair is None else repair(changed))
            signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
            signal.alarm(30 * LONGEST_S)
            try:
                load(path)
                outcome = b"a"
            except MemoryError:
                outcome = b"m"
            except Exception:
                outcome = b"e"
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
            os.write(out, outcome)
    except BaseException:
        code = 1
        os.write(stderr, traceback.format_exc().encode())
    os._exit(code)
