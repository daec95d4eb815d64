"""Model cards: what they state, and that names cannot change the page."""

import numpy as np
import pytest

import ratoon
from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.report.card import markdown_text


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).normal(size=(60, 6))
    X[:, 5] = 3.0
    return X, np.where(X[:, 0] > 0, "case", "control")


@pytest.mark.filterwarnings("ignore::ratoon.samples.statistics.ConstantFeatureWarning")
def test_a_card_states_data_network_settings_scores_and_limits(data):
    X, y = data
    model = SparseMLPClassifier((10,), epsilon=3, max_iter=4, early_stopping=True, random_state=7)
    card = model.fit(X, y).card(title="Demo", notes="For tests.", test=(X[:9], y[:9]))
    assert "# Demo\n\nFor tests.\n" in card
    for row in (
        "| samples | 60 |",
        "| classes | case, control |",
        "| layer widths | 6 → 10 → 2 |",
        "| seed | 7 |",
        f"| accuracy on test data | {model.score(X[:9], y[:9]):.4f} (9 samples) |",
    ):
        assert row in card
    assert f"{model.validation_scores_[-1]:.4f}" in card
    assert "1 features were constant" not in card
    assert "1 feature was constant" in card


def test_a_card_without_test_data_says_so(data):
    X, _ = data
    card = SparseMLPRegressor((5,), max_iter=2, scale=None).fit(X, X[:, 0]).card()
    assert "no score on independent test data" in card
    assert "R squared on test data | not stored in the model" in card


@pytest.mark.filterwarnings("ignore::ratoon.samples.statistics.ConstantFeatureWarning")
def test_a_loaded_model_has_the_same_card(data, tmp_path):
    model = SparseMLPClassifier((10,), max_iter=2, random_state=0).fit(*data)
    model.save(tmp_path / "model")
    assert ratoon.load(tmp_path / "model").card() == model.card()


def test_names_cannot_change_the_page():
    hostile = "x|y\n## Heading <script>alert(1)</script> [a](b) `c`\x1b[31m\u202e"
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.where(X[:, 0] > 0, hostile, "b")
    card = SparseMLPClassifier(random_state=0).fit(X, y).card(title=hostile)
    assert "<script>" not in card
    assert "\n## Heading" not in card
    assert "\x1b" not in card
    assert markdown_text("a|b") == r"a\|b"
