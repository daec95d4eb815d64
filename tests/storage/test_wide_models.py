"""Small files of networks with very many inputs: work is bounded by memory, or refused."""

import numpy as np
import pytest
import scipy.sparse

import ratoon
from ratoon.cli import main
from ratoon.errors import NotEnoughMemoryError
from ratoon.estimators.state import to_state
from ratoon.layers import make_layer
from ratoon.network import SparseMLP
from ratoon.storage import Document, write_document
from ratoon.topology import Topology

N_INPUTS = 2**27
USED = np.arange(20) * 1000
SAMPLES = scipy.sparse.csr_array((np.ones(20), (np.arange(20), USED)), shape=(20, N_INPUTS))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Write a file of 26 kB whose network has 134 million inputs and 104 connections."""
    x = np.random.default_rng(0).normal(size=(20, 100))
    model = ratoon.SparseMLPClassifier((4,), epsilon=1, max_iter=1, scale=None, random_state=0)
    y = np.arange(20) % 2
    config, arrays, networks = to_state(model.partial_fit(x, y, classes=[0, 1]))
    pairs = np.arange(104) * 1000, np.arange(104) % 4
    dtype, n_states = networks[0].dtype, len(networks[0].layers[0].state)
    topology = Topology.from_pairs((N_INPUTS, 4), *pairs)
    first = make_layer((N_INPUTS, 4), topology=topology, seed=0, dtype=dtype)
    first.clear_state(n_states)
    config["n_features"] = config["shape"]["n_features"] = N_INPUTS
    network = SparseMLP([first, networks[0].layers[1]])
    path = tmp_path_factory.mktemp("wide") / "wide.ratoon"
    write_document(Document(config, arrays, [network]), path)
    assert path.stat().st_size < 40_000
    return path


@pytest.fixture
def model(path, monkeypatch):
    monkeypatch.setenv("RATOON_MEMORY_LIMIT", "100MB")
    return ratoon.load(path)


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.coefs_,
        lambda model: model.feature_importances_,
        lambda model: model.feature_strength(propagate=True),
        lambda model: model.network_.input_strength(),
        lambda model: model.partial_fit(SAMPLES, np.arange(20) % 2),
    ],
    ids=["coefs_", "feature_importances_", "feature_strength", "input_strength", "partial_fit"],
)
def test_a_result_per_input_is_refused_beyond_the_memory(model, use):
    with pytest.raises(NotEnoughMemoryError, match="134,217,728"):
        use(model)


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.ranking_.top(3),
        lambda model: model.card(),
        lambda model: model.explain(SAMPLES[:1]),
    ],
    ids=["ranking_", "card", "explain"],
)
def test_a_ranking_counts_its_temporary_copies(path, monkeypatch, use):
    monkeypatch.setenv("RATOON_MEMORY_LIMIT", "4GB")  # 30 bytes per input
    with pytest.raises(NotEnoughMemoryError, match="134,217,728"):
        use(ratoon.load(path))


def test_what_needs_connected_inputs_only_works(model, tmp_path):
    assert model.predict(SAMPLES).shape == (20,)
    assert "134217728 -> 4" in str(model.report_)
    model.save(tmp_path / "again.ratoon")
    assert (tmp_path / "again.ratoon").stat().st_size < 40_000


def test_inspect_refuses_a_model_wider_than_memory(model, path, capsys):
    assert main(["inspect", str(path)]) == 1
    assert "134,217,728 inputs" in capsys.readouterr().err
