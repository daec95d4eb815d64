"""Trials are run once: a known result is read from the store."""

from dataclasses import replace

import joblib
import pytest

from ratoon.paper import trial as trial_module
from ratoon.paper.reproduce import reproduce
from ratoon.paper.runs import Effort
from ratoon.paper.trial import TrialResult, TrialStore

TINY = Effort(trials=2, epochs=2, scale=0.005, sets=("GLI-85",))
RESULT = TrialResult("SET", (4, 2), 6, 8, [0.5, 0.75], [1, 0], [1, 1], None, 0.25)


def test_a_result_is_read_back_unchanged(tmp_path):
    TrialStore(tmp_path).put({"seed": 0}, RESULT)
    assert TrialStore(tmp_path).get({"seed": 0}) == RESULT
    assert TrialStore(tmp_path).get({"seed": 1}) is None
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"what": {"seed": 0}, "result": {"x": 1}}'])
def test_a_damaged_file_is_ignored(tmp_path, damage):
    TrialStore(tmp_path).put({"seed": 0}, RESULT)
    [path] = tmp_path.iterdir()
    path.write_text(damage, encoding="utf-8")
    assert TrialStore(tmp_path).get({"seed": 0}) is None


def test_the_result_of_another_trial_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(trial_module, "_key", lambda what: "same")
    TrialStore(tmp_path).put({"seed": 0}, RESULT)
    assert TrialStore(tmp_path).get({"seed": 1}) is None


def test_a_resumed_experiment_gives_the_same_table(tmp_path):
    lines = []
    reproduce("curves", replace(TINY, trials=1, store=TrialStore(tmp_path)))
    resumed = replace(TINY, store=TrialStore(tmp_path), tell=lines.append)
    found = reproduce("curves", resumed)
    assert ["from the store" in line for line in lines] == [True, False, True, False]
    assert found.rows == reproduce("curves", TINY).rows


def test_tables_use_the_same_stored_trials():
    lines = []
    effort = replace(TINY, tell=lines.append)
    reproduce("curves", effort)
    lines.clear()
    reproduce("confusion", effort)
    assert lines
    assert all("from the store" in line for line in lines)


def test_other_settings_are_other_trials():
    lines = []
    effort = replace(TINY, tell=lines.append)
    reproduce("curves", effort)
    lines.clear()
    reproduce("curves", replace(effort, epochs=3))
    assert not any("from the store" in line for line in lines)


def test_trials_at_the_same_time_give_the_same_table():
    alone = reproduce("confusion", TINY)
    with joblib.parallel_config(backend="threading"):
        together = reproduce("confusion", replace(TINY, n_jobs=2, store=TrialStore()))
    assert together.rows == alone.rows
