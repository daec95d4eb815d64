"""Cells: one step of a recurrent layer whose gates are sparse linear layers.

All gates of a cell are the outputs of one matrix.  A strategy that prunes a layer's weakest
connections then moves them between gates, as sparse training of recurrent networks wants it
(Liu et al., "Selfish sparse RNN training", ICML 2021).
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from ratoon.rng import derive_seed
from ratoon.torch.linear import SparseLinear

State = tuple[Tensor, ...]
"""Hidden state first; an LSTM has a cell state besides."""


class SparseCell(torch.nn.Module):
    """One step of a recurrent layer: two sparse matrices, and how their gates are put together.

    Parameters
    ----------
    input_size, hidden_size : int
        Features of each input, and of the state.
    density, epsilon, bias, start, init, dtype
        As for `SparseLinear`; both matrices get them.
    seed : int, default=0
        The matrices derive seeds of their own from it.
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
        """Return the next state, given what the input says to each gate."""
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
        let_in, keep, candidate, let_out = (gates + self.hidden_gates(hidden)).chunk(4, dim=1)
        cell = torch.sigmoid(keep) * cell + torch.sigmoid(let_in) * torch.tanh(candidate)
        return torch.sigmoid(let_out) * torch.tanh(cell), cell


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
