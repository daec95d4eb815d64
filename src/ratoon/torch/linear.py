"""SparseLinear: the sparse counterpart of `torch.nn.Linear`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from ratoon.errors import InvalidInputError
from ratoon.topology import Topology
from ratoon.torch.connections import SparseConnections, as_values


class SparseLinear(SparseConnections):
    """A linear layer that has, and stores, only some of its connections.

    Parameters
    ----------
    in_features, out_features : int
        Size of each input and output sample.
    density, epsilon : float
        One of the two: the fraction of positions that are connections; or SET's factor, which
        gives about ``epsilon * (in_features + out_features)`` of them.
    bias : bool, default=True
        Whether outputs have a bias, initially 0.
    seed : int, default=0
        Seed of the topology and the initial weights.
    start : {"exact", "paper", "fan_in", "small_world", "scale_free", "brf"}, default="exact"
        How connections are drawn (see `ratoon.initialise.start_topology`).
    init : {"he", "set", "zero"}, default="he"
        How initial weights are drawn.
    device : default="cpu"
        Only the CPU is supported; the parameter exists for code that passes it to all layers.
    dtype : torch.dtype, optional
        float32 or float64; PyTorch's default dtype if not given.

    Notes
    -----
    The input may have any number of leading dimensions.  The output is a transposed view with the
    batch as the innermost dimension in memory (see `ratoon.torch.ops`).  Use ``reshape`` instead
    of ``view`` on it, or call ``contiguous`` first.

    Layers with the same arguments, including the seed, have the same topology.

    Examples
    --------
    >>> layer = SparseLinear(784, 1000, density=0.02)
    >>> layer
    SparseLinear(784, 1000, connections=15680, density=0.02, bias=True)
    >>> layer(torch.zeros(32, 784)).shape
    torch.Size([32, 1000])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        density: float | None = None,
        epsilon: float | None = None,
        bias: bool = True,
        seed: int = 0,
        start: str = "exact",
        init: str = "he",
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self._draw(
            (in_features, out_features),
            density=density,
            epsilon=epsilon,
            bias=bias,
            seed=seed,
            start=start,
            init=init,
            device=device,
            dtype=dtype,
        )
        self.in_features, self.out_features = in_features, out_features

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``W x + b`` along the last dimension."""
        if x.ndim == 0 or x.shape[-1] != self.in_features:
            raise InvalidInputError(
                f"the layer takes {self.in_features} features, got an input of shape"
                f" {tuple(x.shape)}."
            )
        if x.ndim == 2:
            return self.apply_to_samples(x, self.out_features)
        flat = x.reshape(-1, self.in_features)
        return self.apply_to_samples(flat, self.out_features).reshape(
            *x.shape[:-1], self.out_features
        )

    # --------------------------------------------------------------------------- conversion

    @classmethod
    def from_connections(
        cls,
        topology: Topology,
        values: NDArray[Any],
        bias: NDArray[Any] | None = None,
        *,
        init: str = "he",
    ) -> SparseLinear:
        """Build from a topology, its weights by slot and a bias.

        The layer shares the memory of float32 and float64 arrays: training changes the arrays, and
        changing them changes the layer.

        Examples
        --------
        >>> weights = np.array([2.0, 3.0], dtype=np.float32)
        >>> layer = SparseLinear.from_connections(Topology.full((2, 1)), weights)
        >>> weights[1] = 5.0
        >>> layer(torch.tensor([1.0, 10.0])).tolist()
        [52.0]
        """
        layer = cls.__new__(cls)
        SparseConnections.__init__(layer, topology, values, bias, init=init)
        layer.in_features, layer.out_features = topology.shape
        return layer

    @classmethod
    def from_dense(
        cls,
        dense: torch.nn.Linear,
        density: float | None = None,
        *,
        epsilon: float | None = None,
    ) -> SparseLinear:
        """Return a layer with the largest weights of a dense layer, by magnitude, and its bias.

        Examples
        --------
        >>> dense = torch.nn.Linear(100, 50)
        >>> SparseLinear.from_dense(dense, density=0.1)
        SparseLinear(100, 50, connections=500, density=0.1, bias=True)
        """
        layer = cls.__new__(cls)
        layer._keep_largest(dense, density, epsilon)
        layer.in_features, layer.out_features = dense.in_features, dense.out_features
        return layer

    @classmethod
    def from_scipy(cls, matrix: Any, bias: ArrayLike | None = None) -> SparseLinear:
        """Build from the stored entries of a SciPy matrix, inputs x outputs.

        This is the transpose of the weight of `torch.nn.Linear`.

        Examples
        --------
        >>> import scipy.sparse
        >>> matrix = scipy.sparse.csr_array(np.array([[0.0, 2.0], [3.0, 0.0], [0.0, 5.0]]))
        >>> layer = SparseLinear.from_scipy(matrix)
        >>> layer(torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64)).tolist()
        [30.0, 502.0]
        """
        topology, stored = Topology.from_scipy(matrix)
        values = as_values(stored)
        return cls.from_connections(
            topology, values, None if bias is None else np.array(bias, dtype=values.dtype)
        )

    def to_dense(self) -> torch.nn.Linear:
        """Return a dense layer with the same weights, and 0 elsewhere."""
        dense: torch.nn.Linear = self._filled(torch.nn.Linear, self.in_features, self.out_features)
        return dense
