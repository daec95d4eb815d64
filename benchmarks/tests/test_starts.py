"""Starts by strength and rewiring after them: samples, chances, resumable rows, table."""

from __future__ import annotations

import numpy as np
import pytest
from quality import rewiring, starts
from quality.rewiring import Parts, Task
from quality.starts import REWIRED, STARTS, chances, generate, run_one


def test_two_features_together_determine_an_exclusive_or():
    parts = generate(4000, 0)
    alone = [abs(np.corrcoef(parts.x[:, j], parts.y)[0, 1]) for j in range(2)]
    assert max(alone) < 0.05
    assert np.corrcoef(parts.x[:, 0] * parts.x[:, 1], parts.y)[0, 1] > 0.5


def test_pair_strength_finds_them_and_f_does_not():
    parts = generate(1000, 0)
    assert set(np.argsort(chances("pairs", parts))[-2:]) == {0, 1}
    assert chances("pairs", parts)[:2].sum() > 0.9 * chances("pairs", parts).sum()
    assert chances("f", parts)[:2].sum() < 0.2 * chances("f", parts).sum()
    np.testing.assert_array_equal(chances("uniform", parts), 1.0)


def test_without_pairs_there_is_f():
    rng = np.random.default_rng(0)
    parts = Parts(rng.standard_normal((50, 30)), np.arange(50) % 2, np.empty(0), np.empty(0))
    np.testing.assert_array_equal(chances("pairs", parts), chances("f", parts))


@pytest.mark.parametrize("strategy", REWIRED)
def test_a_start_by_pairs_learns_an_exclusive_or(strategy, monkeypatch):
    monkeypatch.setattr(rewiring, "N_STEPS", 300)
    assert run_one(Task("xor", 1000), f"pairs {strategy}", 0, None) > 80
    assert run_one(Task("xor", 1000), f"uniform {strategy}", 0, None) < 70


def test_set_rewiring_loses_informative_connections(monkeypatch):
    monkeypatch.setattr(rewiring, "N_STEPS", 300)
    shares = [
        starts.share_on_pairs(Task("xor", 1000), name, 0, None)
        for name in ("pairs static", "pairs set", "uniform static")
    ]
    # Two features cannot be connected more than once to each of the 500 neurons.
    assert shares[0] == pytest.approx(200 / 3, abs=2)
    assert shares[0] > shares[1] + 1
    assert shares[2] < 5


def test_rows_are_stored_and_reported(tmp_path, monkeypatch):
    calls = []

    def pretended(task, name, seed, folder):
        calls.append((task, name, seed))
        return 50.0 + len(name) + seed

    monkeypatch.setattr(starts, "run_one", pretended)
    monkeypatch.setattr(starts, "share_on_pairs", lambda task, name, seed, folder: 90.0 + seed)
    rows = tmp_path / "starts.csv"
    assert not starts.run_missing_starts(rows, None, [0], 0.0)
    assert starts.run_missing_starts(rows, None, [0, 1], 1.0)
    assert starts.run_missing_starts(rows, None, [0, 1], 1.0)
    assert len(calls) == 2 * 3 * len(STARTS) * len(REWIRED)
    assert starts.run_missing_starts(rows, tmp_path, [0], 1.0)
    assert calls[-1] == (Task("madelon", 1733), "pairs rigl", 0)
    text = starts.write_starts(rows, tmp_path / "starts.md")
    assert "| xor | 300 | 2 | 64.5 ± 0.5 | 61.5 ± 0.5 | 62.5 ± 0.5 | 58.5 ± 0.5 |" in text
    # Gains are differences in length of names: three letters against the six of "static".
    assert "| xor | 1000 | 2 | -3.0 ± 0.0 | -2.0 ± 0.0 | -3.0 ± 0.0 |" in text
    assert "| xor | 1000 | 2 | -2.0 ± 0.0 | +1.0 ± 0.0 | +0.0 ± 0.0 | +4.0 ± 0.0 |" in text
    assert "| madelon | 1733 | 1 | 90.0 ± nan |" in text
