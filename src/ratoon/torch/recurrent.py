"""Sparse LSTM and GRU: cells whose gates are sparse linear layers, and layers of cells.

All gates of a cell are the outputs of one matrix.  A strategy that prunes a layer's weakest
connections then moves them between gates, as sparse training of recurrent networks requires
(Liu et al., "Selfish sparse RNN training", ICML 2021).
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.rng import derive_seed
from ratoon.torch.linear import SparseLinear

State = tuple[Tensor, ...]
"""The hidden state; for an LSTM also the cell state."""


class SparseCell(torch.nn.Module):
    """Base class of cells: one step of a recurrent layer, with two sparse matrices.

    Parameters
    ----------
    input_size, hidden_size : int
        Features of each input, and of the state.
    density, epsilon, bias, start, init, dtype
        As for `SparseLinear`; used for both matrices.
    seed : int, default=0
        Root seed of the two matrices.
    """

    n_gates: ClassVar[int]
    n_states: ClassVar[int]

    def __init__(self, input_size: int, hidden_size: int, *, seed: int = 0, **how: Any) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        gates = self.n_gates * hidden_size
        seeds = [derive_seed(seed, "gates", index) for index in range(2)]
        self.input_gates = SparseLinear(input_size, gates, seed=seeds[0], **how)
        self.hidden_gates = SparseLinear(hidden_size, gates, seed=seeds[1], **how)

    def start_state(self, batch: int, like: Tensor) -> State:
        """Return the state before the first step: zeros."""
        zeros = like.new_zeros((batch, self.hidden_size))
        return (zeros,) * self.n_states

    def advance(self, gates: Tensor, state: State) -> State:
        """Return the next state, given the contribution of the input to each gate."""
        raise NotImplementedError


class SparseLSTMCell(SparseCell):
    """A long short-term memory cell; equations and order of gates as in `torch.nn.LSTMCell`.

    Examples
    --------
    >>> cell = SparseLSTMCell(10, 20, density=0.2)
    >>> h, c = cell(torch.zeros(3, 10))
    >>> h.shape, c.shape
    (torch.Size([3, 20]), torch.Size([3, 20]))
    """

    n_gates = 4
    n_states = 2

    def forward(self, x: Tensor, state: State | None = None) -> State:
        """Return the next hidden state and cell state for a batch of inputs."""
        return self.advance(self.input_gates(x), state or self.start_state(x.shape[0], x))

    def advance(self, gates: Tensor, state: State) -> State:
        """Return the next hidden state and cell state."""
        hidden, cell = state
        i, f, g, o = (gates + self.hidden_gates(hidden)).chunk(4, dim=1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(cell), cell


class SparseGRUCell(SparseCell):
    """A gated recurrent unit; equations and order of gates as in `torch.nn.GRUCell`.

    Examples
    --------
    >>> SparseGRUCell(10, 20, density=0.2)(torch.zeros(3, 10)).shape
    torch.Size([3, 20])
    """

    n_gates = 3
    n_states = 1

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Return the next hidden state for a batch of inputs."""
        state = self.start_state(x.shape[0], x) if hidden is None else (hidden,)
        return self.advance(self.input_gates(x), state)[0]

    def advance(self, gates: Tensor, state: State) -> State:
        """Return the next hidden state."""
        (hidden,) = state
        reset_x, update_x, new_x = gates.chunk(3, dim=1)
        reset_h, update_h, new_h = self.hidden_gates(hidden).chunk(3, dim=1)
        new = torch.tanh(new_x + torch.sigmoid(reset_x + reset_h) * new_h)
        return (torch.lerp(new, hidden, torch.sigmoid(update_x + update_h)),)


