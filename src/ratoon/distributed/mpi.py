"""MPI as the transport, through mpi4py (``pip install ratoon[mpi]``)."""

from __future__ import annotations

import sys
from typing import Any

from numpy.typing import NDArray

from ratoon.errors import RatoonError


class MPICommunicator:
    """All processes that ``mpiexec`` has started.

    ``mpiexec -n 2 ratoon train data.npz --distributed mpi`` trains on two of them.
    """

    def __init__(self, communicator: Any = None) -> None:
        try:
            from mpi4py import MPI
        except ImportError:
            raise RatoonError(
                "training over MPI needs mpi4py and an MPI library.\n"
                "  Try: pip install 'ratoon[mpi]', which brings both."
            ) from None
        self._mpi = MPI
        self._world = MPI.COMM_WORLD if communicator is None else communicator

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""
        return int(self._world.Get_rank())

    @property
    def size(self) -> int:
        """How many processes there are."""
        return int(self._world.Get_size())

    def add(self, values: NDArray[Any]) -> None:
        """Replace an array by its sum over all processes."""
        self._world.Allreduce(self._mpi.IN_PLACE, values, op=self._mpi.SUM)

    def take_first(self, values: NDArray[Any]) -> None:
        """Replace an array by that of rank 0."""
        self._world.Bcast(values, root=0)

    def from_first(self, value: Any) -> Any:
        """Return what rank 0 gave."""
        return self._world.bcast(value, root=0)

    def abort(self, message: str) -> None:
        """End all processes: one that waits for a dead one would wait for ever."""
        print(f"ratoon: rank {self.rank} of {self.size}: {message}", file=sys.stderr, flush=True)
        self._world.Abort(1)
