"""What was asked for, and what a start came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ratoon.initialise.counts import density_of
from ratoon.topology import Topology


@dataclass(frozen=True)
class LayerStart:
    """One layer: its density as asked for and as it is."""

    n_in: int
    n_out: int
    requested_density: float
    achieved_density: float
    n_connections: int
    n_positions: int


def compare_start(
    topologies: Sequence[Topology], *, epsilon: float | None = None, density: float | None = None
) -> list[LayerStart]:
    """Return requested and achieved density of every layer.

    Examples
    --------
    >>> from ratoon.initialise import start_topology
    >>> layer = start_topology((9000, 3), epsilon=10, seed=0, start="paper")
    >>> [line] = compare_start([layer], epsilon=10)
    >>> line.requested_density, round(line.achieved_density, 2)
    (1.0, 0.96)
    """
    return [
        LayerStart(
            *topology.shape,
            requested_density=_requested(topology.shape, epsilon, density),
            achieved_density=topology.density,
            n_connections=topology.n_connections,
            n_positions=topology.n_positions,
        )
        for topology in topologies
    ]


def _requested(shape: tuple[int, int], epsilon: float | None, density: float | None) -> float:
    if density is not None:
        return density
    return density_of(shape, epsilon) if epsilon is not None else float("nan")


def start_table(lines: Sequence[LayerStart]) -> str:
    """Return a start as a table to print.

    Examples
    --------
    >>> print(start_table([LayerStart(100, 50, 0.1, 0.1, 500, 5000)]))
    layer         requested  achieved  connections  of dense
    100 -> 50         0.1       0.1            500     5,000
    """
    rows = ["layer         requested  achieved  connections  of dense"]
    rows += [
        f"{f'{line.n_in} -> {line.n_out}':13} {line.requested_density:8.3g}"
        f"  {line.achieved_density:8.3g}  {line.n_connections:13,}  {line.n_positions:8,}"
        for line in lines
    ]
    return "\n".join(rows)
