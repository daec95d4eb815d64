import numpy as np
import pytest
import scipy.sparse

from ratoon.storage import fingerprint
from ratoon.storage.fingerprint import describe_data
from ratoon.training import TrainingData
from tests.storage.cases import a_network


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=(20, 300)).astype(np.float32)


def test_equal_arrays_have_equal_fingerprints_wherever_they_are(x, tmp_path):
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert fingerprint(x) == fingerprint(x.copy()) == fingerprint(mapped)
    assert fingerprint(x) == fingerprint(np.asfortranarray(x))


def test_any_difference_shows(x):
    changed = x.copy()
    changed[3, 7] = np.nextafter(changed[3, 7], 9)
    texts, other_texts = np.array(["ab", "c"], object), np.array(["a", "bc"], object)
    prints = [
        *map(fingerprint, (x, changed, x.T, x[:, ::-1], x.astype(float), None, texts, other_texts)),
        fingerprint(x, None),
        fingerprint(scipy.sparse.csr_array(x)),
    ]
    assert len(set(prints)) == len(prints)


def described(x, targets=None, **how):
    network = a_network((x.shape[1], 3))
    targets = np.ones((x.shape[0], 3)) if targets is None else targets
    return describe_data(TrainingData.of(x, targets, np.float32, **how), network, 1)


def test_data_are_told_apart_by_samples_targets_and_weights(x):
    same = described(x)
    assert described(x.copy()) == same
    changed = x.copy()
    changed[3, 7] += 1e-3
    assert described(changed)["samples"] != same["samples"]
    assert described(x[::-1].copy())["samples"] != same["samples"], "another order"
    assert described(x, np.zeros((20, 3)))["targets"] != same["targets"]
    assert described(x, weights=np.ones(20))["weights"] != same["weights"]
    assert described(x, offset=np.ones((20, 3)))["offset"] != same["offset"]


def test_sparse_samples_are_described_too(x):
    network = a_network((300, 3), scaling=False)
    matrix = scipy.sparse.csr_array(np.where(x > 1, x, 0))
    data = TrainingData.of(matrix, np.ones((20, 3)), np.float32)
    other = TrainingData.of(matrix * 2, np.ones((20, 3)), np.float32)
    assert describe_data(data, network, 1) != describe_data(other, network, 1)


def test_the_number_of_threads_does_not_matter(x):
    network = a_network((300, 3))
    data = TrainingData.of(x, np.ones((20, 3)), np.float32)
    assert describe_data(data, network, 1) == describe_data(data, network, 2)
