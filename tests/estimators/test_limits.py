"""Layers that may have connections only where prior knowledge says."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from ratoon import SparseMLPClassifier, SparseMLPRegressor, load
from ratoon.datasets import Within, groups_from_pairs
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.evolution import STRATEGIES, GuidedSET, LayerwiseStrategy, RewiringSchedule
from ratoon.initialise import start_within
from ratoon.layers import make_layer
from ratoon.storage import Checkpoint, ResumeError
from ratoon.topology import Topology

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 30))
Y = (X[:, :3].sum(axis=1) > 0).astype(int)
ALLOWED = scipy.sparse.random_array((30, 12), density=0.4, random_state=np.random.default_rng(1))
HOW = {"max_iter": 6, "batch_size": 10, "random_state": 0}


def is_inside(network, allowed=ALLOWED):
    used = network.layers[0].topology.to_csr().toarray() != 0
    return not (used & (allowed.toarray() == 0)).any()


@pytest.mark.parametrize("evolution", [*STRATEGIES, GuidedSET(until=1.0)], ids=str)
def test_every_strategy_keeps_to_the_limit_from_fit_to_fit(evolution):
    model = SparseMLPClassifier(topology=[Within(ALLOWED)], evolution=evolution, **HOW)
    model.fit(X, Y).partial_fit(X, Y)
    assert model.hidden_layer_sizes == "auto"
    assert model.network_.widths == (30, 12, 2)
    assert is_inside(model.network_)
    if evolution in ("set", "rigl", "gse"):
        assert model.network_.layers[0].n_connections == 72


def test_connections_move_within_the_limit():
    model = SparseMLPClassifier(topology=[Within(ALLOWED)], evolution="set", **HOW).fit(X, Y)
    fixed = clone(model).set_params(evolution="static").fit(X, Y)
    assert is_inside(fixed.network_)
    moved = model.network_.layers[0].topology, fixed.network_.layers[0].topology
    assert moved[0] != moved[1]
    assert model.report_.layers[0].rewired > 0
    assert model.report_.layers[0].requested_density is None


def test_a_limit_can_define_the_initial_connections():
    start = scipy.sparse.coo_array((np.ones(5), (ALLOWED.coords[0][:5], ALLOWED.coords[1][:5])))
    start.resize(ALLOWED.shape)
    within = Within(ALLOWED, start=start)
    model = SparseMLPRegressor(topology=[within, None], evolution="static", **HOW).fit(X, X[:, 0])
    used = model.network_.layers[0].topology.to_csr() != 0
    assert (used != (start != 0)).nnz == 0


def test_a_saved_model_keeps_its_limit(tmp_path):
    model = SparseMLPClassifier(topology=[Within(ALLOWED)], evolution="rigl", **HOW).fit(X, Y)
    model.save(tmp_path / "m.ratoon")
    again = load(tmp_path / "m.ratoon")
    for one in (again, pickle.loads(pickle.dumps(model))):
        layer = one.network_.layers[0]
        assert layer.allowed == model.network_.layers[0].allowed
        assert_array_equal(one.predict_proba(X), model.predict_proba(X))
        one.partial_fit(X, Y)
        assert is_inside(one.network_)
    model.partial_fit(X, Y)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.topology[1] is None
    assert is_inside(again.fit(X, Y).network_), "a fit that begins anew keeps to it, too"
    assert again.network_.layers[0].n_connections == model.network_.layers[0].n_connections


def test_training_continues_only_within_the_same_limit(tmp_path):
    def train(matrix):
        how = {**HOW, "callbacks": [Checkpoint(tmp_path)]}
        return SparseMLPClassifier(topology=[Within(matrix)], **how).fit(X, Y)

    first = train(ALLOWED)
    assert_array_equal(train(ALLOWED).predict_proba(X), first.predict_proba(X))
    other = scipy.sparse.random_array((30, 12), density=0.4, random_state=np.random.default_rng(2))
    with pytest.raises(ResumeError, match=r"network.layers\[0\].allowed"):
        train(other)


def test_limits_work_in_cross_validation():
    model = SparseMLPClassifier(topology=[Within(ALLOWED)], **HOW)
    assert np.isfinite(cross_val_score(model, X, Y, cv=3)).all()


def test_groups_become_a_limit():
    names = [f"g{k}" for k in range(30)]
    pairs = [(f"g{k}", f"pathway{k % 5}") for k in range(30)]
    groups = groups_from_pairs(pairs, names)
    model = SparseMLPClassifier(topology=groups.within(density=0.5), evolution="set", **HOW)
    model.fit(X, Y)
    assert model.network_.widths == (30, 5, 2)
    assert is_inside(model.network_, groups.matrix)
    assert model.network_.layers[0].n_connections == 15


def test_a_plan_knows_how_many_connections_there_will_be():
    within = Within(ALLOWED)
    model = SparseMLPClassifier(topology=[within], dtype="float32", **HOW)
    planned = model.plan(30, n_samples=90)
    free = SparseMLPClassifier((12,), density=0.2, dtype="float32", **HOW).plan(30, n_samples=90)
    model.fit(X, Y)
    assert planned.connections == tuple(layer.n_connections for layer in model.network_.layers)
    assert planned.connections[0] == free.connections[0] == within.n_connections
    assert planned.parameter_bytes - 4 * within.n_allowed < free.parameter_bytes + 12 * 100


# ----------------------------------------------------------------------------- what is refused


@dataclass(frozen=True)
class Blind(LayerwiseStrategy):
    """A strategy by somebody who does not know about limits."""

    @property
    def schedule(self):
        return RewiringSchedule()

    def rewire_layer(self, layer, clock, seed):
        return layer.topology.regrow(np.arange(3), layer.weights.size - 3, seed=seed)


def test_a_strategy_that_grows_outside_is_stopped():
    model = SparseMLPClassifier(topology=[Within(ALLOWED)], evolution=Blind(), **HOW)
    with pytest.raises(InvalidInputError, match=r"a rewiring has .* limit allows none"):
        model.fit(X, Y)


@pytest.mark.parametrize("density", [0.0, -1.0, 1.5, float("nan")])
def test_the_density_of_a_limit_is_in_0_1(density):
    with pytest.raises(InvalidParameterError, match="share of the allowed positions"):
        Within(ALLOWED, density)


@pytest.mark.parametrize("given", [{"matrix": np.eye(3)}, {"matrix": ALLOWED, "start": [1]}])
def test_only_sparse_matrices_are_limits(given):
    with pytest.raises(InvalidParameterError, match="SciPy sparse matrix"):
        Within(**given)


def test_a_start_outside_its_limit_is_refused():
    start = scipy.sparse.csr_array(ALLOWED.toarray() == 0)
    with pytest.raises(InvalidInputError, match="216 of 216 connections where the layer's"):
        start_within(Within(ALLOWED, start=start), seed=0)
    with pytest.raises(InvalidInputError, match="`start` is 12 -> 30, the limit is 30 -> 12"):
        start_within(Within(ALLOWED, start=ALLOWED.T), seed=0)
    with pytest.raises(InvalidInputError, match="without any connection"):
        start_within(Within(scipy.sparse.coo_array((3, 3))), seed=0)


def test_a_limit_of_another_shape_is_refused():
    with pytest.raises(InvalidParameterError, match="29 -> 12, but layer 0"):
        SparseMLPClassifier(topology=[Within(ALLOWED[:29])], **HOW).fit(X, Y)
    layer = make_layer((3, 3), density=0.5, seed=0)
    with pytest.raises(InvalidInputError, match="cannot have a limit 4 -> 4"):
        type(layer)(layer.topology, layer.stored, layer.bias, allowed=Topology.full((4, 4)))
