"""Weights in bfloat16, from `fit` to the file."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from ratoon import SparseMLPClassifier, SparseMLPRegressor, load
from ratoon.distributed import DataParallel, SingleRank
from ratoon.errors import InvalidParameterError
from ratoon.evolution import SET, RigL
from ratoon.layers import make_layer
from ratoon.network import SparseMLP
from ratoon.storage import Document
from ratoon.storage.rules import Violation
from ratoon.training import Training, TrainingData, TrainingPlan
from tests.storage.cases import from_bytes, seal, to_bytes


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((120, 30))
    return x, x[:, :3].argmax(axis=1)


def classifier(**how):
    return SparseMLPClassifier(
        (60,), density=0.3, max_iter=15, dtype="bfloat16", random_state=0, **how
    )


def bits(estimator):
    return [layer.stored.tolist() for layer in estimator.network_.layers]


def test_bfloat16_weights_of_a_layer_are_read_only_floats():
    layer = make_layer((30, 20), density=0.5, seed=0, dtype="bfloat16")
    layer.clear_state(1)
    assert (layer.stored.dtype, layer.weights.dtype) == (np.uint16, np.float32)
    assert layer.state[0].dtype == layer.bias.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        layer.weights[0] = 1.0
    layer.weights = np.full(300, 1.003)
    assert_array_equal(layer.weights, np.ones(300))
    assert layer.nbytes() == 300 * (4 + 2 + 4) + 20 * 8 + layer.topology.starts.nbytes


@pytest.mark.parametrize("kind", [SparseMLPClassifier, SparseMLPRegressor])
def test_it_learns_nearly_as_well_as_float32(samples, kind):
    x, y = samples
    goal = y if kind is SparseMLPClassifier else x[:, 0]
    half, single = (
        kind((60,), density=0.3, max_iter=60, dtype=dtype, random_state=0).fit(x, goal)
        for dtype in ("bfloat16", "float32")
    )
    assert single.score(x, goal) > 0.7
    assert half.score(x, goal) > single.score(x, goal) - 0.1


@pytest.mark.parametrize("batch_size", [8, 64])
def test_threads_change_nothing(samples, batch_size):
    one, two = (classifier(n_jobs=n, batch_size=batch_size).fit(*samples) for n in (1, 2))
    assert bits(one) == bits(two)


def test_training_continues_from_a_file_to_the_same_bits(samples, tmp_path):
    x, y = samples
    whole, half = classifier(), classifier()
    for _ in range(6):
        whole.partial_fit(x, y, classes=[0, 1, 2])
    for _ in range(3):
        half.partial_fit(x, y, classes=[0, 1, 2])
    half.save(tmp_path / "half.ratoon")
    loaded = load(tmp_path / "half.ratoon")
    for _ in range(3):
        loaded.partial_fit(x, y)
    assert loaded.network_.weight_type == "bfloat16"
    assert bits(loaded) == bits(whole)


def test_sparse_samples_are_accepted(samples):
    x, y = samples
    sparse = scipy.sparse.csr_array(x * (x > 0))
    fitted = classifier(scale=None).fit(sparse, y)
    np.testing.assert_allclose(
        fitted.predict_proba(sparse), fitted.predict_proba(sparse.toarray()), rtol=1e-5
    )


def test_rigl_works_with_bfloat16(samples):
    x, y = samples
    fitted = classifier(evolution=RigL()).fit(x, y)
    assert fitted.network_.layers[0].is_bfloat16


def test_the_plan_counts_its_bytes(samples):
    x, y = samples
    fitted = classifier().fit(x, y)
    parameters = sum(
        layer.nbytes() - layer.topology.starts.nbytes for layer in fitted.network_.layers
    )
    assert classifier().plan(30, n_samples=120, n_outputs=3).parameter_bytes == parameters


def test_a_file_with_weights_that_are_not_numbers_is_refused():
    network = SparseMLP.start((4, 3), density=1.0, seed=0, dtype="bfloat16")
    raw = to_bytes(Document({}, networks=[network]))
    weights = network.layers[0].stored.tobytes()
    assert raw.count(weights) == 1
    infinite = np.full(12, 0xFF80, dtype=np.uint16).tobytes()
    with pytest.raises(Violation, match="not finite"):
        from_bytes(seal(raw.replace(weights, infinite)))


def test_ranks_refuse_weights_that_they_cannot_average():
    x, y = np.ones((8, 4)), np.eye(2)[np.arange(8) % 2]
    network = SparseMLP.start((4, 6, 2), density=0.8, seed=0, dtype="bfloat16")
    training = Training(
        network,
        TrainingData.of(x, y, np.float32),
        TrainingPlan(batch_size=4, n_epochs=1, evolution=SET()),
        callbacks=[DataParallel(SingleRank())],
    )
    with pytest.raises(InvalidParameterError, match="bfloat16 cannot be trained by several ranks"):
        training.run()
