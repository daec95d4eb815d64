"""SparseConv2d against the dense convolution with the same weights."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from ratoon.errors import InvalidInputError, InvalidParameterError  # noqa: E402
from ratoon.torch import SparseConv2d  # noqa: E402


@pytest.mark.parametrize(
    "geometry",
    [
        {},
        {"padding": 1},
        {"stride": 2, "padding": (0, 2)},
        {"dilation": (2, 1), "bias": False},
        {"kernel_size": (1, 4), "stride": (1, 3)},
    ],
    ids=str,
)
@pytest.mark.parametrize("batch", [1, 2, 8])
def test_outputs_and_gradients_are_those_of_the_dense_twin(geometry, batch):
    arguments = {"kernel_size": 3, **geometry}
    sparse = SparseConv2d(4, 6, density=0.3, dtype=torch.float64, **arguments)
    dense = sparse.to_dense()
    x = torch.randn(batch, 4, 9, 8, dtype=torch.float64)
    x_dense, x_sparse = (x.clone().requires_grad_() for _ in range(2))

    expected = dense(x_dense)
    found = sparse(x_sparse)
    d_out = torch.randn_like(expected)
    expected.backward(d_out)
    found.backward(d_out)

    torch.testing.assert_close(found, expected)
    assert found.is_contiguous()
    torch.testing.assert_close(x_sparse.grad, x_dense.grad)
    inputs, outputs = sparse.topology.pairs()
    torch.testing.assert_close(sparse.values.grad, dense.weight.grad.flatten(1)[outputs, inputs])


def test_one_image_needs_no_batch():
    conv = SparseConv2d(4, 6, 3, density=0.3)
    x = torch.randn(4, 9, 8)

    assert torch.equal(conv(x), conv(x[None])[0])


def test_from_dense_keeps_geometry_and_largest_weights():
    dense = torch.nn.Conv2d(4, 6, (3, 2), stride=2, padding=1, dilation=(1, 2))

    sparse = SparseConv2d.from_dense(dense, density=0.25)

    kept = sparse.to_dense().weight
    assert torch.equal(kept[kept != 0], dense.weight[kept != 0])
    assert kept[kept != 0].abs().min() >= dense.weight[kept == 0].abs().max()
    assert sparse(torch.zeros(1, 4, 9, 8)).shape == dense(torch.zeros(1, 4, 9, 8)).shape


@pytest.mark.parametrize(
    "dense",
    [
        torch.nn.Conv2d(4, 6, 3, groups=2),
        torch.nn.Conv2d(4, 6, 3, padding="same"),
        torch.nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect"),
    ],
)
def test_convolutions_without_a_sparse_twin_are_refused(dense):
    with pytest.raises(InvalidParameterError, match="no sparse twin"):
        SparseConv2d.from_dense(dense, density=0.5)


def test_images_of_other_channels_are_refused():
    with pytest.raises(InvalidInputError, match="4 channels"):
        SparseConv2d(4, 6, 3, density=0.5)(torch.zeros(1, 3, 8, 8))
