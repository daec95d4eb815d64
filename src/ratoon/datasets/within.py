"""Within: where a layer may have connections at all, told by prior knowledge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ratoon.errors import InvalidParameterError


@dataclass(frozen=True, eq=False)
class Within:
    """A limit: a layer has connections only where a matrix has entries.

    Given to an estimator in ``topology=``, where a matrix alone would be what a layer starts with
    and evolution would then leave.  Within a limit every strategy prunes and grows as ever, but
    grows at allowed positions only.  Time and memory of a rewiring grow with the number of allowed
    positions.

    Parameters
    ----------
    matrix : SciPy sparse matrix or Topology, inputs x outputs
        Stored entries are allowed positions, whatever their values.
    density : float, default=0.5
        Share of the allowed positions that the layer starts with, drawn at random.  What is left
        is where connections can move to; at 1 there is nothing to evolve.
    start : SciPy sparse matrix or Topology, optional
        Connections to start with instead; all of them must be allowed.

    Examples
    --------
    >>> import scipy.sparse
    >>> Within(scipy.sparse.eye_array(4, 3), density=0.7)
    Within(4 -> 3, 3 positions allowed, density 0.7)
    """

    matrix: Any
    density: float = 0.5
    start: Any = None

    def __post_init__(self) -> None:
        for name in ("matrix", "start"):
            value = getattr(self, name)
            is_known = hasattr(value, "nnz") or hasattr(value, "n_connections")
            if not (is_known or (name == "start" and value is None)):
                raise InvalidParameterError(
                    f"Within: `{name}` must be a SciPy sparse matrix (inputs x outputs) or a"
                    f" Topology, got {type(value).__name__}."
                )
        if not 0.0 < self.density <= 1.0:
            raise InvalidParameterError(
                f"Within: `density` must be a number in (0, 1], got {self.density!r}.\n"
                f"  It is the share of the allowed positions that a layer starts with."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of inputs, number of outputs."""
        n_in, n_out = self.matrix.shape
        return int(n_in), int(n_out)

    @property
    def n_allowed(self) -> int:
        """How many positions are allowed."""
        return _size(self.matrix)

    @property
    def n_connections(self) -> int:
        """How many connections a layer starts with."""
        if self.start is not None:
            return _size(self.start)
        return max(1, round(self.density * self.n_allowed))

    def __repr__(self) -> str:
        n_in, n_out = self.shape
        begun = f"{self.n_connections} to start with"
        share = begun if self.start is not None else f"density {self.density:g}"
        return f"Within({n_in} -> {n_out}, {self.n_allowed} positions allowed, {share})"


def _size(matrix: Any) -> int:
    return int(matrix.nnz if hasattr(matrix, "nnz") else matrix.n_connections)
