"""Tables with missing values and categories: the encoder, and what errors say without it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from ratoon import SparseMLPClassifier, SparseMLPRegressor, skops_trusted, table_encoder
from ratoon.errors import InvalidInputError, InvalidParameterError


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n = 200
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "dose": rng.integers(0, 3, n),
            "smokes": rng.random(n) < 0.5,
            "group": pd.Categorical(rng.choice(["a", "b", "c"], n)),
            "city": rng.choice(["x", "y"], n),
        }
    )
    y = (frame["group"] == "a") | frame["smokes"]
    frame.loc[::7, "age"] = np.nan
    frame.loc[::9, "group"] = None
    return frame, y.to_numpy()


def test_a_table_is_learnt_in_a_pipeline(table):
    X, y = table
    model = make_pipeline(table_encoder(), SparseMLPClassifier((30,), max_iter=20, random_state=0))
    assert cross_val_score(model, X, y, cv=3).mean() > 0.85


def test_columns_of_the_encoded_table(table):
    X, _ = table
    encoder = table_encoder()
    encoded = encoder.fit_transform(X)
    names = [name.split("__")[1] for name in encoder.get_feature_names_out()]
    assert names[:4] == ["age", "dose", "smokes", "missingindicator_age"]
    assert {"group_a", "group_b", "group_c", "city_x", "city_y"} <= set(names)
    assert encoded.shape == (200, 10)  # a missing group is a category of its own
    assert abs(encoded[:, 0].mean()) < 1e-9


def test_many_categories_stay_sparse():
    n = 2000
    X = pd.DataFrame({"name": [f"n{k}" for k in range(n)], "size": np.arange(n) * 1.0})
    encoded = table_encoder().fit_transform(X)
    assert scipy.sparse.issparse(encoded)
    assert encoded.shape == (n, n + 1)
    model = make_pipeline(table_encoder(), SparseMLPRegressor((10,), max_iter=1, random_state=0))
    assert model.fit(X, np.arange(n) * 1.0).predict(X[:2]).shape == (2,)


def test_categories_that_training_did_not_have_are_zeros(table):
    X, _ = table
    encoder = table_encoder().fit(X)
    new = X[:1].assign(group="unknown")
    columns = [k for k, name in enumerate(encoder.get_feature_names_out()) if "group" in name]
    assert not np.asarray(encoder.transform(new))[:, columns].any()


def test_rare_categories_share_a_column(table):
    X, _ = table
    few = table_encoder(min_frequency=60).fit(X).get_feature_names_out()
    assert any("infrequent" in name for name in few)


def test_other_fillings_are_refused():
    with pytest.raises(InvalidParameterError, match="median"):
        table_encoder(missing="zero")


@pytest.mark.parametrize("kind", [SparseMLPClassifier, SparseMLPRegressor])
def test_missing_values_are_refused_with_a_recipe(table, kind):
    X, y = table
    with pytest.raises(InvalidInputError) as caught:
        kind().fit(X[["age", "dose"]], y)
    message = str(caught.value)
    assert "1 of 2 columns ('age')" in message
    assert f"make_pipeline(ratoon.table_encoder(), {kind.__name__}(...))" in message
    with pytest.raises(InvalidInputError, match=r"1 of 2 columns \(column 0\)") as caught:
        kind().fit(X[["age", "dose"]].to_numpy(), y)
    assert "SimpleImputer(add_indicator=True)" in str(caught.value)


def test_categories_are_refused_with_a_recipe(table):
    X, y = table
    with pytest.raises(InvalidInputError, match=r"'city' \((object|str)\)") as caught:
        SparseMLPClassifier().fit(X[["dose", "city"]], y)
    assert "table_encoder" in str(caught.value)
    assert "dose" not in str(caught.value)


def test_the_recipe_of_the_error_works(table):
    X, y = table
    with pytest.raises(InvalidInputError):
        SparseMLPClassifier().fit(X, y)
    make_pipeline(table_encoder(), SparseMLPClassifier((5,), max_iter=1)).fit(X, y)


def test_the_pipeline_predicts_the_same_after_skops(table):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    X, y = table
    model = make_pipeline(table_encoder(), SparseMLPClassifier((30,), max_iter=3, random_state=0))
    model.fit(X, y)
    loaded = skops.loads(skops.dumps(model), trusted=skops_trusted())
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
