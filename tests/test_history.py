"""History: records in order, as plain data and back."""

import json
from dataclasses import FrozenInstanceError

import pytest

from ratoon.history import EpochRecord, History, duration


def record(epoch, loss=0.5, **more):
    return EpochRecord(epoch, loss, 0.01, 900, 0.02, 30, 1.0, 0.1, **more)


@pytest.fixture
def history():
    made = History()
    made.append(record(0))
    made.append(record(1, loss=0.25, validation_score=0.9))
    return made


def test_records_are_found_by_number_and_by_column(history):
    assert len(history) == 2
    assert history[-1].validation_score == 0.9
    assert [one.epoch for one in history] == [0, 1]
    assert history.column("loss") == [0.5, 0.25]
    assert history.column("validation_score") == [None, 0.9]


def test_records_round_trip_through_json(history):
    rows = json.loads(json.dumps(history.to_rows()))
    assert History.from_rows(rows) == history


def test_unknown_fields_are_refused(history):
    rows = history.to_rows()
    rows[1]["accuracy"] = 1.0
    with pytest.raises(ValueError, match="accuracy"):
        History.from_rows(rows)


def test_a_record_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        record(0).loss = 0.0


@pytest.mark.parametrize("seconds", [float("inf"), float("nan")])
def test_durations_that_are_not_finite_have_a_text(seconds):
    assert str(seconds) in duration(seconds)
