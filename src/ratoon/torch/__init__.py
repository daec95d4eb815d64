"""Sparse layers and evolving topologies in PyTorch.

A sparse layer stores its weights as a one-dimensional parameter and its topology as buffers, so
optimizers, `state_dict`, safetensors and `torch.compile` work as with any other layer.  Forward
and backward pass use ratoon's kernels, on the CPU, in float32 or float64.
"""

from __future__ import annotations

from ratoon.torch.connections import SparseConnections as SparseConnections
from ratoon.torch.conv import SparseConv2d as SparseConv2d
from ratoon.torch.evolver import Evolver as Evolver
from ratoon.torch.linear import SparseLinear as SparseLinear
from ratoon.torch.recurrent import SparseGRU as SparseGRU
from ratoon.torch.recurrent import SparseGRUCell as SparseGRUCell
from ratoon.torch.recurrent import SparseLSTM as SparseLSTM
from ratoon.torch.recurrent import SparseLSTMCell as SparseLSTMCell
from ratoon.torch.sparsify import sparsify_ as sparsify_
