"""Trials are run once: what is known by its data, settings and seed comes from the store."""

from dataclasses import replace

import joblib
import pytest

from ratoon.paper.reproduce import reproduce
from ratoon.paper.runs import Effort
from ratoon.paper.trial import TrialResult, TrialStore

TINY = Effort(trials=2, epochs=2, scale=0.005, sets=("GLI-85",))
RESULT = TrialResult("SET", (4, 2), 6, 8, [0.5, 0.75], [1, 0], [1, 1], None, 0.25)


def test_a_result_comes_back_from_the_folder_as_it_was(tmp_path):
    TrialStore(tmp_path).put({"seed": 0}, RESULT)
    assert TrialStore(tmp_path).get({"seed": 0}) == RESULT
    assert TrialStore(tmp_path).get({"seed": 1}) is None
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"what": {"seed": 0}, "result": {"x": 1}}'])
def test_a_damaged_file_is_as_none(tmp_path, damage):
    TrialStore(tmp_path).put({"seed": 0}, RESULT)
    [path] = tmp_path.iterdir()
    path.write_text(damage, encoding="utf-8")
    assert TrialStore(tmp_path).get({"seed": 0}) is None


def test_a_file_of_another_trial_is_not_taken_for_this_one(tmp_path, monkeypatch):
    monkeypatch.setattr(trial_module, "_key", lambda what: "same")
    TrialStore(tmp_path).put({"seed": 0}, RESULT)
    assert TrialStore(tmp_path).get({"seed": 1}) is None


def test_a_stopped_experiment_goes_on_and_ends_as_if_never_stopped(tmp_path):
    told = []
    reproduce("curves", replace(TINY, trials=1, store=TrialStore(tmp_path)))
    resumed = replace(TINY, store=TrialStore(tmp_path), tell=told.append)
    found = reproduce("curves", resumed)
    assert ["kept" in line for line in told] == [True, False, True, False]
    assert found.rows == reproduce("curves", TINY).rows


def test_tables_share_the_trials_they_have_in_common():
    told = []
    effort = replace(TINY, tell=told.append)
    reproduce("curves", effort)
    told.clear()
    reproduce("confusion", effort)
    assert told
    assert all("kept from before" in line for line in told)


def test_other_settings_are_other_trials():
    told = []
    effort = replace(TINY, tell=told.append)
    reproduce("curves", effort)
    told.clear()
    reproduce("curves", replace(effort, epochs=3))
    assert not any("kept" in line for line in told)


def test_trials_at_the_same_time_give_the_same_table():
    alone = reproduce("confusion", TINY)
    with joblib.parallel_config(backend="threading"):
        together = reproduce("confusion", replace(TINY, n_jobs=2, store=TrialStore()))
    assert together.rows == alone.rows
