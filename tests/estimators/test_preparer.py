"""SamplePreparer: the preparation of `prepare=`, in pipelines of scikit-learn."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from ratoon import SamplePreparer, SparseMLPClassifier
from ratoon.errors import InvalidInputError, InvalidParameterError


@pytest.mark.filterwarnings("ignore")
def test_it_is_a_scikit_learn_transformer():
    check_estimator(SamplePreparer("log2=auto"), on_skip=None)


def test_a_pipeline_gives_what_the_parameter_gives():
    rng = np.random.default_rng(0)
    x, y = 2 ** rng.normal(7, 1, (60, 30)), np.arange(60) % 2
    network = SparseMLPClassifier((9,), max_iter=4, solver="adam", random_state=0)
    piped = make_pipeline(SamplePreparer("log2,quantile"), network).fit(x, y)
    own = network.set_params(prepare="log2,quantile").fit(x, y)
    assert_allclose(piped.predict_proba(x), own.predict_proba(x), rtol=1e-6)
    assert cross_val_score(
        make_pipeline(SamplePreparer(), LogisticRegression()), x, y, cv=3
    ).shape == (3,)


def test_groups_are_centred_and_names_kept():
    x = pd.DataFrame({"a": [1.0, 2.0, 11.0, 12.0], "b": [0.0, 0.0, 1.0, 1.0]})
    groups = ["u", "u", "v", "v"]
    found = SamplePreparer("center_groups").fit(x, groups=groups)
    assert_array_equal(found.transform(x, groups=groups)[:, 0], [6.0, 7.0, 6.0, 7.0])
    assert found.get_feature_names_out().tolist() == ["a", "b"]
    with pytest.raises(InvalidInputError, match="groups"):
        found.transform(x)


def test_sparse_samples_stay_sparse():
    x = sp.csr_array(np.eye(4) * 7)
    found = SamplePreparer("log2").fit_transform(x)
    assert sp.issparse(found)
    assert_allclose(found.toarray(), np.eye(4) * 3)


def test_doing_nothing_is_refused():
    with pytest.raises(InvalidParameterError, match="does nothing"):
        SamplePreparer(None).fit(np.eye(3))
