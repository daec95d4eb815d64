"""torch.compile: same results, and no recompilation for a new topology."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402
from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402

from ratoon.evolution import LayerwiseStrategy, RewiringSchedule  # noqa: E402
from ratoon.torch import Evolver, SparseConv2d, SparseGRU, SparseLinear  # noqa: E402

EVERY_STEP = RewiringSchedule(every=1, unit="step")


@pytest.fixture
def graphs():
    torch._dynamo.reset()
    yield CompileCounterWithBackend("aot_eager")
    torch._dynamo.reset()


def small_model():
    torch.manual_seed(0)
    return nn.Sequential(
        SparseLinear(30, 40, density=0.2, seed=0),
        nn.ReLU(),
        SparseLinear(40, 20, density=0.2, seed=1, bias=False),
        nn.Tanh(),
        nn.Linear(20, 5),
    )


def train(model, run, strategy, n_steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    evolver = Evolver(model, optimizer, strategy, EVERY_STEP, total_steps=100)
    losses = []
    for _ in range(n_steps):
        optimizer.zero_grad()
        loss = run(torch.linspace(-1, 1, 16 * 30).reshape(16, 30)).square().mean()
        loss.backward()
        optimizer.step()
        evolver.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("strategy", ["set", "rigl"])
def test_rewirings_do_not_recompile_or_change_results(graphs, strategy):
    plain, compiled = small_model(), small_model()
    run = torch.compile(compiled, backend=graphs, fullgraph=True)

    expected = train(plain, plain, strategy, 8)
    found = train(compiled, run, strategy, 8)

    assert found == pytest.approx(expected, rel=1e-6)
    assert graphs.frame_count == 1
    assert plain[0].topology == compiled[0].topology


class Grow(LayerwiseStrategy):
    """Give every layer 10 more connections each time."""

    schedule = EVERY_STEP

    def rewire_layer(self, layer, clock, seed):
        return layer.topology.regrow(np.arange(layer.topology.n_connections), 10, seed=seed)


@torch._dynamo.config.patch(
    # Without these PyTorch takes the sizes of all parameters and buffers for constants.
    force_parameter_static_shapes=False,
    force_nn_module_property_static_shapes=False,
)
def test_a_changing_number_of_connections_needs_two_graphs(graphs):
    plain, compiled = small_model(), small_model()
    run = torch.compile(compiled, backend=graphs, fullgraph=True)

    expected = train(plain, plain, Grow(), 6)
    found = train(compiled, run, Grow(), 6)

    assert found == pytest.approx(expected, rel=1e-6)
    # One for the first size, one for all sizes.
    assert graphs.frame_count == 2


def test_batches_of_any_size_need_few_graphs(graphs):
    model = small_model()
    run = torch.compile(model, backend=graphs, fullgraph=True)
    for batch in (16, 24, 32, 13, 21):
        x = torch.randn(batch, 30)
        torch.testing.assert_close(run(x), model(x))

    # The first size; then multiples of 8 and others, which must be padded.
    assert graphs.frame_count <= 3


@pytest.mark.parametrize(
    ("layer", "shape"),
    [(SparseConv2d(3, 8, 3, density=0.3), (4, 3, 8, 8)), (SparseGRU(6, 8, density=0.3), (3, 8, 6))],
    ids=["conv", "gru"],
)
def test_other_layers_compile_in_one_graph(graphs, layer, shape):
    x = torch.randn(shape)
    run = torch.compile(layer, backend=graphs, fullgraph=True)

    torch.testing.assert_close(run(x), layer(x))
    assert graphs.frame_count == 1


def test_exported_programs_contain_the_sparse_operator():
    model = small_model().eval()
    x = torch.randn(16, 30)

    program = torch.export.export(model, (x,))

    names = {str(node.target) for node in program.graph.nodes}
    assert "ratoon.linear.default" in names
    torch.testing.assert_close(program.module()(x), model(x))
