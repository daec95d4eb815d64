"""What a model remembers of the preparation of its samples."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError
from ratoon.preparation import (
    Preparation,
    Prepare,
    as_prepare,
    is_raw,
    log2_of,
    quantiles_of,
    to_quantiles,
)
from ratoon.samples.in_memory import DenseSamples, SparseSamples
from ratoon.samples.on_disk import DiskRows, MapReader
from ratoon.samples.on_disk_csr import CsrReader, DiskCsrRows
from ratoon.samples.prepared import learn_preparation, prepared

ROWS = arrays(np.float64, (5, 8), elements=st.integers(-5, 5).map(float))


def intensities(seed=0, n=30, p=40):
    return 2 ** np.random.default_rng(seed).normal(8, 1, (n, p))


@pytest.mark.parametrize(
    ("values", "raw"),
    [
        (intensities(), True),
        (intensities() - 50, True),
        (np.log2(intensities()), False),
        (np.log2(intensities()) - 8, False),
        (np.random.default_rng(0).normal(size=200), False),
        (np.random.default_rng(0).poisson(0.5, 500) * 40.0, True),
        (np.random.default_rng(0).integers(0, 4, 500), False),
        (np.empty(0), False),
    ],
    ids=["intensities", "with negatives", "logs", "log ratios", "z-scores", "counts", "steps", "-"],
)
def test_values_are_recognised_as_raw_or_logarithms(values, raw):
    assert is_raw(values.ravel()) is raw


def test_logarithms_keep_zeros_and_take_negatives_as_zero():
    assert_allclose(log2_of(np.array([-9.0, 0, 1, 1023])), [0, 0, 1, 10])


@given(ROWS)
def test_prepared_rows_have_the_learned_distribution_but_for_equal_values(rows):
    quantiles = quantiles_of([rows[:2], rows[2:]], 8)
    assert_allclose(quantiles, np.sort(rows, axis=1).mean(axis=0))
    found = to_quantiles(rows, quantiles)
    assert_allclose(found.sum(axis=1), quantiles.sum())
    for before, after in zip(rows, found, strict=True):
        assert (np.diff(after[np.argsort(before, kind="stable")]) >= -1e-12).all()
        for value in np.unique(before):
            assert np.ptp(after[before == value]) == 0
        if np.unique(before).size == 8:
            assert_allclose(np.sort(after), quantiles)


def test_groups_of_training_keep_their_mean_and_new_ones_get_their_own():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 3))
    codes = np.repeat([0, 1], 6)
    x[codes == 1] += 5
    found = learn_preparation(
        DenseSamples(x), Prepare(center_groups=True), groups=(codes, ("a", "b"))
    )
    names = ["a"] * 6 + ["b"] * 6
    centred = found.rows(x, names)
    assert_allclose(centred[:6].mean(axis=0), centred[6:].mean(axis=0))
    assert_allclose(centred.mean(axis=0), x.mean(axis=0))
    assert_allclose(found.rows(x[:2], names[:2]), centred[:2])
    new = found.rows(x[:4] + 100, ["c"] * 4)
    assert_allclose(new.mean(axis=0), x.mean(axis=0))
    with pytest.raises(InvalidInputError, match="groups of these samples are not known"):
        found.rows(x)


def test_only_training_rows_are_learned_from():
    x = intensities()
    changed = x.copy()
    changed[20:] *= 100
    rows = np.arange(20)
    groups = (np.arange(30) % 3, ("a", "b", "c"))
    how = Prepare("auto", "quantile", center_groups=True)
    one, two = (learn_preparation(DenseSamples(v), how, rows, groups) for v in (x, changed))
    for name in ("quantiles", "group_means", "mean", "fill"):
        assert_array_equal(getattr(one, name), getattr(two, name))


def on_disk(x):
    return DiskRows(MapReader(x))


def sparse_on_disk(x):
    matrix = sp.csr_array(x)
    return DiskCsrRows(CsrReader(matrix.data, matrix.indices, matrix.indptr, x.shape[1]))


@pytest.mark.parametrize(
    "kind",
    [DenseSamples, lambda x: SparseSamples(sp.csr_array(x)), on_disk, sparse_on_disk],
    ids=["dense", "sparse", "on disk", "sparse on disk"],
)
def test_all_kinds_of_samples_are_prepared_alike(kind):
    x = np.random.default_rng(0).poisson(0.3, (20, 6)) * 300.0
    samples = kind(x)
    found = learn_preparation(samples, Prepare("auto"))
    assert found.log2
    ready = prepared(samples, found)
    assert (ready.is_sparse, ready.is_on_disk) == (samples.is_sparse, samples.is_on_disk)
    assert_allclose(ready.dense(), log2_of(x))
    assert_allclose(ready[np.array([3, 1])].dense(), log2_of(x[[3, 1]]))


@pytest.mark.parametrize("how", [Prepare(normalize="quantile"), Prepare(center_groups=True)])
def test_what_makes_zeros_non_zero_is_refused_for_sparse_samples(how):
    x = SparseSamples(sp.csr_array(np.eye(4)))
    with pytest.raises(InvalidInputError, match="sparse"):
        learn_preparation(x, how, groups=(np.array([0, 0, 1, 1]), ("a", "b")))
    with pytest.raises(InvalidInputError, match="sparse"):
        prepared(x, Preparation(quantiles=np.arange(4.0)))


def test_rows_on_disk_get_quantiles_when_they_are_read():
    x = intensities(n=6, p=5)
    found = learn_preparation(on_disk(x), Prepare("yes", "quantile"))
    assert_allclose(np.sort(prepared(on_disk(x), found).dense()), [found.quantiles] * 6)


@pytest.mark.parametrize(
    ("text", "prepare"),
    [
        ("log2", Prepare("yes")),
        ("log2=auto,quantile", Prepare("auto", "quantile")),
        ("log2=no", None),
        (None, None),
        (Prepare(), None),
    ],
)
def test_prepare_can_be_given_as_words(text, prepare):
    assert as_prepare(text) == prepare


@pytest.mark.parametrize("wrong", ["log", "log2=maybe", "", 3, "quantile,,log2"])
def test_other_words_are_refused(wrong):
    with pytest.raises(InvalidParameterError, match="`prepare` must be"):
        as_prepare(wrong)


@pytest.mark.parametrize("options", [{"log2": "maybe"}, {"normalize": 1}, {"center_groups": "yes"}])
def test_impossible_settings_are_refused(options):
    with pytest.raises(InvalidParameterError, match=next(iter(options))):
        Prepare(**options)


def whole():
    return Preparation(
        True, np.arange(3.0), ("a", "b"), np.ones((2, 3)), np.zeros(3), "batch", np.ones(3)
    )


def test_a_preparation_survives_its_parts():
    values, found = whole().to_parts()
    again = Preparation.from_parts(values, found, 3)
    assert not found
    for name, value in vars(whole()).items():
        assert_array_equal(getattr(again, name), value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("log2", 1),
        ("group_names", ["a"]),
        ("group_names", []),
        ("group_names", [1, 2]),
        ("arrays", ["quantiles", "quantiles"]),
        ("arrays", ["secret"]),
        ("group_column", None),
        ("more", 1),
    ],
)
def test_damaged_parts_are_refused(key, value):
    values, found = whole().to_parts()
    with pytest.raises((FormatError, KeyError)):
        Preparation.from_parts({**values, key: value}, found, 3)


def test_arrays_of_another_size_or_order_are_refused():
    values, found = whole().to_parts()
    with pytest.raises(FormatError, match="finite numbers"):
        Preparation.from_parts(values, dict(found), 4)
    with pytest.raises(FormatError, match="must not decrease"):
        Preparation.from_parts(values, {**found, "preparation_quantiles": np.array([1.0, 0, 2])}, 3)
