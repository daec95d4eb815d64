import json
from functools import partial

import numpy as np
import pytest

from ratoon.evolution import SET
from ratoon.optimizers import SGD, Adam, cosine, stepped, with_warm_up
from ratoon.storage.identity import describe_plan, differences, plain
from ratoon.training import TrainingPlan


def test_a_description_is_plain_json():
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
        ({"batch_size": np.int64(32)}, []),
    ],
)
def test_what_differs_is_told_in_one_line_each(change, lines):
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


def test_anything_becomes_plain():
    assert plain(float("inf")) == "inf"
    assert plain((1, np.float32(0.5))) == [1, 0.5]
    assert plain(cosine) == "cosine"
    assert plain(object()) == "object"
