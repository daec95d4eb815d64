"""SparseConv2d against the dense convolution with the same weights."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from ratoon.errors import InvalidInputError, InvalidParameterError  # noqa: E402
from ratoon.evolution import LayerwiseStrategy, RewiringSchedule  # noqa: E402
from ratoon.topology import Rewiring  # noqa: E402
from ratoon.torch import Evolver, SparseConv2d  # noqa: E402
from ratoon.torch import conv as conv_ops  # noqa: E402


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
def test_outputs_and_gradients_equal_the_dense_layer(geometry, batch):
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


@pytest.mark.parametrize("at_once", [1, 2**19])
def test_gradients_agree_with_finite_differences(monkeypatch, at_once):
    monkeypatch.setattr(conv_ops, "NUMBERS_AT_ONCE", at_once)  # image by image, or all at once
    conv = SparseConv2d(2, 3, 2, padding=1, density=0.5, dtype=torch.float64)
    x = torch.randn(2, 2, 3, 4, dtype=torch.float64, requires_grad=True)

    def outputs(x, values, bias):
        return torch.func.functional_call(conv, {"values": values, "bias": bias}, (x,))

    assert torch.autograd.gradcheck(outputs, (x, conv.values, conv.bias))


def test_operators_pass_the_checks_of_torch_library():
    conv = SparseConv2d(2, 3, 3, density=0.5)
    buffers = (conv.grid, conv.starts, conv.packed, conv.handle.token)
    x = torch.randn(2, 2, 5, 5, requires_grad=True)
    geometry = [3, 3, 1, 1, 0, 0, 1, 1]
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")

    torch.library.opcheck(
        conv_ops.conv2d, (x, conv.values, conv.bias, *buffers, 3, geometry), test_utils=checks
    )
    for with_d_x in (True, False):
        given = (torch.randn(2, 3, 3, 3), x.detach(), conv.values.detach(), *buffers, geometry)
        torch.library.opcheck(conv_ops.conv2d_backward, (*given, with_d_x), test_utils=checks)


def test_strategies_see_the_gradients_of_absent_connections():
    class Listen(LayerwiseStrategy):
        schedule = RewiringSchedule(unit="step")

        def rewire_layer(self, layer, clock, seed):
            activations, errors = layer.signals()
            np.testing.assert_allclose(
                activations @ errors.T, dense.weight.grad.flatten(1).T, rtol=1e-9, atol=1e-12
            )
            return Rewiring.unchanged(layer.topology)

    conv = SparseConv2d(2, 3, 3, density=0.3, dtype=torch.float64)
    dense = conv.to_dense()
    evolver = Evolver(conv, torch.optim.SGD(conv.parameters(), lr=0.1), Listen())
    x = torch.randn(3, 2, 6, 5, dtype=torch.float64)
    for layer in (conv, dense):
        layer(x).square().sum().backward()

    evolver.step()


def test_second_derivatives_are_refused():
    x = torch.randn(1, 2, 5, 5, requires_grad=True)
    out = SparseConv2d(2, 3, 3, density=0.5)(x).square().sum()
    (gradient,) = torch.autograd.grad(out, x, create_graph=True)

    with pytest.raises(NotImplementedError, match="first derivatives only"):
        gradient.sum().backward()


def test_an_empty_batch_of_images_gives_an_empty_output():
    x = torch.randn(0, 4, 9, 8, requires_grad=True)
    conv = SparseConv2d(4, 6, 3, density=0.3)

    conv(x).sum().backward()

    assert not conv.values.grad.any()


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
def test_convolutions_without_a_sparse_counterpart_are_refused(dense):
    with pytest.raises(InvalidParameterError, match="not supported"):
        SparseConv2d.from_dense(dense, density=0.5)


def test_images_with_a_wrong_number_of_channels_are_refused():
    with pytest.raises(InvalidInputError, match="4 channels"):
        SparseConv2d(4, 6, 3, density=0.5)(torch.zeros(1, 3, 8, 8))
