"""MPI as the transport, through mpi4py (``pip install ratoon[mpi]``)."""

from __future__ import annotations

import sys
from typing import Any

from numpy.typing import NDArray

from ratoon.errors import RatoonError


class MPICommunicator:
    """The processes that ``mpiexec`` has started.

    ``mpiexec -n 2 ratoon train data.npz --distributed mpi`` trains on two of them.
    """

    def __init__(self, communicator: Any = None) -> None:
        try:
            from mpi4py import MPI
        except ImportError:
            raise RatoonError(
                "training over MPI needs mpi4py and an MPI library.\n"
                "  Try: pip install 'ratoon[mpi]', which installs both."
            ) from None
        self._mpi = MPI
        self._world = MPI.COMM_WORLD if communicator is None else communicator

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

    def from_first(self, value: Any) -> Any:
        """Return the value of rank 0."""
        return self._world.bcast(value, root=0)

    def abort(self, message: str) -> None:
        """End all processes; otherwise they would wait for this one forever."""
        print(f"ratoon: rank {self.rank} of {self.size}: {message}", file=sys.stderr, flush=True)
        self._world.Abort(1)
