"""A small network inside a wide one: hidden neurons in use, and a reserve to grow into."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ratoon.errors import InvalidParameterError
from ratoon.initialise.topologies import start_topology
from ratoon.rng import derive_seed
from ratoon.topology import Topology


def seed_topologies(
    widths: Sequence[int],
    in_use: Sequence[int],
    *,
    seed: int,
    epsilon: float | None = None,
    density: float | None = None,
    n_threads: int = 1,
) -> list[Topology]:
    """Draw the topologies of a network in which only some hidden neurons are connected.

    Epsilon or density are those of the small network.  Give the result to
    ``SparseMLP.start(widths, topologies=...)`` and train with `ratoon.evolution.NeST`, which grows
    neurons out of the rest.

    Parameters
    ----------
    widths : sequence of int
        Neurons per layer, inputs and outputs included.
    in_use : sequence of int
        Neurons per hidden layer that are connected.

    Examples
    --------
    >>> first, last = seed_topologies((50, 100, 3), (10,), density=0.2, seed=0)
    >>> first, last
    (Topology(50 -> 100, 100 connections, density 0.02), Topology(100 -> 3, 6 connections, ...))
    >>> int((first.degrees()[1] > 0).sum())
    10
    """
    if len(in_use) != len(widths) - 2 or any(
        not 1 <= used <= width for used, width in zip(in_use, widths[1:-1], strict=False)
    ):
        raise InvalidParameterError(
            f"`in_use` must name 1 to all neurons of each hidden layer of {tuple(widths)!r}, got"
            f" {tuple(in_use)!r}."
        )
    small = [widths[0], *in_use, widths[-1]]
    topologies = []
    for index, (shape, wide) in enumerate(zip(pairwise(small), pairwise(widths), strict=True)):
        topology = start_topology(
            shape,
            seed=derive_seed(seed, "layer", index),
            epsilon=epsilon,
            density=density,
            n_threads=n_threads,
        )
        topologies.append(Topology.from_pairs(wide, *topology.pairs()))
    return topologies
