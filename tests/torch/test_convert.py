"""Conversion from and to dense layers and SciPy; conversion of whole models."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402

from ratoon.errors import InvalidInputError, InvalidParameterError  # noqa: E402
from ratoon.rng import derive_seed  # noqa: E402
from ratoon.torch import SparseConv2d, SparseLinear, sparsify_  # noqa: E402


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_from_dense_keeps_the_largest_weights_and_the_bias(dtype):
    dense = nn.Linear(40, 30, dtype=dtype)

    sparse = SparseLinear.from_dense(dense, density=0.1)

    kept = sparse.to_dense().weight
    threshold = dense.weight.abs().flatten().kthvalue(1200 - 120).values
    expected = torch.where(dense.weight.abs() > threshold, dense.weight, 0)
    assert torch.equal(kept, expected)
    assert torch.equal(sparse.bias, dense.bias)
    assert sparse.bias is not dense.bias


def test_a_density_of_one_keeps_the_same_layer():
    dense = nn.Linear(40, 30, bias=False)
    x = torch.randn(5, 40)

    torch.testing.assert_close(SparseLinear.from_dense(dense, density=1.0)(x), dense(x))


def test_to_dense_draws_no_random_numbers():
    layer = SparseLinear(10, 10, density=0.5)
    before = torch.get_rng_state()

    layer.to_dense()

    assert torch.equal(torch.get_rng_state(), before)


def test_scipy_matrices_round_trip():
    matrix = scipy.sparse.random_array((40, 30), density=0.1, random_state=np.random.default_rng(0))
    matrix.data[0] = 0.0  # a connection all the same

    layer = SparseLinear.from_scipy(matrix, bias=np.arange(30))

    assert layer.values.dtype == torch.float64
    back = layer.to_scipy()
    assert back.nnz == matrix.nnz
    np.testing.assert_array_equal(back.toarray(), matrix.toarray())
    np.testing.assert_array_equal(layer(torch.zeros(40, dtype=torch.float64)).detach(), range(30))


def test_integer_matrices_become_float32():
    layer = SparseLinear.from_scipy(scipy.sparse.csr_array(np.eye(3, dtype=np.int64)))

    assert layer(torch.tensor([1.0, 2.0, 3.0])).tolist() == [1.0, 2.0, 3.0]


def small_model():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(144, 20), nn.ReLU(), nn.Linear(20, 10)
    )


def test_sparsify_replaces_linear_layers_only():
    model = small_model().eval()

    assert sparsify_(model, density=0.2) is model

    kinds = [type(module) for module in model]
    assert kinds == [nn.Conv2d, nn.Flatten, SparseLinear, nn.ReLU, SparseLinear]
    assert not any(module.training for module in model)
    assert model[2].n_connections == 576
    assert model(torch.zeros(3, 1, 8, 8)).shape == (3, 10)


@pytest.mark.parametrize(
    "skip",
    [["4"], "4", lambda name, module: module.out_features == 10],
    ids=["names", "name", "function"],
)
def test_sparsify_skips_the_given_layers(skip):
    model = sparsify_(small_model(), epsilon=2, skip=skip)

    assert isinstance(model[2], SparseLinear)
    assert isinstance(model[4], nn.Linear)


def test_sparsify_skips_modules_by_name():
    model = nn.ModuleDict({"encoder": small_model(), "head": nn.Linear(10, 2)})

    sparsify_(model, density=0.5, skip=["encoder"])

    assert isinstance(model["encoder"][2], nn.Linear)
    assert isinstance(model["head"], SparseLinear)


def test_sparsify_replaces_convolutions_on_request():
    assert isinstance(sparsify_(small_model(), density=0.5, convolutions=True)[0], SparseConv2d)


def test_sparsify_returns_a_new_layer_for_a_layer():
    assert isinstance(sparsify_(nn.Linear(10, 10), density=0.5), SparseLinear)


def test_new_weights_are_those_of_a_layer_made_for_the_density():
    model = sparsify_(
        nn.Sequential(nn.Linear(30, 20), nn.Linear(20, 30)), density=0.2, weights="new", seed=5
    )

    twin = SparseLinear(30, 20, density=0.2, seed=derive_seed(5, "layer", 0))
    assert torch.equal(model[0].values, twin.values)
    assert model[0].topology == twin.topology
    assert not model[1].bias.any()
    with pytest.raises(InvalidParameterError, match="'old'"):
        sparsify_(nn.Linear(3, 3), density=0.5, weights="old")


def test_a_layer_used_twice_is_replaced_by_one_layer():
    shared = nn.Linear(10, 10)

    model = sparsify_(nn.Sequential(shared, nn.ReLU(), shared), density=0.5)

    assert model[0] is model[2]


def test_a_weight_shared_between_layers_is_refused():
    model = nn.Sequential(nn.Embedding(20, 10), nn.Linear(10, 20))
    model[1].weight = model[0].weight

    with pytest.raises(InvalidInputError, match="shared"):
        sparsify_(model, density=0.5)
    with pytest.raises(InvalidInputError, match="no dense layer"):
        sparsify_(model, density=0.5, skip=["1"])


def test_an_unknown_name_to_skip_is_an_error():
    with pytest.raises(InvalidParameterError, match="'last'"):
        sparsify_(small_model(), density=0.5, skip=["last"])


def test_a_transformer_trains_and_predicts_after_sparsify():
    block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    sparsify_(block, density=0.3)
    x = torch.randn(2, 5, 16)

    trained = block(x)
    trained.sum().backward()
    block.eval()

    assert isinstance(block.linear1, SparseLinear)
    torch.testing.assert_close(block(x), trained)
    with torch.no_grad():
        torch.testing.assert_close(block(x), trained)
