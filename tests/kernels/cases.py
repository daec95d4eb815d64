"""Layers of every kind with values, and the tolerance of a kernel against its twin."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from ratoon import _native
from ratoon.kernels import LANES, Rule, reference
from ratoon.topology import Topology

THREADS = [1, 2, 3, 7]
DTYPES = [np.float32, np.float64]

# How far a kernel may be from its twin, which computes in float64, as a fraction of the sum of the
# magnitudes that were added up.  One rounding is 6e-8 of it in float32 and 1.1e-16 in float64;
# those of n additions come to about sqrt(n) of them, so this allows 25,000 additions.
RTOL = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}


def assert_close(actual, exact, magnitude):
    """Compare with what should have come out, where numbers of this size were added up."""
    assert actual.shape == exact.shape
    # Kernels take denormal numbers for zero; 1e-37 is just above the largest of them.
    allowed = RTOL[actual.dtype] * magnitude + 1e-37
    wrong = ~(np.abs(actual.astype(np.float64) - exact) <= allowed)
    assert not wrong.any(), (actual[wrong][:5], exact[wrong][:5])


def cut(topology, tile, grouped):
    """Return the same connections in other tiles."""
    grid = _native.Grid.of(*topology.shape, *tile, grouped)
    return Topology(_native.Topology.from_pairs(grid, *topology.pairs())[0])


@st.composite
def topologies(draw, max_in=150, max_out=100):
    """Draw narrow and wide layers, empty to full, in the usual tiles or in small ones."""
    n_in = draw(st.integers(1, max_in))
    n_out = draw(st.one_of(st.integers(1, 32), st.integers(33, max_out)))
    n = n_in * n_out
    n_connections = draw(st.one_of(st.sampled_from([0, 1, n - 1, n]), st.integers(0, n)))
    topology = Topology.random((n_in, n_out), n_connections, seed=draw(st.integers(0, 99)))
    if draw(st.booleans()):
        tile = 16 * draw(st.integers(1, 5)), draw(st.integers(1, n_out))
        topology = cut(topology, tile, draw(st.booleans()))
    return topology


@dataclass(frozen=True, eq=False)
class Case:
    """A layer and a minibatch; the columns of x beyond the batch hold anything, those of dy 0."""

    topology: Topology
    weights: np.ndarray
    bias: np.ndarray
    x: np.ndarray
    dy: np.ndarray
    batch: int

    @classmethod
    def of(cls, topology, batch, dtype, seed):
        rng = np.random.default_rng(seed)
        n_in, n_out = topology.shape
        lanes = 1 if batch == 1 else -(-batch // LANES) * LANES
        sizes = (topology.n_connections, n_out, (n_in, lanes), (n_out, lanes))
        weights, bias, x, dy = (rng.uniform(-1, 1, size).astype(dtype) for size in sizes)
        dy[:, batch:] = 0
        return cls(topology, weights, bias, x, dy, batch)

    def exact(self):
        """Return float64 copies of weights, bias, x and dy, without the padding."""
        x, dy = self.x[:, : self.batch], self.dy[:, : self.batch]
        return [array.astype(np.float64) for array in (self.weights, self.bias, x, dy)]

    def magnitudes(self):
        """Return what was added up for y, for dx and for the gradients of the weights."""
        weights, bias, x, dy = (np.abs(array) for array in self.exact())
        gradients = np.empty_like(weights)
        rule = Rule.STORE
        dx = reference.backward(self.topology, rule, weights, x, dy, first=gradients)
        return reference.forward(self.topology, weights, bias, x), dx, gradients


@st.composite
def cases(draw, **sizes):
    return Case.of(
        draw(topologies(**sizes)),
        batch=draw(st.integers(1, 40)),
        dtype=draw(st.sampled_from(DTYPES)),
        seed=draw(st.integers(0, 2**32)),
    )


def large_topologies():
    """Return layers of several tiles, beyond the cache and beyond 65,536 neurons."""
    return {
        "many tiles": Topology.random((5000, 3000), 60_000, seed=1),
        "far rows": Topology.random((20_000, 30_000), 40_000, seed=2),
        "wider than a tile": Topology.random((70_000, 66_000), 20_000, seed=3),
        "narrow": Topology.random((30_000, 3), 50_000, seed=4),
        "narrow and full": Topology.full((20_000, 2)),
    }
