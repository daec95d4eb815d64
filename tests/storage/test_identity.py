import json
from functools import partial

import numpy as np
import pytest
import scipy.sparse

from ratoon import Augment
from ratoon.evolution import SET
from ratoon.optimizers import SGD, Adam, cosine, stepped, with_warm_up
from ratoon.storage import fingerprint
from ratoon.storage.identity import describe_data, describe_plan, differences, to_json
from ratoon.training import TrainingData, TrainingPlan
from tests.storage.cases import a_network


def test_a_description_is_json():
    plan = TrainingPlan(optimizer=Adam(), evolution=SET(0.2), schedule=with_warm_up(cosine, 0.1))
    description = describe_plan(plan)
    assert json.loads(json.dumps(description)) == description


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        ({"learning_rate": 0.02}, ["learning_rate: 0.01 there, 0.02 here"]),
        ({"optimizer": SGD(0.5)}, ["optimizer.momentum: 0.9 there, 0.5 here"]),
        ({"seed": 1}, ["seed: 0 there, 1 here"]),
        ({"n_threads": 2}, []),
        ({"augment": None}, []),
        ({"batch_size": np.int64(32)}, []),
    ],
)
def test_every_difference_is_one_line(change, lines):
    found = differences(describe_plan(TrainingPlan()), describe_plan(TrainingPlan(**change)))
    assert found == lines


def test_schedules_are_compared_by_their_values():
    one = describe_plan(TrainingPlan(schedule=with_warm_up(cosine, 0.1)))
    same = describe_plan(TrainingPlan(schedule=with_warm_up(cosine, 0.1)))
    other = describe_plan(TrainingPlan(schedule=partial(stepped, by=0.5)))
    assert differences(one, same) == []
    assert differences(one, other)[0].startswith("schedule: [0.0, 0.998")


def test_another_class_and_lists_of_another_length_are_differences():
    assert differences({"a": [1]}, {"a": [1, 2]}) == ["a: [1] there, [1, 2] here"]
    assert differences({"a": None}, {"a": {"b": 1}}) == ["a: None there, {'b': 1} here"]
    assert differences({"a": 1}, {}) == ["a: 1 there, nothing here"]
    assert differences({"a": True}, {"a": 1}) == ["a: True there, 1 here"]
    assert differences([{"a": 1}], [{"a": 2}], "layers") == ["layers[0].a: 1 there, 2 here"]


def test_hashes_are_shown_by_their_beginning():
    [line] = differences({"x": "a" * 64}, {"x": "b" * 64})
    assert line == "x: aaaaaaaaaaaa... there, bbbbbbbbbbbb... here"


def test_any_value_becomes_json():
    assert to_json(float("inf")) == "inf"
    assert to_json((1, np.float32(0.5))) == [1, 0.5]
    assert to_json(cosine) == "cosine"
    assert to_json(object()) == "object"


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
    changed[3, 7] = np.nextafter(changed[3, 7], changed.dtype.type(9))
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


def test_other_samples_targets_or_weights_give_another_identity(x):
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


def test_augmentation_is_part_of_a_plan_that_has_it():
    without, one, other = (
        describe_plan(TrainingPlan(augment=augment))
        for augment in (None, Augment((4, 5), 1), Augment((4, 5), 2))
    )
    assert "augment" not in without  # as in earlier checkpoints
    assert differences(one, other) == ["augment.shift: 1 there, 2 here"]
    assert differences(without, one)[0].startswith("augment: nothing there")
