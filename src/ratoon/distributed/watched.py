"""WatchedRanks: a failure of one rank ends the operation that the other ranks wait in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from ratoon.arrays import Array
from ratoon.distributed.communicator import Communicator, RankFailedError

T = TypeVar("T")


class WatchedRanks:
    """A communicator whose operations raise `RankFailedError` once a rank has failed.

    Before each operation the ranks exchange whether one has failed.  A rank that fails takes part
    in the next exchange with `fail`, and in nothing else.  In a sequence of sums, which
    `begin_sums` starts, the last number of each sum is that exchange, so it costs no time.

    Parameters
    ----------
    communicator : Communicator
        The group of ranks.

    Examples
    --------
    >>> from ratoon.distributed import ThreadRanks
    >>> def work(communicator):
    ...     ranks = WatchedRanks(communicator)
    ...     try:
    ...         if ranks.rank == 1:
    ...             raise ValueError("no data")
    ...         return ranks.gather(3)
    ...     except Exception as error:
    ...         ranks.fail(error)
    ...         return str(error)
    >>> ThreadRanks(2).run(work)
    ['rank 1 of 2 failed: ValueError: no data', 'no data']
    """

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator
        self.reported: BaseException | None = None
        """The error of this rank that the other ranks know."""
        self._is_busy = False
        self._is_torn: str | None = None
        self._next_sum: Array | None = None

    @property
    def rank(self) -> int:
        """Number of this rank, from 0."""
        return self.communicator.rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self.communicator.size

    def add(self, values: Array) -> None:
        """Sum an array over all ranks in place."""
        self._run(lambda: self.communicator.add(values))

    def begin_sums(self, values: Array) -> None:
        """Begin a sequence of `add_next` of this array; its last number is used as a flag."""
        self._run(lambda: None)
        values[-1] = 0
        self._next_sum = values

    def add_next(self, values: Array, *, is_last: bool) -> None:
        """Sum the array of `begin_sums` over all ranks in place."""
        self._is_busy = True
        self.communicator.add(values)
        if values[-1] != 0:
            self._next_sum = None
            self._run(lambda: None)  # raises
        self._next_sum = None if is_last else values
        self._is_busy = False

    def take_first(self, values: Array) -> None:
        """Replace the content of an array by that of rank 0."""
        self._run(lambda: self.communicator.take_first(values))

    def from_first(self, value: Any) -> Any:
        """Return the value of rank 0."""
        return self._run(lambda: self.communicator.from_first(value))

    def share(self, values: Array, root: int) -> None:
        """Replace the content of an array by that of rank ``root``; see `together`."""
        self.communicator.share(values, root)

    def collect(self, values: Array, root: int) -> None:
        """Sum an array over all ranks in place, on rank ``root``; see `together`."""
        self.communicator.collect(values, root)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Raise if a rank has failed; then run a block of `share` and `collect` without checks.

        An error of one rank inside the block ends the others with `finish`, because they may wait
        in any of its operations.
        """
        self._run(lambda: None)
        self._is_busy = True
        yield
        self._is_busy = False

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks."""
        return self._run(lambda: self.communicator.gather(value))

    def failures(self, message: str | None) -> list[str | None] | None:
        """Exchange what failed on each rank."""
        return self.communicator.failures(message)

    def fail(self, error: BaseException) -> None:
        """Report an error on this rank to the others; the caller raises it afterwards."""
        if isinstance(error, RankFailedError):
            return  # the others know
        message = f"{type(error).__name__}: {error}".removesuffix(": ")
        if self._is_busy:
            # For instance Ctrl-C within an operation: the others may or may not wait in it.
            self._is_torn = message
            return
        with suppress(Exception):  # the error itself is the one to raise
            if self._next_sum is not None:
                self._next_sum[:] = 0
                self._next_sum[-1] = 1
                self.communicator.add(self._next_sum)
            self.communicator.failures(message)
            self.reported = error

    def finish(self) -> None:
        """End all ranks if this one was interrupted within an operation."""
        self._is_busy, self._next_sum = False, None
        torn, self._is_torn = self._is_torn, None
        abort = getattr(self.communicator, "abort", None)
        if torn is not None and self.size > 1 and abort is not None:
            abort(torn)

    def _run(self, operation: Callable[[], T]) -> T:
        self._is_busy = True
        messages = self.communicator.failures(None)
        if messages is not None:
            self._is_busy = False
            raise RankFailedError(_of_failures(messages))
        result = operation()
        self._is_busy = False
        return result


def _of_failures(messages: list[str | None]) -> str:
    ranks_of: dict[str, list[int]] = {}
    for rank, message in enumerate(messages):
        if message is not None:
            ranks_of.setdefault(message, []).append(rank)
    return "\n".join(
        f"{named(ranks)} of {len(messages)} failed: {message}"
        for message, ranks in ranks_of.items()
    )


def named(ranks: list[int]) -> str:
    """Return the names of some ranks.

    Examples
    --------
    >>> named([1]), named([0, 2, 3])
    ('rank 1', 'ranks 0, 2, 3')
    """
    numbers = ", ".join(map(str, ranks[:10])) + (", ..." if len(ranks) > 10 else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {numbers}"
