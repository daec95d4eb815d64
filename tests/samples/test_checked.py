import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.errors import InvalidInputError
from ratoon.kernels import as_samples
from ratoon.samples.checked import checked_samples, checked_weights
from ratoon.samples.csr import checked_csr
from ratoon.samples.statistics import ConstantFeatureWarning
from tests.estimators.frames import polars

NAMES = list("abcdefgh")


def model():
    return SparseMLPClassifier((12,), max_iter=4, random_state=0)


def unaligned(X):
    view = np.zeros(X.nbytes + 1, dtype=np.uint8)[1:].view(X.dtype).reshape(X.shape)
    view[:] = X
    assert not view.flags.aligned
    return view


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


FORMS = {
    "Fortran": np.asfortranarray,
    "big-endian": lambda X: X.astype(">f8"),
    "unaligned": unaligned,
    "read-only": read_only,
    "negative strides": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "objects": lambda X: X.astype(object),
    "lists": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "pandas nullable": lambda X: pd.DataFrame(X, columns=NAMES).convert_dtypes(),
    "polars": lambda X: polars().DataFrame(X, schema=NAMES),
    "arrow": lambda X: pa.table({name: X[:, i] for i, name in enumerate(NAMES)}),
}


@pytest.mark.parametrize("form", FORMS)
def test_samples_in_any_form_give_the_same_network(two_classes, form):
    X, y = two_classes
    expected = model().fit(X, y).predict_proba(X)
    given = FORMS[form](X)
    fitted = model().fit(given, y)
    assert_array_equal(fitted.predict_proba(given), expected)
    has_names = form.split()[0] in ("pandas", "polars", "arrow")
    assert hasattr(fitted, "feature_names_in_") == has_names


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "i4", "u8", "f2", "f4", "f8", ">i4"])
def test_every_real_type_is_accepted(two_classes, dtype):
    X, y = two_classes
    given = (X > 0).astype(dtype) if dtype == "?" else np.abs(10 * X).astype(dtype)
    as_double = given.astype(np.float64)
    expected = model().fit(as_double, y).predict_proba(as_double)
    assert_array_equal(model().fit(given, y).predict_proba(given), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_maps_are_not_copied(two_classes, tmp_path, dtype):
    X, y = two_classes
    np.save(tmp_path / "x.npy", X.astype(dtype))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    checked = checked_samples(model(), mapped, reset=True)
    assert np.shares_memory(checked.values(), mapped)
    assert as_samples(checked, np.float32).n_rows == 90
    assert model().fit(mapped, y).score(mapped, y) > 0


def test_names_are_compared(two_classes):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=NAMES)
    fitted = model().fit(frame, y)
    assert fitted.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(frame[NAMES[::-1]])


def test_anndata_gives_its_matrix_and_the_names_of_its_variables(two_classes):
    X, y = two_classes

    class AnnData(SimpleNamespace):
        pass

    AnnData.__module__ = "anndata._core.anndata"
    cells = AnnData(X=scipy.sparse.csr_matrix(X), var_names=pd.Index(NAMES))
    fitted = model().fit(cells, y)
    assert fitted.predict(cells).shape == (90,)
    assert fitted.feature_names_in_.tolist() == NAMES
    cells.var_names = pd.Index(NAMES[::-1])
    with pytest.raises(InvalidInputError, match="not those of training"):
        fitted.predict(cells)
    assert fitted.network_.scaling.shift is None
    assert "anndata" not in sys.modules


# -------------------------------------------------------------------------------------- sparse


@pytest.fixture
def csr(rng):
    return scipy.sparse.random_array((90, 8), density=0.4, random_state=rng, format="csr")


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_sparse_samples_of_any_format_give_the_same_network(csr, two_classes, form, kind):
    _, y = two_classes
    expected = model().fit(csr, y).predict_proba(csr)
    given = getattr(scipy.sparse, f"csr_{kind}")(csr).asformat(form)
    before = given.copy()
    assert_array_equal(model().fit(given, y).predict_proba(given), expected)
    assert type(given) is type(before)
    assert_array_equal(given.toarray(), before.toarray())


def test_duplicates_are_added_up_and_X_is_not_changed(csr, two_classes):
    _, y = two_classes
    twice = scipy.sparse.csr_array(
        (np.repeat(csr.data / 2, 2), np.repeat(csr.indices, 2), 2 * csr.indptr), shape=csr.shape
    )
    expected = model().fit(csr, y).predict_proba(csr)
    assert_array_equal(model().fit(twice, y).predict_proba(twice), expected)
    assert twice.nnz == 2 * csr.nnz


def test_unsorted_and_wide_indices_are_accepted(csr, two_classes):
    _, y = two_classes
    mixed = csr.copy()
    for start, stop in zip(csr.indptr[:-1], csr.indptr[1:], strict=True):
        mixed.indices[start:stop] = csr.indices[start:stop][::-1]
        mixed.data[start:stop] = csr.data[start:stop][::-1]
    mixed.has_sorted_indices = False
    mixed.indices, mixed.indptr = mixed.indices.astype(np.int64), mixed.indptr.astype(np.int64)
    before = mixed.indices.copy()
    expected = model().fit(csr, y).predict_proba(csr)
    assert_array_equal(model().fit(mixed, y).predict_proba(mixed), expected)
    assert_array_equal(mixed.indices, before)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("index", [-1, 10**6, 2**31 - 1])
def test_indices_out_of_range_are_refused_before_native_code_sees_them(csr, form, index):
    damaged = csr.asformat(form).copy()
    (damaged.coords[1] if form == "coo" else damaged.indices)[3] = index
    with pytest.raises(InvalidInputError, match="damaged"):
        checked_csr(damaged)


