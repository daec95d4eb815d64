import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.network import SparseMLP
from ratoon.storage import Document, read_document, write_document
from ratoon.topology import Topology
from tests.storage.cases import a_document, a_network, from_bytes, same_network, to_bytes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_states", [0, 1, 2])
@pytest.mark.parametrize("kind", ["model", "checkpoint"])
def test_a_document_is_read_as_it_was_written_to_the_bit(tmp_path, dtype, n_states, kind):
    document = a_document(kind, dtype=dtype, n_states=n_states)
    write_document(document, tmp_path / "m.ratoon")
    found = read_document(tmp_path / "m.ratoon", kind=kind)

    assert found.kind == kind
    assert found.config == document.config
    assert same_network(found.networks[0], document.networks[0])
    assert found.arrays.keys() == document.arrays.keys()
    for name, array in document.arrays.items():
        assert found.arrays[name].dtype == array.dtype, name
        assert found.arrays[name].shape == array.shape, name
        assert found.arrays[name].tolist() == array.tolist(), name


def test_equal_documents_make_equal_files(tmp_path):
    for name in ("a", "b"):
        write_document(a_document(), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() == to_bytes(a_document())


def test_a_model_can_omit_the_optimizer_state(tmp_path):
    document = a_document(n_states=2)
    write_document(document, tmp_path / "m", optimizer=False)
    found = read_document(tmp_path / "m").networks[0]
    assert all(layer.state == [] and layer.bias_state == [] for layer in found.layers)
    assert found.layers[0].weights.tobytes() == document.networks[0].layers[0].weights.tobytes()
    assert len(document.networks[0].layers[0].state) == 2, "the network itself keeps its state"


def test_a_loaded_network_predicts_the_same():
    network = a_network((50, 40, 4))
    x = np.random.default_rng(0).normal(size=(9, 50)).astype(np.float32)
    found = from_bytes(to_bytes(Document({}, networks=[network]))).networks[0]
    assert found.outputs(x).tobytes() == network.outputs(x).tobytes()


def test_loaded_arrays_can_be_trained_and_indices_cannot_be_changed():
    layer = from_bytes(to_bytes(a_document())).networks[0].layers[0]
    layer.weights += 1
    with pytest.raises(ValueError, match="read-only"):
        layer.topology.packed[0] = 7


@given(
    shape=st.tuples(st.integers(1, 400), st.integers(1, 400)),
    density=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_any_topology_is_read_as_it_was_written(shape, density, seed):
    topology = Topology.random(shape, round(density * shape[0] * shape[1]), seed=seed)
    network = SparseMLP.start(shape, seed=seed, density=0.5, topologies=[topology])
    found = from_bytes(to_bytes(Document({}, networks=[network]))).networks[0]
    assert found.layers[0].topology == topology


def test_several_networks_and_no_network_are_read_as_written():
    networks = [a_network((4, 3)), a_network((9, 8, 7), dtype=np.float64)]
    found = from_bytes(to_bytes(Document({}, networks=networks)))
    assert all(map(same_network, found.networks, networks))
    assert from_bytes(to_bytes(Document({}))).networks == []


@pytest.mark.parametrize(
    "array",
    [
        np.array(3.5),
        np.zeros((0, 4), dtype=np.int16),
        np.arange(24, dtype=">i4").reshape(2, 3, 4),
        np.arange(10, dtype=np.float16)[::-2],
        np.array([], dtype="U3"),
        np.array([["a", "bcd"], ["", "\u2028\U0001f33e"]]),
        np.array([], dtype=object),
        np.array([2**64 - 1], dtype=np.uint64),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_of_many_types_are_read_as_written(array):
    found = from_bytes(to_bytes(Document({}, {"a": array}))).arrays["a"]
    assert found.shape == array.shape
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.tolist() == array.tolist()


@pytest.mark.parametrize(
    "array",
    [
        np.array([1 + 2j]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.array([b"bytes"]),
        np.array([1, "a", None], dtype=object),
        np.array(["\ud800"]),
        np.array([np.nan]),
        np.array([1.0, -np.inf], dtype=np.float32),
    ],
    ids=lambda array: str(array.dtype),
)
def test_arrays_that_cannot_be_stored_are_refused_by_name(tmp_path, array):
    with pytest.raises(InvalidInputError, match="bad"):
        write_document(Document({}, {"bad": array}), tmp_path / "m")


@pytest.mark.parametrize(
    "config",
    [
        {"a": (1, 2)},
        {"a": np.float64(1)},
        {"a": float("nan")},
        {"a": 2**64},
        {1: "a"},
        {"a": {"b": {1, 2}}},
        {"a": "\ud800"},
        {"a": object()},
    ],
    ids=["tuple", "NumPy", "nan", "large", "number as key", "set", "surrogate", "object"],
)
def test_configuration_that_json_would_change_is_refused(tmp_path, config):
    with pytest.raises(InvalidInputError):
        write_document(Document(config), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_network_that_is_not_finite_is_never_saved(tmp_path, value):
    for name in ("weights", "bias"):
        document = a_document()
        getattr(document.networks[0].layers[1], name)[1] = value
        with pytest.raises(InvalidInputError, match=rf"layers\.1\.{name}' holds .* not finite"):
            write_document(document, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_network_whose_arrays_do_not_fit_is_never_saved(tmp_path):
    document = a_document()
    document.networks[0].layers[0].weights = np.zeros(3, dtype=np.float32)
    with pytest.raises(InvalidInputError, match="rule 7"):
        write_document(document, tmp_path / "m")


def test_an_impossible_network_is_never_saved(tmp_path):
    document = a_document()
    document.networks[0].layers[0].bias_state = []
    for impossible in (document, Document({}, networks=[SparseMLP([])])):
        with pytest.raises(InvalidInputError):
            write_document(impossible, tmp_path / "m")


def test_a_configuration_too_large_for_the_header_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"rule 2, header length"):
        write_document(Document({"a": "x" * 2**20}), tmp_path / "m")


def test_only_models_and_checkpoints_exist(tmp_path):
    with pytest.raises(InvalidParameterError, match="kind"):
        write_document(Document({}, kind="pickle"), tmp_path / "m")


def test_saving_makes_no_second_copy_and_loading_one_of_the_indices(tmp_path):
    # 2 million connections: 8 MB of indices, 8 MB of weights, 8 MB of momentum.
    network = a_network((4000, 4000), density=0.125)
    document = Document({}, networks=[network])
    megabyte = 1e6
    tracemalloc.start()
    try:
        write_document(document, tmp_path / "m")
        saving = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        read_document(tmp_path / "m")
        loading = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert saving < 3 * megabyte
    assert loading < (tmp_path / "m").stat().st_size + 3 * megabyte
