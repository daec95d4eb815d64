"""Communicator: the operations that training needs of a transport."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import RatoonError


class RankFailedError(RatoonError):
    """Another rank failed; the message contains the number of the rank and its error."""


class Communicator(Protocol):
    """A group of ranks, which must all call the same methods in the same order."""

    @property
    def rank(self) -> int:
        """Number of this rank, from 0."""
        ...

    @property
    def size(self) -> int:
        """Number of ranks."""
        ...

    def add(self, values: Array) -> None:
        """Sum an array over all ranks in place; all get the same bits."""
        ...

    def take_first(self, values: Array) -> None:
        """Replace the content of an array by that of rank 0."""
        ...

    def share(self, values: Array, root: int) -> None:
        """Replace the content of an array by that of rank ``root``."""
        ...

    def collect(self, values: Array, root: int) -> None:
        """Sum an array over all ranks in place, on rank ``root`` only; others lose its content."""
        ...

    def from_first(self, value: Any) -> Any:
        """Return the value of rank 0, which is pickled and should be small."""
        ...

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks by rank; they are pickled and should be small."""
        ...

    def failures(self, message: str | None) -> list[str | None] | None:
        """Exchange what failed on each rank: a message or None.

        Returns the messages by rank, or None if there are none.
        """
        ...


class SingleRank:
    """A group of one rank.

    Examples
    --------
    >>> alone = SingleRank()
    >>> alone.rank, alone.size, alone.from_first("x")
    (0, 1, 'x')
    """

    rank = 0
    size = 1

    def add(self, values: Array) -> None:
        """Do nothing: the sum over one rank is its own array."""

    def take_first(self, values: Array) -> None:
        """Do nothing: this is rank 0."""

    def share(self, values: Array, root: int) -> None:
        """Do nothing: this is the only rank."""

    def collect(self, values: Array, root: int) -> None:
        """Do nothing: the sum over one rank is its own array."""

    def from_first(self, value: Any) -> Any:
        """Return the value."""
        return value

    def gather(self, value: Any) -> list[Any]:
        """Return the value in a list."""
        return [value]

    def failures(self, message: str | None) -> list[str | None] | None:
        """Return the message in a list, or None."""
        return None if message is None else [message]


@dataclass
class ThreadRanks:
    """Ranks that are threads of one process, for tests; they are not faster than one.

    Examples
    --------
    >>> def work(communicator):
    ...     values = np.array([1.0 + communicator.rank])
    ...     communicator.add(values)
    ...     return float(values[0])
    >>> ThreadRanks(2).run(work)
    [3.0, 3.0]
    """

    size: int
    timeout: float = 60.0
    _places: list[Any] = field(default_factory=list, init=False, repr=False)
    _barrier: threading.Barrier = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._barrier = threading.Barrier(self.size)
        self._places = [None] * self.size

    def run(self, work: Callable[[Communicator], Any]) -> list[Any]:
        """Call ``work`` once per rank, each in a thread; return the results by rank.

        The first error of any rank ends the others and is raised here.  An error that only reports
        the failure of another rank is raised if there is no other.
        """
        results: list[Any] = [None] * self.size
        errors: list[BaseException] = []

        def one(rank: int) -> None:
            try:
                results[rank] = work(_ThreadRank(self, rank))
            except BaseException as error:
                if not isinstance(error, threading.BrokenBarrierError):
                    errors.append(error)
                self._barrier.abort()

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise min(errors, key=lambda error: isinstance(error, RankFailedError))
        return results

    def exchange(self, rank: int, value: Any) -> list[Any]:
        """Return the values of all ranks, once each has given its own."""
        self._places[rank] = value
        self._barrier.wait(self.timeout)
        values = list(self._places)
        self._barrier.wait(self.timeout)
        return values


@dataclass(frozen=True)
class _ThreadRank:
    team: ThreadRanks
    rank: int

    @property
    def size(self) -> int:
        return self.team.size

    def add(self, values: Array) -> None:
        # In the order of ranks, so that all get the same bits.
        values[...] = np.sum(self.team.exchange(self.rank, values.copy()), axis=0)

    def take_first(self, values: Array) -> None:
        values[...] = self.team.exchange(self.rank, values.copy())[0]

    def share(self, values: Array, root: int) -> None:
        mine = values.copy() if self.rank == root else None
        values[...] = self.team.exchange(self.rank, mine)[root]

    def collect(self, values: Array, root: int) -> None:
        found = self.team.exchange(self.rank, values.copy())
        if self.rank == root:
            values[...] = np.sum(found, axis=0)

    def from_first(self, value: Any) -> Any:
        return self.team.exchange(self.rank, value)[0]

    def gather(self, value: Any) -> list[Any]:
        return self.team.exchange(self.rank, value)

    def failures(self, message: str | None) -> list[str | None] | None:
        messages = self.team.exchange(self.rank, message)
        return None if messages == [None] * self.size else messages
