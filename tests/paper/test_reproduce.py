"""Tables of the paper: its values next to ours, and stand-ins that are labelled."""

from dataclasses import replace

import numpy as np
import pytest

from ratoon.datasets import Dataset, write
from ratoon.errors import DivergenceError, InvalidInputError, InvalidParameterError
from ratoon.paper import runs, tables_cost
from ratoon.paper.reproduce import TABLES, reproduce
from ratoon.paper.runs import Effort, run_trials
from ratoon.paper.sets import CLL, GLI, PAPER_SETS, STAND_IN, paper_data
from ratoon.paper.trial import TrialStore

TINY = Effort(trials=2, epochs=2, scale=0.005, sets=("GLI-85",))


def test_connections_are_the_papers_within_a_thousandth_except_for_gli_85():
    found = reproduce("connections", Effort(sets=("CLL-SUB-111", "SMK-CAN-187", "GLI-85")))
    ours = {row[0]: int(row[2].replace(",", "")) for row in found.rows}
    for name in ("CLL-SUB-111", "SMK-CAN-187"):
        assert ours[name] == pytest.approx(PAPER_SETS[name].connections, rel=1e-3)
    assert ours["GLI-85"] == pytest.approx(462_400, rel=1e-3)
    assert any("22,000" in note for note in found.notes)


def test_the_papers_gli_85_count_belongs_to_22_000_neurons():
    from ratoon.network import SparseMLP

    network = SparseMLP.start((22_283, 22_000, 2), epsilon=10.0, start="paper", seed=0)
    assert network.n_connections == pytest.approx(GLI.connections, rel=1e-3)
    assert pytest.approx(GLI.dense_connections, rel=1e-3) == 22_283 * 22_000 + 22_000 * 2


def test_settings_are_the_papers():
    settings = Effort().settings(CLL)
    assert settings.hidden == (9000, 9000)
    assert (settings.epsilon, settings.zeta, settings.batch_size) == (10.0, 0.3, 5)
    assert (settings.learning_rate, settings.momentum, settings.n_epochs) == (0.01, 0.9, 500)


def test_accuracy_has_every_protocol_and_the_kind_of_data():
    found = reproduce("accuracy", TINY)
    assert found.columns[3:] == ["paper", "best test epoch", "last epoch", "validation-chosen"]
    assert [row[2:4] for row in found.rows] == [
        ["SET", "94.48"],
        ["FixProb", "92.41"],
        ["mrPSVM", ""],
        ["IWSS", ""],
    ]
    assert [row[4::2] for row in found.rows[2:]] == [["", ""], ["", ""]], "they have no epochs"
    assert all(row[1] == STAND_IN for row in found.rows)
    assert "optimistic" in " ".join(found.notes)
    assert "cannot be compared" in found.notes[0]
    assert "| GLI-85 |" in found.to_markdown()


@pytest.mark.parametrize("table", ["curves", "confusion", "time", "layers", "dropout", "no-hidden"])
def test_every_table_has_complete_rows(table):
    found = reproduce(table, TINY)
    assert found.rows
    assert all(len(row) == len(found.columns) for row in found.rows)
    if table == "curves":
        assert np.shape(found.curves["GLI-85"]["SET"]) == (2, 2)


def test_both_extreme_models_are_in_the_table():
    found = reproduce("extreme", replace(TINY, trials=1, epochs=1, scale=0.001))
    assert [row[0] for row in found.rows] == ["small", "large", "mrPSVM", "mrPSVM, Hadoop"]
    assert found.rows[1][2] == "2 x 500"
    _, columns, rows = found.narrow()
    assert columns == ["model", "small*", "large*", "mrPSVM*", "mrPSVM, Hadoop"]
    assert ["seconds, paper", "65", "4914", "1265", "291"] in rows
    assert all(len(row) == len(found.columns) for row in found.rows)


def test_after_divergence_a_tenth_of_the_learning_rate_is_used_and_noted(monkeypatch):
    wild = replace(tables_cost.EXTREME_SETTINGS, learning_rate=1e18)
    monkeypatch.setattr(tables_cost, "EXTREME_SETTINGS", wild)
    monkeypatch.setattr(tables_cost, "EXTREME", {"small": ((10,), 1, 1.0, 1.0)})
    effort = replace(TINY, trials=1, epochs=1, scale=0.001)
    with pytest.raises(DivergenceError):
        reproduce("extreme", effort)
    monkeypatch.setattr(tables_cost, "run_trials", _diverges_above(1e17, tables_cost.run_trials))
    found = reproduce("extreme", effort)
    assert found.rows[0][3] == "1e+17"
    assert any("diverges at the paper's learning rate, 1e+18" in note for note in found.notes)


