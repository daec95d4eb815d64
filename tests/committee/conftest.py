"""Small problems of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from ratoon.committee import Problem


@pytest.fixture(autouse=True)
def _small_layers(monkeypatch):
    """Small hidden layers, to save time."""
    monkeypatch.setattr("ratoon.committee.members.MIN_NEURONS", 400)
    monkeypatch.setattr("ratoon.committee.members.MAX_NEURONS", 400)


def classes_problem(n_samples=60, n_features=120, n_classes=2, seed=0, weights=None):
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % n_classes
    x = rng.standard_normal((n_samples, n_features)).astype(np.float32)
    for k in range(n_classes):
        x[y == k, 3 * k : 3 * k + 3] += 1.5
    counted = np.ones(n_samples) if weights is None else weights
    return Problem(x, 2.0 * np.eye(n_classes)[y] - 1.0, counted, y, "softmax")


def continuous_problem(n_samples=60, n_features=150, seed=0, n_outputs=1):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_samples, n_features)).astype(np.float32)
    y = x[:, :3] @ rng.standard_normal((3, n_outputs)) + 0.1 * rng.standard_normal(
        (n_samples, n_outputs)
    )
    return Problem(x, y, np.ones(n_samples), None, "squared")


def repeated(problem, counts):
    rows = np.repeat(np.arange(problem.n_samples), counts)
    many = problem.take(rows)
    return Problem(many.x, many.targets, np.ones(rows.size), many.groups, many.kind)


@pytest.fixture
def make_classes():
    return classes_problem


@pytest.fixture
def make_continuous():
    return continuous_problem


@pytest.fixture
def repeat():
    return repeated