class SparseRecurrent(torch.nn.Module):
    """Base class of recurrent layers: stacked cells, run over sequences.

    Parameters
    ----------
    input_size, hidden_size : int
        Features of each input, and of the state of each layer.
    num_layers : int, default=1
        Number of stacked cells.
    batch_first : bool, default=False
        Whether sequences are (batch, time, features) instead of (time, batch, features).
    dropout : float, default=0.0
        Fraction of the outputs dropped between two layers during training.
    seed : int, default=0
        Root seed of the layers.
    density, epsilon, bias, start, init, dtype
        As for `SparseLinear`; used for all matrices.

    Notes
    -----
    The contribution of the inputs to the gates is computed for all times at once.  Bidirectional
    layers, projections and packed sequences are not supported.
    """

    cell_type: ClassVar[type[SparseCell]]
    dense_type: ClassVar[type[torch.nn.RNNBase]]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        batch_first: bool = False,
        dropout: float = 0.0,
        seed: int = 0,
        **how: Any,
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise InvalidParameterError(f"`num_layers` must be at least 1, got {num_layers!r}.")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.batch_first, self.dropout = batch_first, dropout
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.cells = torch.nn.ModuleList(
            self.cell_type(size, hidden_size, seed=derive_seed(seed, "layer", index), **how)
            for index, size in enumerate(sizes)
        )

    def run(self, x: Tensor, start: State | None) -> tuple[Tensor, State]:
        """Return the top layer's outputs, and the last state of every layer stacked."""
        if x.ndim != 3 or x.shape[2] != self.input_size:
            raise InvalidInputError(
                f"the input must have three dimensions and {self.input_size} features, got shape"
                f" {tuple(x.shape)}."
            )
        outputs = x.transpose(0, 1) if self.batch_first else x
        last_states = []
        for index, cell in enumerate(self.cells):
            if index > 0 and self.dropout > 0:
                outputs = torch.nn.functional.dropout(outputs, self.dropout, self.training)
            if start is None:
                state = cell.start_state(outputs.shape[1], outputs)
            else:
                state = tuple(part[index] for part in start)
            hidden_states = []
            for gates in cell.input_gates(outputs).unbind(0):
                state = cell.advance(gates, state)
                hidden_states.append(state[0])
            outputs = torch.stack(hidden_states)
            last_states.append(state)
        stacked = tuple(torch.stack(parts) for parts in zip(*last_states, strict=True))
        return (outputs.transpose(0, 1) if self.batch_first else outputs), stacked

    @classmethod
    def from_dense(
        cls, dense: Any, density: float | None = None, *, epsilon: float | None = None
    ) -> Any:
        """Return a layer with the largest weights of each matrix of a dense layer, and its biases.

        Examples
        --------
        >>> layer = SparseLSTM.from_dense(torch.nn.LSTM(10, 20, num_layers=2), density=0.1)
        >>> layer.cells[1].hidden_gates
        SparseLinear(20, 80, connections=160, density=0.1, bias=True)
        """
        if not isinstance(dense, cls.dense_type) or dense.bidirectional or dense.proj_size:
            raise InvalidParameterError(
                f"{cls.__name__}: needs a {cls.dense_type.__name__} of one direction without"
                f" projections, got {dense}."
            )
        layer = cls(
            dense.input_size,
            dense.hidden_size,
            dense.num_layers,
            batch_first=dense.batch_first,
            dropout=dense.dropout,
            epsilon=1.0,  # small: all matrices are replaced below
        )
        for index, cell in enumerate(layer.cells):
            for ours, theirs in (("input_gates", "ih"), ("hidden_gates", "hh")):
                weight = getattr(dense, f"weight_{theirs}_l{index}")
                linear = torch.nn.utils.skip_init(
                    torch.nn.Linear, weight.shape[1], weight.shape[0], bias=dense.bias
                )
                linear.weight = weight
                if dense.bias:
                    linear.bias = getattr(dense, f"bias_{theirs}_l{index}")
                sparse = SparseLinear.from_dense(linear, density, epsilon=epsilon)
                setattr(cell, ours, sparse)
        return layer


class SparseLSTM(SparseRecurrent):
    """The sparse counterpart of `torch.nn.LSTM`; parameters as for `SparseRecurrent`.

    Examples
    --------
    >>> layer = SparseLSTM(10, 20, num_layers=2, density=0.2)
    >>> output, (h, c) = layer(torch.zeros(7, 3, 10))
    >>> output.shape, h.shape
    (torch.Size([7, 3, 20]), torch.Size([2, 3, 20]))
    """

    cell_type = SparseLSTMCell
    dense_type = torch.nn.LSTM

    def forward(self, x: Tensor, start: State | None = None) -> tuple[Tensor, State]:
        """Return the outputs of every time and the last hidden and cell states."""
        return self.run(x, start)


class SparseGRU(SparseRecurrent):
    """The sparse counterpart of `torch.nn.GRU`; parameters as for `SparseRecurrent`.

    Examples
    --------
    >>> output, h = SparseGRU(10, 20, density=0.2)(torch.zeros(7, 3, 10))
    >>> output.shape, h.shape
    (torch.Size([7, 3, 20]), torch.Size([1, 3, 20]))
    """

    cell_type = SparseGRUCell
    dense_type = torch.nn.GRU

    def forward(self, x: Tensor, start: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the outputs of every time and the last hidden states."""
        outputs, (hidden,) = self.run(x, None if start is None else (start,))
        return outputs, hidden
