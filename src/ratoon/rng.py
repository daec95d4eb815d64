"""Random numbers as pure functions of a seed and a purpose.

Nothing in the house keeps a generator running.  Whoever needs random numbers derives a seed from
the network's one root seed, a purpose and the place in time, so that

* training can stop after any epoch and go on in another process with the same numbers;
* adding a new consumer of randomness does not shift the numbers of the others;
* layers and threads never share a stream.
"""

from __future__ import annotations

import zlib

import numpy as np

from ratoon.errors import InvalidParameterError

MAX_SEED = 2**63 - 1


def derive_seed(root: int, purpose: str, *place: int) -> int:
    """Return a 64-bit seed for one purpose at one place (layer, epoch, step, ...).

    A place that ends in zeros has the seed of the place without them, so one purpose is used with
    places of one length.  The exception is meant: ``"dropout"`` of rank 0 is that of a training
    in one process.  Seeds are part of what is reproducible, hence this stays as it is.

    Examples
    --------
    >>> derive_seed(0, "shuffle", 3) == derive_seed(0, "shuffle", 3)
    True
    >>> derive_seed(0, "shuffle", 3) == derive_seed(0, "shuffle", 4)
    False
    >>> derive_seed(0, "dropout", 0) == derive_seed(0, "dropout")
    True
    """
    entropy = [root, zlib.crc32(purpose.encode()), *place]
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])


def derive_generator(root: int, purpose: str, *place: int) -> np.random.Generator:
    """Return a fresh generator for one purpose at one place.

    Examples
    --------
    >>> int(derive_generator(0, "shuffle", 1).integers(100))
    41
    """
    return np.random.default_rng(derive_seed(root, purpose, *place))


def draw_root(
    random_state: int | np.integer | np.random.Generator | np.random.RandomState | None,
) -> int:
    """Turn what users pass as ``random_state`` into a root seed.

    An integer is taken as it is, so equal integers give equal networks; a generator is drawn from
    and so moves on; None asks the operating system.

    Examples
    --------
    >>> draw_root(7)
    7
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] & MAX_SEED)
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
