"""SparseLinear against a dense layer with the same weights."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from ratoon import kernels  # noqa: E402
from ratoon.errors import InvalidInputError, InvalidParameterError  # noqa: E402
from ratoon.layers import make_layer  # noqa: E402
from ratoon.topology import Topology  # noqa: E402
from ratoon.torch import SparseLinear, ops  # noqa: E402


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


def tolerance(dtype):
    # Sums of at most 40 products of numbers around 1, in another order.
    return 1e-5 if dtype == torch.float32 else 1e-13


def gradients(module, x, d_out):
    x = x.clone().requires_grad_()
    module.zero_grad()
    module(x).backward(d_out)
    return x.grad


@pytest.mark.parametrize("leading", [(), (1,), (3,), (8,), (9,), (2, 4), (2, 3, 5), (600,), (0,)])
@pytest.mark.parametrize("bias", [True, False])
def test_outputs_and_gradients_equal_the_dense_layer(dtype, leading, bias):
    sparse = SparseLinear(40, 30, density=0.3, bias=bias, dtype=dtype)
    if bias:
        torch.nn.init.normal_(sparse.bias)
    dense = sparse.to_dense()
    x = torch.randn(*leading, 40, dtype=dtype)
    d_out = torch.randn(*leading, 30, dtype=dtype)
    close = {"rtol": tolerance(dtype), "atol": 10 * tolerance(dtype)}

    torch.testing.assert_close(sparse(x), dense(x), **close)
    torch.testing.assert_close(gradients(sparse, x, d_out), gradients(dense, x, d_out), **close)
    inputs, outputs = sparse.topology.pairs()
    scale = {"rtol": close["rtol"], "atol": close["atol"] * 30}  # summed over up to 600 samples
    torch.testing.assert_close(sparse.values.grad, dense.weight.grad[outputs, inputs], **scale)
    if bias:
        torch.testing.assert_close(sparse.bias.grad, dense.bias.grad, **scale)


@pytest.mark.parametrize("batch", [1, 5, 8])
def test_gradients_agree_with_finite_differences(batch):
    layer = SparseLinear(7, 5, density=0.4, dtype=torch.float64)
    x = torch.randn(batch, 7, dtype=torch.float64, requires_grad=True)

    def outputs(x, values, bias):
        return torch.func.functional_call(layer, {"values": values, "bias": bias}, (x,))

    assert torch.autograd.gradcheck(outputs, (x, layer.values, layer.bias))


@pytest.mark.parametrize(
    "arrange",
    [
        lambda x: x.t().contiguous().t(),  # batch innermost, as sparse layers return it
        lambda x: x.repeat_interleave(2, dim=1)[:, ::2],
        lambda x: x[:1].expand_as(x),
        lambda x: x.flip(0),
    ],
    ids=["transposed", "strided", "expanded", "flipped"],
)
@pytest.mark.parametrize("batch", [5, 16])
def test_the_memory_layout_of_the_input_does_not_matter(arrange, batch):
    layer = SparseLinear(20, 10, density=0.5)
    x = arrange(torch.randn(batch, 20))

    torch.testing.assert_close(layer(x), layer(x.clone(memory_format=torch.contiguous_format)))


def test_unaligned_inputs_are_read_correctly():
    layer = SparseLinear(20, 10, density=0.5)
    raw = bytearray(1 + 4 * 8 * 20)
    raw[1:] = torch.randn(20, 8).numpy().tobytes()
    x = torch.frombuffer(raw, dtype=torch.float32, offset=1).reshape(20, 8).t()
    assert x.data_ptr() % 4 != 0

    torch.testing.assert_close(layer(x), layer(x.clone()))


@pytest.mark.parametrize("batch", [0, 1, 5, 16])
@pytest.mark.parametrize("bias", [True, False])
def test_calls_of_kernels_and_of_operators_have_the_same_results(batch, bias, monkeypatch):
    layer = SparseLinear(20, 10, density=0.5, bias=bias)
    x, weight = torch.randn(batch, 20), torch.randn(batch, 10)
    found = []
    for is_eager in (True, False):
        monkeypatch.setattr("ratoon.torch.connections.is_eager", lambda *_, now=is_eager: now)
        layer.zero_grad()
        given = x.clone().requires_grad_()
        out = layer(given)
        (out * weight).sum().backward()
        with torch.no_grad():
            again = layer(given)
        found.append([out, again, *(each.grad for each in (given, *layer.parameters()))])

    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_operators_are_called_where_pytorch_watches_them():
    layer, seen = SparseLinear(20, 10, density=0.5), []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Watch():
        layer(torch.randn(8, 20))
    assert "ratoon.linear.default" in seen


def test_an_input_changed_before_the_backward_pass_is_noticed():
    layer = SparseLinear(20, 10, density=0.5)
    x = torch.randn(20, 8).t()
    out = layer(x)
    x.zero_()

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_operators_pass_the_checks_of_torch_library():
    layer = SparseLinear(6, 4, density=0.5, dtype=torch.float64)
    x = torch.randn(6, 8, dtype=torch.float64, requires_grad=True)
    buffers = (layer.grid, layer.starts, layer.packed, layer.handle.token)
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")

    torch.library.opcheck(ops.linear, (x, layer.values, layer.bias, *buffers, 4), test_utils=checks)
    torch.library.opcheck(
        ops.linear_backward,
        (torch.randn(4, 8).double(), x.detach(), layer.values.detach(), *buffers, True),
        test_utils=checks,
    )
    torch.library.opcheck(ops.to_rows, (torch.randn(5, 3, requires_grad=True),))


def test_the_gradient_of_the_input_is_computed_only_when_needed(monkeypatch):
    wanted = []
    plain = kernels.backward
    monkeypatch.setattr(
        kernels, "backward", lambda *a, **k: wanted.append(k["with_dx"]) or plain(*a, **k)
    )
    layer = SparseLinear(20, 10, density=0.5)

    layer(torch.randn(8, 20)).sum().backward()
    layer(torch.randn(8, 20, requires_grad=True)).sum().backward()

    assert wanted == [False, True]


def test_the_backward_kernel_does_not_run_when_only_the_bias_is_trained(monkeypatch):
    monkeypatch.setattr(kernels, "backward", lambda *a, **k: pytest.fail("called"))
    layer = SparseLinear(20, 10, density=0.5)
    layer.values.requires_grad_(False)

    layer(torch.randn(8, 20)).sum().backward()

    assert torch.equal(layer.bias.grad, torch.full((10,), 8.0))


def test_nothing_is_transposed_between_sparse_layers(monkeypatch):
    turned = []
    plain = kernels.rows_of
    monkeypatch.setattr(kernels, "rows_of", lambda *a, **k: turned.append(a) or plain(*a, **k))
    model = torch.nn.Sequential(
        SparseLinear(20, 30, density=0.2), torch.nn.ReLU(), SparseLinear(30, 10, density=0.2)
    )

    model(torch.randn(16, 20)).sum().backward()

    assert len(turned) == 2  # the input, and the gradient of the output


def test_second_derivatives_are_refused_with_advice():
    layer = SparseLinear(6, 4, density=0.5)
    x = torch.randn(3, 6, requires_grad=True)
    (gradient,) = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)

    with pytest.raises(NotImplementedError, match="first derivatives only"):
        gradient.sum().backward()


def test_a_layer_works_on_the_memory_of_numpy_arrays():
    topology = Topology.random((20, 10), 60, seed=0)
    weights = np.ones(60, dtype=np.float32)
    layer = SparseLinear.from_connections(topology, weights)

    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    layer(torch.ones(8, 20)).sum().backward()
    optimizer.step()

    np.testing.assert_array_equal(weights, -3.0)  # 1 - 0.5 * 8
    assert np.shares_memory(layer.values.detach().numpy(), weights)


def test_a_layer_starts_as_a_layer_of_the_core_library_does():
    ours = SparseLinear(100, 50, epsilon=3, seed=7, start="paper", init="set")
    theirs = make_layer((100, 50), epsilon=3, seed=7, start="paper", init="set")

    assert ours.topology == theirs.topology
    np.testing.assert_array_equal(ours.values.detach().numpy(), theirs.weights)


def test_a_graph_gives_gradients_after_its_layer_is_deleted():
    x = torch.randn(4, 6, requires_grad=True)
    out = SparseLinear(6, 3, density=0.5)(x)  # the module is gone after this line

    out.sum().backward()

    assert x.grad.shape == (4, 6)


def test_the_number_of_threads_does_not_change_results():
    layer = SparseLinear(2000, 1000, density=0.05)
    # Few enough numbers that PyTorch does its own part on one thread either way.
    x = torch.randn(16, 2000)
    before = torch.get_num_threads()
    found = []
    try:
        for n_threads in (1, 2):
            torch.set_num_threads(n_threads)
            layer.zero_grad()
            out = layer(x)
            out.square().sum().backward()
            found.append((out.detach(), layer.values.grad))
    finally:
        torch.set_num_threads(before)

    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])


def test_autocast_computes_in_the_type_of_the_weights():
    layer = SparseLinear(20, 10, density=0.5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(torch.nn.Linear(5, 20)(torch.randn(3, 5)))

    assert out.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_layer_in_half_precision_says_what_to_do(dtype):
    layer = SparseLinear(20, 10, density=0.5)
    with pytest.raises(InvalidInputError, match="Convert one of the two"):
        layer(torch.zeros(3, 20, dtype=dtype))
    with pytest.raises(InvalidInputError, match=r"`\.float\(\)`, and use `torch\.autocast`"):
        layer.to(dtype)(torch.zeros(3, 20, dtype=dtype))
    assert layer.float()(torch.zeros(3, 20)).dtype == torch.float32


def test_a_wide_minibatch_has_the_outputs_of_its_parts():
    layer = SparseLinear(200, 100, density=0.1)
    x = torch.randn(600, 200)
    for _ in range(3):  # from the third time on, wide minibatches are computed run by run
        out = layer(x)
    for first in (0, 128, 592):
        assert torch.equal(out[first : first + 8], layer(x[first : first + 8]))


def test_a_layer_works_under_inference_mode_and_when_made_there():
    x = torch.randn(3, 20)
    outside = SparseLinear(20, 10, density=0.5)
    with torch.inference_mode():
        inside = SparseLinear(20, 10, density=0.5)
        torch.testing.assert_close(inside(x), outside(x))
        torch.testing.assert_close(inside(x), outside(x))


def test_the_repr_shows_connections_and_density():
    text = repr(SparseLinear(100, 50, density=0.1, bias=False))

    assert text == "SparseLinear(100, 50, connections=500, density=0.1, bias=False)"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, InvalidParameterError),
        ({"density": 0.1, "epsilon": 1.0}, InvalidParameterError),
        ({"density": 0.0}, InvalidParameterError),
        ({"density": 1.5}, InvalidParameterError),
        ({"density": 0.1, "start": "anyhow"}, InvalidParameterError),
        ({"density": 0.1, "device": "cuda"}, InvalidParameterError),
        ({"density": 0.1, "dtype": torch.float16}, InvalidParameterError),
    ],
)
def test_wrong_arguments_are_refused(arguments, error):
    with pytest.raises(error):
        SparseLinear(20, 10, **arguments)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(3, 19), "takes 20 features"),
        (torch.tensor(1.0), "takes 20 features"),
        (torch.zeros(3, 20, dtype=torch.float64), "float64"),
        (torch.zeros(3, 20, dtype=torch.int64), "int64"),
    ],
)
def test_wrong_inputs_are_refused(x, message):
    with pytest.raises(InvalidInputError, match=message):
        SparseLinear(20, 10, density=0.5)(x)


def test_arrays_that_do_not_fit_the_topology_are_refused():
    topology = Topology.random((20, 10), 60, seed=0)

    with pytest.raises(InvalidInputError, match="values"):
        SparseLinear.from_connections(topology, np.ones(59))
    with pytest.raises(InvalidInputError, match="bias"):
        SparseLinear.from_connections(topology, np.ones(60), np.ones(11))


def test_a_layer_too_large_for_a_dense_matrix_works():
    layer = SparseLinear(200_000, 200_000, epsilon=1)  # 4e10 positions: 160 GB if dense
    x = torch.ones(2, 200_000)

    layer(x).sum().backward()

    assert layer.n_connections == 400_000
    assert torch.equal(layer.values.grad, torch.full((400_000,), 2.0))
