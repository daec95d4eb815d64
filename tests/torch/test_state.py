"""Saving, loading and editing the state of a module; native code gets checked indices only."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import safetensors.torch  # noqa: E402

from ratoon.errors import InvalidInputError  # noqa: E402
from ratoon.topology import Topology  # noqa: E402
from ratoon.torch import SparseLinear, handles  # noqa: E402


@pytest.fixture
def layer():
    return SparseLinear(30, 20, density=0.2, seed=1)


@pytest.fixture
def x():
    return torch.randn(8, 30)


def test_a_state_loads_into_a_layer_of_another_topology_and_size(layer, x):
    other = SparseLinear(30, 20, density=0.05, seed=2)
    values = other.values

    other.load_state_dict(layer.state_dict())

    assert other.values is values
    assert other.topology == layer.topology
    assert torch.equal(other(x), layer(x))


def test_a_loaded_layer_trains_while_an_old_graph_is_alive(layer, x):
    other = SparseLinear(30, 20, density=0.05, seed=2)
    old_loss = other(x).sum()
    old_loss.backward()

    other.load_state_dict(layer.state_dict())
    other(x).sum().backward()

    assert other.values.grad.shape == (layer.n_connections,)


def test_loading_by_assignment_works(layer, x):
    other = SparseLinear(30, 20, density=0.05, seed=2)

    other.load_state_dict(copy.deepcopy(layer.state_dict()), assign=True)

    assert torch.equal(other(x), layer(x))


def test_safetensors_carry_the_topology(layer, x, tmp_path):
    model = torch.nn.Sequential(layer, torch.nn.ReLU(), torch.nn.Linear(20, 3))
    safetensors.torch.save_file(model.state_dict(), tmp_path / "model.safetensors")
    other = torch.nn.Sequential(
        SparseLinear(30, 20, density=0.05, seed=2), torch.nn.ReLU(), torch.nn.Linear(20, 3)
    )

    other.load_state_dict(safetensors.torch.load_file(tmp_path / "model.safetensors"))

    assert torch.equal(other(x), model(x))


def test_a_saved_state_needs_no_unpickling_of_code(layer):
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)

    state = torch.load(file, weights_only=True)

    assert set(state) == {"values", "bias", "grid", "starts", "packed"}


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_equal_and_independent(layer, x, copied):
    other = copied(layer)
    assert torch.equal(other(x), layer(x))

    other.topology = SparseLinear(30, 20, density=0.2, seed=9).topology

    assert other.topology != layer.topology
    assert not torch.equal(other(x), layer(x))


def out_of_range(state):
    state["packed"][0] = 29 << 16 | 20


def negative(state):
    state["packed"][0] = -1


def duplicate(state):
    state["packed"][1] = state["packed"][0]


def unsorted(state):
    state["packed"][:2] = state["packed"][:2].flip(0)


def too_few(state):
    state["packed"] = state["packed"][:-1]


def wild_starts(state):
    state["starts"][-1] = 2**40


def other_shape(state):
    state["grid"][0] = 31


def wild_grid(state):
    state["grid"][2] = 0


def short_grid(state):
    state["grid"] = state["grid"][:4]


def other_type(state):
    state["packed"] = state["packed"].float()


def two_dimensions(state):
    state["packed"] = state["packed"][None]


def values_missing(state):
    state["values"] = state["values"][1:]


DAMAGES = [
    out_of_range,
    negative,
    duplicate,
    unsorted,
    too_few,
    wild_starts,
    other_shape,
    wild_grid,
    short_grid,
    other_type,
    two_dimensions,
    values_missing,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_is_refused_and_changes_nothing(layer, x, damage):
    state = copy.deepcopy(layer.state_dict())
    damage(state)
    other = SparseLinear(30, 20, density=0.05, seed=2)
    before = other(x)

    with pytest.raises(RuntimeError, match="the sparse layer: "):
        other.load_state_dict(state)

    assert torch.equal(other(x), before)


# Values are no index; and a topology for 31 inputs is valid, the next test is about it.
@pytest.mark.parametrize("damage", [d for d in DAMAGES if d not in (values_missing, other_shape)])
@pytest.mark.parametrize("how", ["buffers", "pickle"])
def test_damaged_buffers_never_reach_native_code(layer, x, damage, how):
    if how == "buffers":
        layer(x)  # has been checked, and must be again
        damage(layer._buffers)
    else:
        state = layer.__getstate__()
        damage(state["_buffers"])
        layer = SparseLinear.__new__(SparseLinear)
        layer.__setstate__(state)

    with pytest.raises(InvalidInputError):
        layer(x)


def test_a_topology_of_another_shape_in_the_buffers_is_refused(layer, x):
    other_shape(layer._buffers)

    with pytest.raises(ValueError, match="31"):
        layer(x)


def test_valid_edits_of_the_buffers_take_effect(layer, x):
    other = SparseLinear(30, 20, density=0.2, seed=5)
    other.load_state_dict({**other.state_dict(), "bias": layer.bias, "values": layer.values})
    layer(x)

    layer.packed.copy_(other.packed)
    assert torch.equal(layer(x), other(x))

    layer.packed = SparseLinear(30, 20, density=0.2, seed=1).packed
    assert not torch.equal(layer(x), other(x))


def test_random_edits_are_refused_or_give_the_edited_topology(layer, x):
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        edited = copy.deepcopy(layer)
        name = rng.choice(["grid", "starts", "packed"])
        buffer = getattr(edited, name)
        place = int(rng.integers(buffer.numel()))
        buffer[place] += int(rng.choice([-1, 1, 2, -(2**16), 2**16, 7 * 2**16]))
        try:
            out = edited(x)
        except ValueError:
            refused += 1
        else:
            torch.testing.assert_close(out, edited.to_dense()(x))
    assert 0 < refused < 200


def test_unchanged_buffers_are_checked_once(layer, x, monkeypatch):
    seen = []
    plain = Topology.checked
    monkeypatch.setattr(Topology, "checked", lambda *a: seen.append(1) or plain(*a))
    other = copy.deepcopy(layer)
    for _ in range(3):
        other(x).sum().backward()

    assert len(seen) == 1


def test_buffers_rewritten_with_equal_content_keep_their_topology(layer, x, monkeypatch):
    before = layer.topology
    layer.packed.copy_(layer.packed.clone())  # as a broadcast between processes does
    monkeypatch.setattr(handles, "checked_topology", lambda *a: pytest.fail("checked again"))

    assert layer.topology is before


def test_a_state_without_topology_loads_into_a_layer_with_the_same_topology(layer, x):
    state = {name: layer.state_dict()[name] for name in ("values", "bias")}
    twin = SparseLinear(30, 20, density=0.2, seed=1, init="zero")
    other = SparseLinear(30, 20, density=0.1, seed=1)

    twin.load_state_dict(state, strict=False)

    assert torch.equal(twin(x), layer(x))
    with pytest.raises(RuntimeError, match="size mismatch"):
        other.load_state_dict(state, strict=False)


def test_the_number_type_can_be_changed(layer, x):
    expected = layer(x)

    layer.double()

    torch.testing.assert_close(layer(x.double()).float(), expected)


def test_changing_the_topology_between_forward_and_backward_raises(layer, x):
    out = layer(x).sum()

    layer.topology = SparseLinear(30, 20, density=0.2, seed=5).topology

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()
