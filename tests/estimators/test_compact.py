"""X of integers of 8 and 16 bits or of truth values: read as it is, never converted as a whole."""

import tracemalloc

import numpy as np
import pytest

from ratoon import SparseMLPClassifier, SparseMLPRegressor

KINDS = [np.uint8, np.int8, np.uint16, np.int16, np.bool_]
QUICK = {"hidden_layer_sizes": (12,), "epsilon": 4, "max_iter": 3, "random_state": 0}


def integers(kind, n=120, n_features=37):
    low, high = (0, 2) if kind == np.bool_ else (np.iinfo(kind).min, np.iinfo(kind).max + 1)
    return np.random.default_rng(0).integers(low, high, (n, n_features)).astype(kind)


def assert_same_model(one, other):
    for a, b in zip(one.network_.layers, other.network_.layers, strict=True):
        np.testing.assert_array_equal(a.weights, b.weights)
    np.testing.assert_array_equal(one.network_.scaling.shift, other.network_.scaling.shift)
    np.testing.assert_array_equal(one.network_.scaling.scale, other.network_.scaling.scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_integers_give_the_bits_of_the_same_values_in_float32(kind, dtype):
    x = integers(kind)
    y = (x[:, 0].astype(float) > np.median(x[:, 0])).astype(int)
    model, expected = (
        SparseMLPClassifier(**QUICK, dtype=dtype, early_stopping=True).fit(given, y)
        for given in (x, x.astype(np.float32))
    )
    assert_same_model(model, expected)
    assert model.validation_scores_ == expected.validation_scores_
    for given in (x, x[::2], x[:, ::-1][:, ::-1], np.asfortranarray(x)):
        single = given.astype(np.float32)
        np.testing.assert_array_equal(model.predict_proba(given), expected.predict_proba(single))
    assert model.score(x, y) == expected.score(x.astype(np.float32), y)


@pytest.mark.parametrize("kind", KINDS)
def test_memory_maps_of_integers_are_read_where_they_are(kind, tmp_path):
    x, y = integers(kind), np.random.default_rng(1).normal(size=120)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    model, expected = (
        SparseMLPRegressor(**QUICK).fit(given, y) for given in (mapped, x.astype(np.float32))
    )
    assert_same_model(model, expected)
    np.testing.assert_array_equal(model.predict(mapped), expected.predict(x.astype(np.float32)))
    continued, further = (
        one.partial_fit(given, y)
        for one, given in ((model, mapped), (expected, x.astype(np.float32)))
    )
    assert_same_model(continued, further)


@pytest.mark.parametrize("more", [{}, {"start": "f"}, {"evolution": "rigl"}, {"scale": None}])
def test_everything_that_reads_x_gives_the_same_for_integers(more):
    x = integers(np.uint8)
    y = (x[:, 0] > 127).astype(int)
    model, expected = (
        SparseMLPClassifier(**{**QUICK, **more}).fit(given, y)
        for given in (x, x.astype(np.float32))
    )
    for a, b in zip(model.network_.layers, expected.network_.layers, strict=True):
        np.testing.assert_array_equal(a.weights, b.weights)


def test_the_closed_form_gives_the_same_for_integers():
    x = integers(np.uint8, 60, 150)
    y = (x[:, 0] > 127).astype(int)
    model, expected = (
        SparseMLPClassifier(random_state=0).fit(given, y) for given in (x, x.astype(np.float32))
    )
    assert model.solver_ == "closed form"
    assert_same_model(model, expected)


def test_neither_training_nor_prediction_takes_memory_for_another_copy_of_x():
    x = integers(np.uint8, 60_000, 784)  # 47 MB; 188 MB in float32
    y = (x[:, 0] > 127).astype(int)
    model = SparseMLPClassifier((10,), epsilon=1, max_iter=1, random_state=0)
    tracemalloc.start()
    try:
        model.fit(x, y)
        model.score(x, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < x.nbytes
