"""MPI as the transport, through mpi4py (``pip install ratoon[mpi]``)."""

from __future__ import annotations

import atexit
import os
import sys
import time
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ratoon.distributed.communicator import RankFailedError
from ratoon.errors import InvalidParameterError, RatoonError

POLL_SECONDS = 0.005
LEFT = "the process ended before the training"


class MPICommunicator:
    """The processes that ``mpiexec`` has started.

    ``mpiexec -n 2 ratoon train data.npz --distributed mpi`` trains on two of them.

    Create it on every rank, early in a script: from then on a rank that ends, for instance because
    it could not read its data, ends the training of the others with a `RankFailedError`.
    """

    def __init__(self, communicator: Any = None) -> None:
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError):  # the latter where no MPI library can be loaded
            raise RatoonError(
                "training over MPI needs mpi4py and an MPI library.\n"
                "  Try: pip install 'ratoon[mpi]', which installs both."
            ) from None
        self._mpi = MPI
        self._world = MPI.COMM_WORLD if communicator is None else communicator
        self._members = _Members.of(MPI, self._world)

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""
        return int(self._world.Get_rank())

    @property
    def size(self) -> int:
        """Number of processes."""
        return int(self._world.Get_size())

    def add(self, values: NDArray[Any]) -> None:
        """Sum an array over all processes in place."""
        self._world.Allreduce(self._mpi.IN_PLACE, values, op=self._mpi.SUM)

    def take_first(self, values: NDArray[Any]) -> None:
        """Replace the content of an array by that of rank 0."""
        self._world.Bcast(values, root=0)

    def share(self, values: NDArray[Any], root: int) -> None:
        """Replace the content of an array by that of rank ``root``."""
        self._world.Bcast(values, root=root)

    def collect(self, values: NDArray[Any], root: int) -> None:
        """Sum an array over all processes in place, on rank ``root`` only."""
        mine = self._mpi.IN_PLACE if self.rank == root else values
        self._world.Reduce(mine, values if self.rank == root else None, self._mpi.SUM, root)

    def groups(self, n_groups: int) -> tuple[MPICommunicator, MPICommunicator]:
        """Divide the processes into groups of neighbours.

        Returns the communicator of the group of this process, and that of the processes with the
        same place in every group.

        Raises
        ------
        InvalidParameterError
            If the number of processes is not a multiple of ``n_groups``.
        """
        if n_groups < 1 or self.size % n_groups:
            raise InvalidParameterError(
                f"{self.size} ranks cannot be divided into {n_groups} groups of equal size.\n"
                f"  Start a number of ranks that is a multiple of {max(n_groups, 1)}."
            )
        per_group = self.size // n_groups
        within = self._world.Split(self.rank // per_group, self.rank)
        across = self._world.Split(self.rank % per_group, self.rank)
        return MPICommunicator(within), MPICommunicator(across)

    def from_first(self, value: Any) -> Any:
        """Return the value of rank 0."""
        return self._world.bcast(value, root=0)

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks by rank."""
        return list(self._world.allgather(value))

    def failures(self, message: str | None) -> list[str | None] | None:
        """Exchange what failed on each rank: a message or None."""
        return self._members.exchange(message)

    def abort(self, message: str) -> None:
        """End all processes; otherwise they would wait for this one forever."""
        print(f"ratoon: rank {self.rank} of {self.size}: {message}", file=sys.stderr, flush=True)
        self._world.Abort(1)


class _Members:
    """Exchanges failures between the processes of a communicator, and the end of a process.

    There is one for each MPI communicator of a process.
    """

    _existing: ClassVar[dict[int, _Members]] = {}

    def __init__(self, mpi: Any, world: Any) -> None:
        self._mpi = mpi
        self._world = world
        self._process = os.getpid()
        self._ended: str | None = None
        if world.Get_size() > 1:
            atexit.register(self.leave)

    @classmethod
    def of(cls, mpi: Any, world: Any) -> _Members:
        """Return the members of an MPI communicator."""
        handle = world.py2f()
        if handle not in cls._existing:
            cls._existing[handle] = cls(mpi, world)
        return cls._existing[handle]

    def exchange(self, message: str | None, *, leaves: bool = False) -> list[str | None] | None:
        """Return the messages of all processes, or None if there are none."""
        if self._ended is not None:
            raise RankFailedError(self._ended)
        n_failed = np.array([leaves or message is not None], dtype=np.int32)
        # Not blocking, because a process that leaves waits without using a core.
        request = self._world.Iallreduce(self._mpi.IN_PLACE, n_failed, op=self._mpi.SUM)
        if leaves:
            while not request.Test():
                time.sleep(POLL_SECONDS)
        else:
            request.Wait()
        if n_failed[0] == 0:
            return None
        found = self._world.allgather((message, leaves))
        gone = [rank for rank, (_, has_left) in enumerate(found) if has_left]
        if gone:
            size = len(found)
            self._ended = f"rank {gone[0]} of {size} has ended; no rank can train together now."
        return [message for message, _ in found]

    def leave(self) -> None:
        """Report at the end of this process that it takes part in nothing else."""
        over = os.getpid() != self._process or self._mpi.Is_finalized()
        if over or self._ended is not None or self._world == self._mpi.COMM_NULL:
            return
        uncaught = getattr(sys, "last_value", None)
        message = LEFT if uncaught is None else f"{type(uncaught).__name__}: {uncaught}"
        self.exchange(message, leaves=True)
