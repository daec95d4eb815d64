"""`align`: tables with other columns than those of training, by choice and never by accident."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

import ratoon
from ratoon.datasets import Dataset
from ratoon.errors import InvalidInputError
from ratoon.estimators.names import FeatureCoverageWarning
from tests.estimators.frames import polars

NAMES = [f"gene{k}" for k in range(10)]


@pytest.fixture(scope="module")
def frame():
    x = np.random.default_rng(0).normal(loc=3.0, size=(60, 10))
    return pd.DataFrame(x, columns=NAMES)


@pytest.fixture(scope="module")
def model(frame):
    y = (frame["gene0"] > 3).to_numpy()
    return ratoon.SparseMLPClassifier((20,), epsilon=5, max_iter=20, random_state=0).fit(frame, y)


def shuffled(frame):
    return frame[NAMES[::-1]].assign(stranger=1.0)


def test_wrong_names_are_an_error_unless_alignment_is_chosen(model, frame):
    with pytest.raises(ValueError, match="feature names"):
        model.predict(shuffled(frame))
    aligned = model.align(shuffled(frame))
    assert_array_equal(model.predict_proba(aligned), model.predict_proba(frame))
    assert "1 extra left out (stranger); reordered" in aligned.notes[-1]


def columns_of(frame):
    return {name: frame[name].to_numpy() for name in frame}


def cells_of(frame):
    return SimpleNamespace(X=scipy.sparse.csr_matrix(frame.to_numpy()), var_names=frame.columns)


TABLES = {
    "polars": lambda frame: polars().DataFrame(columns_of(frame)),
    "arrow": lambda frame: pa.table(columns_of(frame)),
    "dataset": lambda frame: Dataset(frame.to_numpy(), feature_names=tuple(frame)),
    "anndata": cells_of,
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_is_accepted(model, frame, kind):
    given = TABLES[kind](shuffled(frame))
    found = model.predict_proba(model.align(given))
    assert found == pytest.approx(model.predict_proba(frame), abs=1e-6)


def test_a_missing_feature_gives_a_warning_and_gets_its_mean(model, frame):
    with pytest.warns(FeatureCoverageWarning, match=r"9 of 10 .* 1 missing \(gene4\).* mean over"):
        aligned = model.align(frame.drop(columns="gene4"))
    mean = frame.assign(gene4=frame["gene4"].mean())
    # The mean is kept in float32.
    assert model.predict_proba(aligned) == pytest.approx(model.predict_proba(mean), abs=1e-5)


def test_without_centring_a_missing_feature_is_0(frame):
    sparse = scipy.sparse.csr_array(np.maximum(frame.to_numpy() - 3, 0))
    data = Dataset(sparse, feature_names=tuple(NAMES))
    model = ratoon.SparseMLPClassifier((20,), epsilon=5, max_iter=2, random_state=0)
    model.fit(data, np.arange(60) % 2)
    less = Dataset(sparse[:, 1:], feature_names=tuple(NAMES[1:]))
    with pytest.warns(FeatureCoverageWarning, match="get 0, as this model does not centre"):
        aligned = model.align(less)
    assert aligned.is_sparse
    assert aligned.X[:, [0]].nnz == 0


def test_below_the_threshold_is_an_error(model, frame):
    few = frame[NAMES[:8]]
    with pytest.raises(
        InvalidInputError, match=r"8 of the 10 required features are present \(80.0%\)"
    ):
        model.align(few)
    with pytest.warns(FeatureCoverageWarning):
        model.align(few, min_coverage=0.8)


def test_an_id_map_is_a_mapping_or_a_file(model, frame, tmp_path):
    probes = frame.rename(columns={name: f"probe {name}" for name in NAMES})
    pairs = {f"probe {name}": name for name in NAMES}
    path = tmp_path / "probes.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs.items()), encoding="utf-8")
    for given in (pairs, path, str(path)):
        aligned = model.align(probes, id_map=given)
        assert_array_equal(model.predict(aligned), model.predict(frame))


def test_samples_without_feature_names_cannot_be_aligned(model, frame):
    with pytest.raises(InvalidInputError, match="ndarray has no feature names"):
        model.align(frame.to_numpy())
    plain = ratoon.SparseMLPRegressor((5,), max_iter=1).fit(frame.to_numpy(), frame["gene0"])
    with pytest.raises(InvalidInputError, match="fitted without feature names"):
        plain.align(frame)


def test_a_data_set_can_be_fitted_and_its_names_are_kept(frame):
    data = Dataset(frame.to_numpy(), feature_names=tuple(NAMES))
    model = ratoon.SparseMLPRegressor((5,), max_iter=1, random_state=0).fit(data, frame["gene0"])
    assert model.feature_names_in_.tolist() == NAMES
    assert_array_equal(model.predict(data), model.predict(frame))
    other = Dataset(frame.to_numpy(), feature_names=tuple(NAMES[::-1]))
    with pytest.raises(InvalidInputError, match="Dataset are not those of training"):
        model.predict(other)
    nameless = ratoon.SparseMLPRegressor((5,), max_iter=1).fit(Dataset(data.X), frame["gene0"])
    assert not hasattr(nameless, "feature_names_in_")
