"""What all adversarial tests share: values to try, and what an error has to look like."""

import contextlib
import math
import random
import signal
import time
import unicodedata
import warnings

import numpy as np

from ratoon.errors import RatoonError

LONGEST_MESSAGE = 4_000
HUGE = (10**12, 10**15 + 1, 2**31, 2**63, -(2**63), 10**400)
NUMBERS = (-1, 0, 1, 2, 0.5, 1.5, -0.0, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf)
OBJECTS = (
    None,
    *("", "x", "auto", "none", "a\0b", "\x1b[31m", "\ud800", "x" * 1_000, b"x"),
    *(True, False, 1j, (), [], {}, set(), range(3), int, object()),
    *((0,), (-1,), (1.5,), ("a",), (math.nan,), (10**12,), (10**400,), [[1]], {0: -1}, {"x": 1}),
    *(np.float32("nan"), np.int64(3), np.bool_(True), np.array(3), np.array([1.0, 2.0])),
)
VALUES = (*NUMBERS, *HUGE, *OBJECTS)


DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def has_controls(text):
    """Whether a text has characters that a terminal would act upon."""
    return any(
        unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in DIRECTIONS
        for character in text
        if character != "\n"
    )


def check_message(text):
    """Fail unless the message of an error can be read."""
    assert text.strip(), "an error without a message"
    assert len(text) < LONGEST_MESSAGE, text[:300]
    assert not has_controls(text), repr(text)


@contextlib.contextmanager
def only_ratoon_errors(seconds=60):
    """Suppress errors of ratoon that can be read; fail on other exceptions and on hangs."""

    def stop(*_):
        raise AssertionError(f"still running after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    except ValueError as error:  # most errors of ratoon, and those of scikit-learn about X
        text = str(error)
        if not isinstance(error, RatoonError) and not text.startswith("Input X contains"):
            raise
        check_message(text)
    except RatoonError as error:
        check_message(str(error))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def repeat(attack, minutes, say):
    """Call ``attack(seed)`` with new seeds for as long as allowed, at least once."""
    stop, n = time.monotonic() + 60 * minutes, 0
    first = random.SystemRandom().randrange(2**31)
    while n == 0 or time.monotonic() < stop:
        attack(first + n)
        n += 1
    say(f"{n} batches, seeds from {first}")