@pytest.mark.parametrize("starts", [[5, 0], [0, 10**6], [1, 2], [0, -3]])
def test_index_pointers_out_of_order_are_refused(csr, two_classes, starts):
    damaged = csr.copy()
    damaged.indptr[:2] = starts
    with pytest.raises(InvalidInputError, match="index pointers must rise"):
        model().fit(damaged, two_classes[1])


def test_arrays_of_other_lengths_are_refused(csr):
    damaged = csr.copy()
    damaged.data = damaged.data[:-5]
    with pytest.raises(InvalidInputError, match="damaged"):
        checked_csr(damaged)


# ---------------------------------------------------------------------------------- bad samples


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: np.where(X > 2, np.nan, X), "Input X contains NaN"),
        (lambda X: np.where(X > 2, np.inf, X), "Input X contains infinity"),
        (lambda X: scipy.sparse.csr_array(np.where(X > 2, np.nan, X)), "X contains NaN"),
        (lambda X: X[:0], "0 sample"),
        (lambda X: X[:, :0], "0 feature"),
        (lambda X: X[0], "Expected 2D array"),
        (lambda X: X[None], "dim 3"),
        (lambda X: X + 1j, "Complex data not supported"),
        (lambda X: np.full(X.shape, "gene"), "could not convert string to float"),
        (lambda X: np.ma.masked_array(X, mask=X > 2), "its mask would be lost"),
        (lambda X: X.astype("M8[s]"), "datetime64.s., which are not numbers"),
        (lambda X: X.astype("m8[s]"), "timedelta64.s., which are not numbers"),
        (lambda X: pd.DataFrame({"t": pd.date_range("2020", periods=90)}), "datetime64"),
        (lambda X: polars().DataFrame({"t": X[:, 0].astype("M8[ms]")}), "Datetime"),
        (lambda X: pd.DataFrame(X).astype("Float64").mask(X > 2), "NaN|NA"),
    ],
)
def test_samples_that_cannot_be_used_are_refused(two_classes, spoil, message):
    X, y = two_classes
    fitted = model().fit(X, y)
    with pytest.raises((ValueError, TypeError), match=message):
        model().fit(spoil(X), y)
    with pytest.raises((ValueError, TypeError), match=message):
        fitted.predict(spoil(X))


def test_another_number_of_features_is_refused(two_classes):
    X, y = two_classes
    fitted = model().fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 8"):
        fitted.predict(X[:, :3])
    with pytest.raises(ValueError, match="X has 3 features"):
        fitted.partial_fit(X[:, :3], y)
    with pytest.raises(ValueError, match="X has 3 features"):
        model().fit(X, y, eval_set=(X[:, :3], y))


def test_constant_features_are_reported_and_read_as_zero(two_classes):
    X, y = two_classes
    expected = model().fit(X, y)
    wider = np.c_[X, np.full(90, 7.0)]
    with pytest.warns(ConstantFeatureWarning, match="1 of 9 features") as caught:
        fitted = model().fit(wider, y)
    assert caught[0].filename == __file__
    assert fitted.feature_importances_[8] == 0.0
    elsewhere = np.c_[X, np.full(90, -1e6)]
    assert_array_equal(fitted.predict_proba(wider), fitted.predict_proba(elsewhere))
    assert expected.network_.widths[0] + 1 == fitted.network_.widths[0]


@pytest.mark.filterwarnings(
    "ignore::ratoon.samples.statistics.ConstantFeatureWarning"
)  # that is the point
def test_constant_samples_give_the_frequency_of_each_class(two_classes):
    X, _ = two_classes
    y = np.repeat([0, 1], [80, 10])
    fitted = model().set_params(max_iter=100, learning_rate_init=0.1).fit(np.ones_like(X), y)
    # Only the biases can learn, and what they learn is the share of each class.
    np.testing.assert_allclose(fitted.predict_proba(X)[:, 1], 1 / 9, atol=0.01)


@pytest.mark.parametrize(
    "make",
    [
        pd.Series,
        lambda y: polars().Series(y),
        lambda y: pd.Series(y).astype("category"),
        lambda y: pa.array(y.tolist()),
    ],
)
def test_targets_can_be_columns_of_tables(two_classes, make):
    X, y = two_classes
    names = np.where(y == 1, "up", "down")
    assert model().fit(X, make(names)).classes_.tolist() == ["down", "up"]
    assert SparseMLPRegressor((5,), max_iter=2).fit(X, make(X[:, 0])).predict(X).shape == (90,)


# ------------------------------------------------------------------------------------- weights


def test_weights_can_be_one_number_for_all():
    assert checked_weights(2, 3).tolist() == [2.0, 2.0, 2.0]
    assert checked_weights(None, 3) is None


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"sample_weight.shape == \(3,\), expected \(90,\)"),
        (np.ones((90, 2)), "Sample weights must be 1D"),
        (np.full(90, np.nan), "`sample_weight` contains NaN"),
        (-np.ones(90), "must not be negative"),
        (np.zeros(90), "at least one non-zero"),
        (np.ma.masked_array(np.ones(90), mask=False), "masked array"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(two_classes, weights, message):
    with pytest.raises(InvalidInputError, match=message):
        model().fit(*two_classes, sample_weight=weights)


@pytest.mark.parametrize("eval_set", [np.eye(3), (np.eye(3),), "none", [1, 2, 3, 4]])
def test_an_eval_set_must_be_samples_and_targets(two_classes, eval_set):
    with pytest.raises(InvalidInputError, match="`eval_set` must be a tuple"):
        model().fit(*two_classes, eval_set=eval_set)
