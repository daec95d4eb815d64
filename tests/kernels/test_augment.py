"""Images that are shifted and flipped while they are read for training."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon import Augment, _native
from ratoon.errors import InvalidInputError
from ratoon.kernels import NativeNetwork, Rule, Scaling, Step, as_samples, reference
from ratoon.samples.on_disk import DiskRows, MapReader
from ratoon.topology import Topology

N = 45
SHAPES = {
    "one channel": Augment((9, 7), 2, flip=True),
    "channels first": Augment((3, 6, 5), 3, flip=True),
    "channels last": Augment((6, 5, 3), 4, flip=True),
    "shift only": Augment((20, 30), 5),
    "flip only": Augment((4, 5, 2), 0, flip=True, channels="last"),
    "several parts of 1024 values": Augment((37, 33, 3), 11, flip=True),
}


def images(augment, kind):
    size = int(np.prod(augment.shape))
    return np.random.default_rng(5).integers(0, 200, (N, size)).astype(kind)


def trained(samples, n_features, *, batch=8, n_threads=1, dtype=np.float32):
    """Return weights, gradients and signals of a training on these samples."""
    network = NativeNetwork(dtype, "squared_error", n_threads)
    topology = Topology.random((n_features, 6), 4 * n_features, seed=1)
    weights = np.random.default_rng(0).normal(size=topology.n_connections).astype(dtype)
    network.add_layer(topology, weights, np.zeros(6, dtype))
    targets = np.random.default_rng(1).normal(size=(N, 6)).astype(dtype)
    scaling = Scaling(np.full(n_features, 99.0), np.full(n_features, 0.002), 3.0).of_type(dtype)
    order = np.random.default_rng(2).permutation(N)
    steps = [Step(lr=0.01)] * -(-N // batch)
    network.train(samples, targets, order, batch, Rule.SGD, steps, scaling=scaling)
    _, of_weights, _ = network.gradients(samples, targets, order, scaling=scaling)
    [(inputs, _)] = network.signals(samples, targets, order[:5], scaling=scaling)
    return [weights, *of_weights, inputs]


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.uint8, np.int16])
@pytest.mark.parametrize("shape", SHAPES)
def test_training_sees_the_images_of_the_reference(shape, kind):
    augment = SHAPES[shape]
    x = images(augment, kind)
    changed = reference.augmented(x, augment, 7)
    assert not np.array_equal(changed, x)
    n_features = x.shape[1]
    expected = trained(as_samples(changed, np.float32), n_features)
    assert_same(trained(as_samples(x, np.float32).augmented(augment, 7), n_features), expected)


@pytest.mark.parametrize("batch", [1, 5, 8, 32, 45])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_change_of_an_image_depends_on_neither_batches_nor_threads(batch, n_threads):
    augment = SHAPES["channels last"]
    x = images(augment, np.float64)
    how = {"batch": batch, "n_threads": n_threads, "dtype": np.float64}
    expected = trained(as_samples(reference.augmented(x, augment, 3), np.float64), 90, **how)
    assert_same(trained(as_samples(x, np.float64).augmented(augment, 3), 90, **how), expected)


def test_images_on_disk_change_as_those_in_memory_do():
    augment = SHAPES["channels first"]
    x = images(augment, np.float32)
    in_memory = as_samples(x, np.float32).augmented(augment, 1)
    on_disk = as_samples(DiskRows(MapReader(x)), np.float32).augmented(augment, 1)
    assert_same(trained(on_disk, 90), trained(in_memory, 90))


def test_another_seed_is_another_change():
    augment = SHAPES["one channel"]
    samples = as_samples(images(augment, np.float32), np.float32)
    one, other = (trained(samples.augmented(augment, seed), 63)[0] for seed in (1, 2))
    assert not np.array_equal(one, other)


def test_every_shift_and_flip_occurs_and_none_beyond_them():
    augment = Augment((3, 4), 1, flip=True)
    x = np.tile(np.arange(1, 13), (400, 1))
    seen = {row.tobytes() for row in reference.augmented(x, augment, 0)}
    assert len(seen) == 3 * 3 * 2


def test_predictions_of_augmented_samples_are_refused():
    samples = as_samples(np.zeros((3, 12), np.float32), np.float32)
    network = NativeNetwork(np.float32, "squared_error", 1)
    network.add_layer(Topology.full((12, 1)), np.zeros(12, np.float32), np.zeros(1, np.float32))
    with pytest.raises(ValueError, match="as they are"):
        network.predict(samples.augmented(Augment((3, 4), 1), 0))


@pytest.mark.parametrize(
    ("layout", "shift", "numbers"),
    [
        ((1, 3, 5, 1), 1, None),
        ((1, 3, 4, 2), 1, None),
        ((0, 3, 4, 1), 1, None),
        ((-1, -3, 4, 1), 1, None),
        ((1, 3, 4, 1), 3, None),
        ((1, 3, 4, 1), -1, None),
        ((2**62, 3, 4, 1), 1, None),
        ((1, 3, 4, 1), 1, np.zeros(2, np.int64)),
    ],
)
def test_native_code_refuses_a_layout_that_is_not_that_of_the_samples(layout, shift, numbers):
    handle = _native.Samples.dense(np.zeros((3, 12), np.float32))
    with pytest.raises(ValueError, match=r"shape|shift|numbers"):
        handle.augmented(*layout, shift, True, 0, numbers)


def test_sparse_samples_are_refused():
    import scipy.sparse

    samples = as_samples(scipy.sparse.csr_array(np.eye(12)), np.float32)
    with pytest.raises(InvalidInputError, match="sparse"):
        samples.augmented(Augment((3, 4), 1), 0)
