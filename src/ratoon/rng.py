"""Random numbers as pure functions of a root seed, a purpose and a position.

No code keeps a generator.  Every use of random numbers derives a seed from the root seed of the
network, a purpose, and a position (layer, epoch, step, ...), so that

* training can stop after any epoch and resume in another process with the same numbers;
* a new use of random numbers does not change the numbers of the others;
* layers and threads never share a stream.
"""

from __future__ import annotations

import zlib

import numpy as np

from ratoon.errors import InvalidParameterError

MAX_SEED = 2**63 - 1


def derive_seed(root: int, purpose: str, *position: int) -> int:
    """Return a 64-bit seed for one purpose at one position (layer, epoch, step, ...).

    A position that ends in zeros has the same seed as the position without them, so a purpose is
    used with positions of one length.  There is one intended exception: ``"dropout"`` of rank 0
    equals that of a training in one process.  Seeds must stay reproducible, so this cannot change.

    Examples
    --------
    >>> derive_seed(0, "shuffle", 3) == derive_seed(0, "shuffle", 3)
    True
    >>> derive_seed(0, "shuffle", 3) == derive_seed(0, "shuffle", 4)
    False
    >>> derive_seed(0, "dropout", 0) == derive_seed(0, "dropout")
    True
    """
    entropy = [root, zlib.crc32(purpose.encode()), *position]
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])


def derive_generator(root: int, purpose: str, *position: int) -> np.random.Generator:
    """Return a new generator for one purpose at one position.

    Examples
    --------
    >>> int(derive_generator(0, "shuffle", 1).integers(100))
    41
    """
    return np.random.default_rng(derive_seed(root, purpose, *position))


def draw_root(
    random_state: int | np.integer | np.random.Generator | np.random.RandomState | None,
) -> int:
    """Return the root seed for a ``random_state``.

    An integer is returned unchanged, so equal integers give equal networks.  From a generator a
    seed is drawn, which advances it.  None gives a random seed of the operating system.

    Examples
    --------
    >>> draw_root(7)
    7
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) & MAX_SEED
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if random_state < 0:
            raise InvalidParameterError(
                f"`random_state` must not be negative, got {random_state!r}."
            )
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(MAX_SEED))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    raise InvalidParameterError(
        f"`random_state` must be an integer, a NumPy generator or None, got {random_state!r}."
    )
