"""SparseLSTM and SparseGRU: at density 1 they equal the layers of PyTorch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402

from ratoon.errors import InvalidInputError, InvalidParameterError  # noqa: E402
from ratoon.evolution import SET, RewiringSchedule  # noqa: E402
from ratoon.torch import (  # noqa: E402
    Evolver,
    SparseGRU,
    SparseGRUCell,
    SparseLSTM,
    SparseLSTMCell,
)

PAIRS = [(nn.LSTM, SparseLSTM), (nn.GRU, SparseGRU)]


def flat(state):
    return torch.cat([state] if isinstance(state, torch.Tensor) else list(state))


@pytest.mark.parametrize(("dense_type", "sparse_type"), PAIRS)
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_a_full_layer_equals_the_dense_layer(dense_type, sparse_type, batch_first, bias):
    dense = dense_type(5, 7, num_layers=2, batch_first=batch_first, bias=bias).double()
    sparse = sparse_type.from_dense(dense, density=1.0)
    x = torch.randn(6, 3, 5, dtype=torch.float64)
    batch = 6 if batch_first else 3
    start = torch.randn(2, batch, 7, dtype=torch.float64)
    start = (start, -start) if dense_type is nn.LSTM else start
    x_dense, x_sparse = (x.clone().requires_grad_() for _ in range(2))

    for given in ((), (start,)):
        expected, expected_state = dense(x_dense, *given)
        found, found_state = sparse(x_sparse, *given)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(flat(found_state), flat(expected_state))
    expected.square().sum().backward()
    found.square().sum().backward()

    torch.testing.assert_close(x_sparse.grad, x_dense.grad)
    weight = sparse.cells[1].hidden_gates
    inputs, outputs = weight.topology.pairs()
    torch.testing.assert_close(weight.values.grad, dense.weight_hh_l1.grad[outputs, inputs])


@pytest.mark.parametrize(
    ("dense_type", "sparse_type"), [(nn.LSTMCell, SparseLSTMCell), (nn.GRUCell, SparseGRUCell)]
)
def test_a_cell_equals_one_step_of_the_dense_cell(dense_type, sparse_type):
    sparse = sparse_type(5, 7, density=1.0)
    dense = dense_type(5, 7)
    for ours, theirs in ((sparse.input_gates, "ih"), (sparse.hidden_gates, "hh")):
        getattr(dense, f"weight_{theirs}").data = ours.to_dense().weight.data
        getattr(dense, f"bias_{theirs}").data = ours.bias.data
    x = torch.randn(3, 5)

    torch.testing.assert_close(sparse(x), dense(x))
    state = sparse(x)
    torch.testing.assert_close(sparse(x, state), dense(x, state))


def test_layers_and_matrices_have_topologies_of_their_own():
    layer = SparseLSTM(8, 8, num_layers=2, density=0.3)
    matrices = [m for cell in layer.cells for m in (cell.input_gates, cell.hidden_gates)]

    assert len({matrix.topology.content_hash() for matrix in matrices}) == 4


def test_a_sparse_lstm_learns_while_it_is_rewired():
    # Say, after 8 steps, what the first one was.
    x = torch.randint(0, 4, (8, 256))
    layer = SparseLSTM(4, 32, density=0.3)
    model = nn.ModuleList([layer, nn.Linear(32, 4)])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    every = RewiringSchedule(every=20, unit="step", until=0.7)
    evolver = Evolver(model, optimizer, SET(zeta=0.2), every, total_steps=120)
    data = nn.functional.one_hot(x, 4).float()
    for _ in range(120):
        optimizer.zero_grad()
        outputs, _ = model[0](data)
        loss = nn.functional.cross_entropy(model[1](outputs[-1]), x[0])
        loss.backward()
        optimizer.step()
        evolver.step()

    assert loss.item() < 0.3  # guessing is log 4 = 1.39


def test_dropout_is_between_layers_and_only_while_training():
    layer = SparseGRU(4, 6, num_layers=2, density=0.5, dropout=0.5)
    x = torch.randn(3, 2, 4)

    assert not torch.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert torch.equal(layer(x)[0], layer(x)[0])


@pytest.mark.parametrize("shape", [(3, 4), (3, 2, 5)])
def test_inputs_of_wrong_dimensions_are_refused(shape):
    with pytest.raises(InvalidInputError, match="4 features"):
        SparseGRU(4, 6, density=0.5)(torch.zeros(shape))


@pytest.mark.parametrize(
    "dense", [nn.GRU(3, 4), nn.LSTM(3, 4, bidirectional=True), nn.LSTM(3, 4, proj_size=2)]
)
def test_layers_without_a_sparse_counterpart_are_refused(dense):
    with pytest.raises(InvalidParameterError, match="LSTM of one direction"):
        SparseLSTM.from_dense(dense, density=0.5)


def test_zero_layers_are_refused():
    with pytest.raises(InvalidParameterError, match="num_layers"):
        SparseLSTM(3, 4, 0, density=0.5)
