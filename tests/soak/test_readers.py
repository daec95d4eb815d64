"""Readers of data files on mutants, as many of every format as time allows."""

import random
import time

import pytest

from tests.datasets.test_mutants import GOOD, read_mutants

pytestmark = pytest.mark.soak

AT_ONCE = 200
"""Mutants of one format before the next has its turn."""
ENOUGH = 100_000


def test_a_hundred_thousand_mutants_of_every_format_are_read_or_refused(tmp_path, minutes, say):
    stop, each = time.monotonic() + 60 * minutes, 0
    first = random.SystemRandom().randrange(2**31)
    while each == 0 or (each < ENOUGH and time.monotonic() < stop):
        for name in GOOD:
            read_mutants(tmp_path, name, AT_ONCE, seed=first + each)
        each += AT_ONCE
    say(f"{each} of each of {len(GOOD)} formats, seeds from {first}")
