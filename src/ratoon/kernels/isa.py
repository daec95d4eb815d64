"""Which instruction set the kernels run on.

The best one the processor has is picked at first use.  Set the environment variable ``RATOON_ISA``
to ``baseline``, ``avx2`` or ``avx512`` to have another; results are the same to the bit only
within one instruction set.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ratoon import _native
from ratoon.errors import InvalidParameterError


def current_isa() -> str:
    """Return the name of the instruction set in use.

    Examples
    --------
    >>> current_isa() in available_isas()
    True
    """
    return _native.isa_in_use()


def available_isas() -> list[str]:
    """Return the instruction sets this processor can run, best first."""
    return _native.isas_available().split(",")


@contextmanager
def use_isa(name: str) -> Iterator[None]:
    """Run a block on another instruction set; not while other threads are training.

    Examples
    --------
    >>> with use_isa("baseline"):
    ...     current_isa()
    'baseline'
    """
    before = current_isa()
    try:
        _native.use_isa(name)
    except RuntimeError as error:
        raise InvalidParameterError(str(error)) from None
    try:
        yield
    finally:
        _native.use_isa(before)
