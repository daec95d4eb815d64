import json

import numpy as np
import pytest

from ratoon.errors import FormatError
from ratoon.estimators.plain import NotPlain, from_plain, known_classes, to_plain
from ratoon.evolution import SET
from ratoon.optimizers import SGD, Adam

VALUES = [
    None,
    True,
    "auto",
    0.25,
    2**70,
    -(2**70),
    (9000, 9000),
    (),
    [1, [2.5, None]],
    {0: 1.0, "b": (1, 2)},
    SET(zeta=0.1, until=0.5),
    SGD(momentum=0.5),
    Adam(adam_eps=1e-6),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_are_read_from_json_as_written(value):
    found = from_plain(json.loads(json.dumps(to_plain(value))))
    assert found == value
    assert type(found) is type(value)


def test_numpy_numbers_become_python_numbers():
    assert to_plain(np.float32(0.5)) == 0.5
    assert to_plain(np.array([1, 2])) == [1, 2]
    assert type(to_plain(np.int64(3))) is int


@pytest.mark.parametrize("value", [np.nan, np.inf, print, object(), {1, 2}, np.eye(2)])
def test_other_values_cannot_be_written(value):
    with pytest.raises(NotPlain):
        to_plain(value)


@pytest.mark.parametrize(
    "value",
    [
        {"object": "os.system", "fields": {}},
        {"object": "SET", "fields": {"zeta": 7}},
        {"object": "SET", "fields": {"unknown": 7}},
        {"object": "SGD", "fields": [], "more": 1},
        {"tuple": [1], "pairs": []},
        {"pairs": [[1]]},
        {"pairs": [[[1, 2], 3]]},
        {"integer": "1e5"},
        {"integer": "9" * 5000},
        {},
    ],
)
def test_other_values_in_a_file_are_refused(value):
    with pytest.raises(FormatError):
        from_plain(value)


def test_every_strategy_and_optimizer_that_is_a_dataclass_can_be_written():
    assert {"SET", "Static", "SGD", "Adam"} <= set(known_classes())
