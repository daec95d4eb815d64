"""`fit(report=...)`."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.errors import InvalidInputError

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

X = np.random.default_rng(0).normal(size=(40, 6))
Y = np.where(X[:, 0] > 0, "ill", "well")
HOW = {"hidden_layer_sizes": (8,), "density": 0.5, "max_iter": 4, "random_state": 0}


def test_a_page_is_written_about_the_samples_trained_on(tmp_path):
    page = tmp_path / "page.html"
    table = pd.DataFrame(X, columns=[f"gene{k}" for k in range(6)])
    model = SparseMLPClassifier(**HOW).fit(table, Y, report=page)
    text = page.read_text()
    assert "samples were used for training, so" in text
    assert "gene0" in text
    assert "well" in text
    assert f"{100 * model.score(table, Y):.1f} %" in text


@pytest.mark.parametrize(
    ("stops", "words"), [(False, "were held out"), (True, "used for training, so")]
)
def test_validation_data_are_what_is_scored(tmp_path, stops, words):
    model = SparseMLPClassifier(early_stopping=stops, **HOW)
    model.fit(X[:25], Y[:25], eval_set=(X[25:], Y[25:]), report=str(tmp_path / "p.html"))
    text = (tmp_path / "p.html").read_text()
    assert words in text


@pytest.mark.parametrize("y", [X[:, 1], X[:, :2]])
def test_numbers_as_targets(tmp_path, y):
    SparseMLPRegressor(**HOW).fit(scipy.sparse.csr_array(X), y, report=tmp_path / "p.html")
    assert ("R squared" in (tmp_path / "p.html").read_text()) == (y.ndim == 1)


def test_a_missing_folder_for_the_report_is_refused_before_training(tmp_path):
    model = SparseMLPClassifier(**HOW)
    with pytest.raises(InvalidInputError, match="there is no folder"):
        model.fit(X, Y, report=tmp_path / "nowhere" / "p.html")
    assert not hasattr(model, "network_")
    with pytest.raises(InvalidInputError, match="must be the path of a file, got True"):
        model.fit(X, Y, report=True)
