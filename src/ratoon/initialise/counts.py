"""The number of connections: per layer, spread over a network, requested and achieved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ratoon.errors import InvalidParameterError
from ratoon.topology import Topology

SPREADS = ("erdos_renyi", "uniform")


def density_of(shape: tuple[int, int], epsilon: float) -> float:
    """Return the density of a layer with ``epsilon * (n_in + n_out)`` connections, at most 1.

    Examples
    --------
    >>> density_of((1000, 1000), epsilon=10)
    0.02
    >>> density_of((9000, 3), epsilon=10)
    1.0
    """
    n_in, n_out = shape
    return min(1.0, epsilon * (n_in + n_out) / (n_in * n_out))


def connections_wanted(
    shape: tuple[int, int], *, epsilon: float | None = None, density: float | None = None
) -> int:
    """Return the number of connections for an epsilon or a density; exactly one is required.

    Examples
    --------
    >>> connections_wanted((54_675, 27_500), epsilon=10)
    821750
    >>> connections_wanted((100, 50), density=0.1)
    500
    """
    n_in, n_out = shape
    if (epsilon is None) == (density is None):
        raise InvalidParameterError(
            f"give either `epsilon` or `density`, got epsilon={epsilon!r}, density={density!r}."
        )
    if density is not None:
        if not 0.0 < density <= 1.0:
            raise InvalidParameterError(f"`density` must be in (0, 1], got {density!r}.")
        wanted = round(density * n_in * n_out)
        if wanted == 0:
            raise InvalidParameterError(
                f"`density={density!r}` leaves a {n_in} -> {n_out} layer with no connections.\n"
                f"  It has {n_in * n_out} positions, so the density must be at least"
                f" {1 / (n_in * n_out):.3g}."
            )
        return wanted
    assert epsilon is not None
    if not epsilon > 0.0 or not np.isfinite(epsilon):
        raise InvalidParameterError(f"`epsilon` must be a positive number, got {epsilon!r}.")
    wanted = round(density_of(shape, epsilon) * n_in * n_out)
    if wanted == 0:
        raise InvalidParameterError(
            f"`epsilon={epsilon!r}` leaves a {n_in} -> {n_out} layer with no connections.\n"
            f"  A layer has about epsilon * (n_in + n_out) connections; the authors of SET use 10"
            f" or 20.\n"
            f"  To set a fraction instead, pass `density` (here density=0.05 gives"
            f" {round(0.05 * n_in * n_out)} connections).\n"
            f"  The numerical constant of Adam is called `adam_eps` here."
        )
    return wanted


def spread_over_layers(
    widths: Sequence[int], density: float, *, spread: str = "erdos_renyi"
) -> list[int]:
    """Return the number of connections per layer of a network with this overall density.

    Parameters
    ----------
    widths : sequence of int
        Neurons per layer, including inputs and outputs.
    density : float
        Connections of the network divided by its positions.
    spread : {"erdos_renyi", "uniform"}
        With ``"erdos_renyi"`` the density of a layer is proportional to
        ``(n_in + n_out) / (n_in * n_out)``, so narrow layers are denser; connections beyond a full
        layer go to the others in the same proportion.  This is the rule of SET, and ERK (Evci et
        al. 2020) for layers without convolution kernels.  With ``"uniform"`` every layer has the
        same density.

    Examples
    --------
    >>> spread_over_layers((1000, 1000, 10), 0.02)
    [13422, 6778]
    >>> spread_over_layers((1000, 1000, 10), 0.02, spread="uniform")
    [20000, 200]
    >>> spread_over_layers((1000, 1000, 10), 0.1)  # the last layer is full
    [91000, 10000]
    """
    if spread not in SPREADS:
        raise InvalidParameterError(f"`spread` must be one of {SPREADS}, got {spread!r}.")
    if not 0.0 < density <= 1.0:
        raise InvalidParameterError(f"`density` must be in (0, 1], got {density!r}.")
    shapes = list(pairwise(widths))
    positions = np.array([n_in * n_out for n_in, n_out in shapes], dtype=np.float64)
    if spread == "uniform":
        return [max(1, round(density * area)) for area in positions]
    weights = np.array([n_in + n_out for n_in, n_out in shapes], dtype=np.float64)
    wanted = density * positions.sum()
    full = np.zeros(len(shapes), dtype=bool)
    while True:
        free = wanted - positions[full].sum()
        shares = np.where(full, 0.0, weights)
        counts = np.where(full, positions, free * shares / max(shares.sum(), 1.0))
        overfull = ~full & (counts >= positions)
        if not overfull.any():
            return [max(1, round(count)) for count in counts]
        full |= overfull


@dataclass(frozen=True)
class LayerStart:
    """Requested and achieved density of one layer."""

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
    """Return the densities of a network as a printable table.

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
