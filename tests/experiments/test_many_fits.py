"""Many fits at the same time: processes and a Dask cluster give the results of one process."""

import joblib
import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB

from ratoon import SparseMLPClassifier, _native
from ratoon.experiments.compare import compare
from ratoon.experiments.fan_out import fan_out
from ratoon.experiments.rivals import ProximalSVM
from ratoon.paper.reproduce import reproduce
from ratoon.paper.runs import Effort

pytestmark = pytest.mark.slow  # new processes import a lot

RNG = np.random.default_rng(0)
Y = np.arange(48) % 2
X = RNG.normal(size=(48, 40)) + Y[:, None] * (np.arange(40) < 5)
MODEL = SparseMLPClassifier((20,), max_iter=3, random_state=0)
METHODS = {
    "SET": lambda seed: SparseMLPClassifier((20,), max_iter=3, random_state=seed),
    "bayes": lambda seed: GaussianNB(),
}


@pytest.fixture(scope="module")
def dask_client():
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    # Without an address it listens at 8787, which another run of these tests may have taken.
    anywhere = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **anywhere) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(params=["loky", "dask"])
def backend(request):
    """All calls to joblib inside the test go to two workers of that kind."""
    if request.param == "dask":
        request.getfixturevalue("dask_client")
        how = {"wait_for_workers_timeout": 120}
    else:
        how = {"n_jobs": 2, "inner_max_num_threads": 1}
    with joblib.parallel_config(backend=request.param, **how):
        yield request.param


def test_cross_validation_scores_are_those_of_one_process(backend):
    with joblib.parallel_config(backend="sequential"):
        expected = cross_val_score(MODEL, X, Y, cv=3)
    np.testing.assert_array_equal(cross_val_score(MODEL, X, Y, cv=3), expected)


def test_an_ensemble_predicts_what_it_predicts_from_one_process(backend):
    ensemble = BaggingClassifier(MODEL, n_estimators=2, random_state=0)
    with joblib.parallel_config(backend="sequential"):
        expected = ensemble.fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(ensemble.fit(X, Y).predict_proba(X), expected)


def test_a_comparison_is_that_of_one_process(backend):
    how = {"n_splits": 3, "n_repeats": 1, "n_permutations": 1}
    lines = []
    found = compare(X, Y, METHODS, **how, tell=lines.append)
    with joblib.parallel_config(backend="sequential"):
        expected = compare(X, Y, METHODS, **how)
    for name in METHODS:
        np.testing.assert_array_equal(found.accuracy[name], expected.accuracy[name])
        np.testing.assert_array_equal(found.permuted[name], expected.permuted[name])
    assert lines[0].startswith("split 1 of 3: SET")
    assert len(lines) == 12


def test_a_table_of_the_paper_is_that_of_one_process(backend):
    effort = Effort(trials=2, epochs=2, scale=0.005, sets=("GLI-85",))
    found = reproduce("curves", effort)
    with joblib.parallel_config(backend="sequential"):
        assert found.rows == reproduce("curves", effort).rows


def kind_and_threads(x):
    """Fit a model large enough for several threads; return the type of x and the threads."""
    model = SparseMLPClassifier((200,), density=1.0, batch_size=64, max_iter=1, random_state=0)
    y = np.arange(x.shape[0]) % 2
    threads = [_native.pool_size() + 1 for n in (None, 2) if model.set_params(n_jobs=n).fit(x, y)]
    return type(x).__name__, threads


def test_a_fit_in_a_worker_maps_its_samples_and_uses_one_thread(backend):
    x = RNG.normal(size=(64, 200)).astype(np.float32)
    [(kind, threads)] = fan_out(kind_and_threads, x, [()])
    assert kind == "memmap"
    assert threads == [1, 2], "one unless asked for two"


def test_the_blocks_of_mrpsvm_add_up_to_those_of_one_process(backend):
    with joblib.parallel_config(backend="sequential"):
        expected = ProximalSVM(k=(3, 20), n_blocks=3).fit(X, Y)
    found = ProximalSVM(k=(3, 20), n_blocks=3).fit(X, Y)
    assert found.k_ == expected.k_
    np.testing.assert_array_equal(found.coef_, expected.coef_)
