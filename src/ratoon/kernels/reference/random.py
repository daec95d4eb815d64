"""Counter-based and distinct random numbers: references for `random.hpp` and `draw.cpp`.

Written with Python's integers, which do not overflow.
"""

from __future__ import annotations

from ratoon.errors import InvalidInputError

BITS_64 = (1 << 64) - 1


def random_bits(seed: int, counter: int) -> int:
    """Return number ``counter`` of the stream ``seed``: 64 random bits, by SplitMix64.

    References
    ----------
    Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.

    Examples
    --------
    >>> [random_bits(1234567, counter) for counter in range(2)]
    [6457827717110365317, 3203168211198807973]
    """
    z = (seed + (counter + 1) * 0x9E3779B97F4A7C15) & BITS_64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & BITS_64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & BITS_64
    return z ^ (z >> 31)


def random_below(seed: int, counter: int, n: int) -> int:
    """Return a whole number in [0, n), uniform but for a bias below n / 2^64.

    Examples
    --------
    >>> [random_below(0, counter, 6) for counter in range(5)]
    [5, 2, 0, 5, 0]
    """
    return (random_bits(seed, counter) * n) >> 64


def draw_distinct(total: int, count: int, seed: int) -> list[int]:
    """Return ``count`` distinct numbers below ``total``, ascending, every set equally likely.

    Numbers are drawn and repetitions dropped until there are enough.  If more than half of all
    numbers are requested, those to leave out are drawn instead, so that few are repeated.

    Examples
    --------
    >>> draw_distinct(10, 3, seed=0)
    [0, 4, 8]
    >>> draw_distinct(10, 9, seed=0)
    [0, 1, 2, 3, 4, 5, 6, 7, 9]
    """
    if not 0 <= count <= total:
        raise InvalidInputError(f"cannot draw {count} distinct numbers below {total}.")
    if count > total // 2:
        left_out = set(draw_distinct(total, total - count, seed))
        return [number for number in range(total) if number not in left_out]
    drawn: set[int] = set()
    counter = 0
    while len(drawn) < count:
        for _ in range(count - len(drawn)):
            drawn.add(random_below(seed, counter, total))
            counter += 1
    return sorted(drawn)