def test_divergence_in_the_first_epoch_is_kept(tmp_path, monkeypatch):
    wild = replace(GLI, settings=replace(GLI.settings, learning_rate=1e18))
    effort = replace(TINY, trials=1, store=TrialStore(tmp_path))
    for store in (effort.store, TrialStore(tmp_path)):
        with pytest.raises(DivergenceError, match="trial 1 diverged in its first epoch"):
            run_trials(effort.data(wild)[0], effort.settings(wild), replace(effort, store=store))
        monkeypatch.setattr(runs, "one_trial", None)  # the second time nothing is trained


def _diverges_above(rate, run_trials):
    def run(data, settings, effort):
        if settings.learning_rate > rate:
            raise DivergenceError("training diverged: somewhere.\n  More.")
        return run_trials(data, replace(settings, learning_rate=0.001), effort)

    return run


def test_diverged_trials_are_in_the_notes(monkeypatch):
    def one_trial(*arguments):
        trial = real(*arguments)
        trial.diverged = 2
        return trial

    real = runs.one_trial
    monkeypatch.setattr(runs, "one_trial", one_trial)
    effort = replace(TINY, trials=1, remarks=[], store=TrialStore())
    notes = reproduce("confusion", effort).notes
    assert any("trial 1 diverged in epoch 2; from there on it has" in note for note in notes)
    assert effort.remarks == [], "the next table has its own"


def test_rewiring_is_faster_than_the_papers_implementation():
    found = reproduce("rewiring", Effort(epochs=1))
    assert [row[0] for row in found.rows] == ["500", "2,000"]
    ratoon, vectorised = (float(found.rows[-1][k]) for k in (-1, -2))
    assert ratoon < vectorised


@pytest.mark.parametrize("name", TABLES)
def test_every_table_fits_80_columns(name):
    effort = replace(TINY, sets=("CLL-SUB-111", "GLI-85"), trials=2, epochs=1, scale=0.001)
    title, columns, rows = reproduce(name, effort).narrow()
    # A cell has three columns of margin: two spaces and, between cells, one.
    assert 1 + sum(3 + max(map(len, cells)) for cells in zip(columns, *rows, strict=True)) <= 80
    assert "data" not in columns
    if name not in ("connections", "rewiring"):
        assert STAND_IN in title


def test_two_phase_trials_are_kept(tmp_path):
    told = []
    effort = replace(TINY, trials=1, store=TrialStore(tmp_path), tell=told.append)
    first = reproduce("accuracy", effort).rows
    told.clear()
    again = reproduce("accuracy", replace(effort, store=TrialStore(tmp_path)))
    assert again.rows == first
    assert len(told) == 6
    assert all("from the store" in text for text in told)


SMALL = replace(GLI, shape=(12, 5, 2), class_counts=(5, 7))


def write_samples(path, y, n_features=5):
    x = np.random.default_rng(0).normal(size=(len(y), n_features)).astype(np.float32)
    y = np.asarray(y)
    write(Dataset(x, y, class_names=tuple("abc"[: y.max() + 1])), path)
    return path


def test_a_given_file_is_used(tmp_path):
    path = write_samples(tmp_path / "real.csv", [0] * 7 + [1] * 5)
    found, kind = paper_data(SMALL, path=path)
    assert found.X.shape == (12, 5)
    assert kind == "GLI-85, real.csv"


@pytest.mark.parametrize(
    ("y", "n_features", "message"),
    [
        ([0] * 7 + [1] * 6, 5, "13 samples instead of 12"),
        ([0] * 7 + [1] * 5, 6, "6 features instead of 5"),
        ([0] * 7 + [1] * 4 + [2], 5, "3 classes instead of 2"),
        ([0] * 8 + [1] * 4, 5, "classes of 4, 8 samples instead of 5, 7"),
    ],
)
def test_a_file_that_is_not_the_set_is_refused(tmp_path, y, n_features, message):
    path = write_samples(tmp_path / "other.csv", y, n_features)
    with pytest.raises(InvalidInputError) as caught:
        paper_data(SMALL, path=path)
    assert str(path) in str(caught.value)
    assert f"this is not GLI-85: it has {message}" in str(caught.value)
    assert "ratoon data show" in str(caught.value)


def test_class_sizes_add_up_to_the_samples():
    for known in PAPER_SETS.values():
        assert sum(known.class_counts) == known.shape[0]
        assert len(known.class_counts) == known.shape[2]
        assert list(known.class_counts) == sorted(known.class_counts)


def test_unknown_tables_and_sets_are_refused():
    with pytest.raises(InvalidParameterError, match="there are accuracy"):
        reproduce("unknown", TINY)
    with pytest.raises(InvalidParameterError, match="the paper has"):
        reproduce("accuracy", Effort(sets=("iris",)))
    assert len(TABLES) == 10
