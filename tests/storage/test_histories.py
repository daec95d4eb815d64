import math
from dataclasses import replace

import numpy as np
import pytest

from ratoon.errors import FormatError
from ratoon.history import EpochRecord, History
from ratoon.storage import Document, history_from_arrays, history_to_arrays
from tests.storage.cases import from_bytes, to_bytes

RECORD = EpochRecord(0, 0.7, 0.1, 10**10, 0.02, 3, 1.0, 0.5, 0.1, None, 0.9, None)


def test_a_history_comes_back_through_a_file():
    history = History(
        [
            RECORD,
            replace(RECORD, epoch=1, validation_loss=math.inf, train_score=-math.inf),
            replace(RECORD, epoch=2, validation_score=None, loss=1 / 3),
        ]
    )
    found = from_bytes(to_bytes(Document({}, history_to_arrays(history)))).arrays
    assert history_from_arrays(found) == history
    assert found == {}, "all of them were taken"


def test_not_a_number_comes_back():
    arrays = history_to_arrays(History([replace(RECORD, loss=math.nan)]))
    assert math.isnan(history_from_arrays(arrays)[0].loss)


def test_an_empty_history_comes_back():
    assert history_from_arrays(history_to_arrays(History())) == History()


def test_ten_thousand_epochs_leave_the_header_small():
    history = History([replace(RECORD, epoch=epoch) for epoch in range(10_000)])
    raw = to_bytes(Document({}, history_to_arrays(history)))
    assert int.from_bytes(raw[:8], "little") < 6000


def test_a_quantity_that_is_younger_than_the_file_has_its_default():
    arrays = history_to_arrays(History([RECORD, RECORD]))
    for name in ("evaluate_seconds", "validation_loss"):
        del arrays[f"history/{name}"], arrays[f"history/{name}.state"]
    expected = replace(RECORD, evaluate_seconds=0.0, validation_loss=None)
    assert history_from_arrays(arrays) == History([expected, expected])
    assert arrays == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("history/loss"),
        lambda arrays: arrays.update({"history/loss": np.zeros(3)}),
        lambda arrays: arrays.update({"history/loss": np.zeros((1, 1))}),
        lambda arrays: arrays.update({"history/epoch": np.zeros(1)}),
        lambda arrays: arrays.update({"history/epoch": np.zeros(2, dtype=np.int64)}),
        lambda arrays: arrays["history/loss.state"].fill(0),  # a loss cannot be absent
        lambda arrays: arrays["history/loss.state"].fill(9),
    ],
)
def test_arrays_that_are_no_history_are_refused(change):
    arrays = history_to_arrays(History([RECORD]))
    change(arrays)
    with pytest.raises(FormatError):
        history_from_arrays(arrays)
