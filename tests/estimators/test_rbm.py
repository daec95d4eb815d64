"""A sparse Boltzmann machine as scikit-learn's users expect one."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import make_pipeline

from ratoon import SparseBernoulliRBM
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.estimators.rbm import OutOfRangeWarning
from ratoon.evolution import RigL


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:300] / 16


@pytest.fixture(scope="module")
def fitted(digits):
    return SparseBernoulliRBM(40, n_iter=8, random_state=0).fit(digits)


def test_the_machine_has_the_requested_connections(digits, fitted):
    assert fitted.components_.shape == (40, 64)
    assert fitted.components_.nnz == 11 * (64 + 40)
    few = SparseBernoulliRBM(40, density=0.1, n_iter=2, random_state=0).fit(digits)
    assert few.components_.nnz == 256


def test_training_raises_the_likelihood_of_samples_and_not_of_noise(digits, fitted):
    start = SparseBernoulliRBM(40, n_iter=1, learning_rate=1e-9, random_state=0).fit(digits)
    gains = fitted.score_samples(digits) - start.score_samples(digits)
    noise = np.random.default_rng(0).permutation(digits.ravel()).reshape(digits.shape)
    losses = fitted.score_samples(noise) - fitted.score_samples(digits)
    # Far more than chance: ten standard errors.
    assert gains.mean() > 10 * gains.std() / np.sqrt(gains.size)
    assert losses.mean() < -10 * losses.std() / np.sqrt(losses.size)


def test_the_recorded_reconstructions_improve(digits, fitted):
    errors = fitted.history_.column("loss")
    assert errors[-1] < errors[0]
    now = np.square(fitted.reconstruct(digits) - digits).mean()
    assert now < np.var(digits, axis=0).mean(), "better than every feature's mean"


def test_scores_are_what_scikit_learn_estimates(digits, fitted):
    other = BernoulliRBM(40, random_state=0)
    other.components_ = fitted.components_.toarray()
    other.intercept_hidden_ = fitted.intercept_hidden_
    other.intercept_visible_ = fitted.intercept_visible_
    other.n_features_in_ = 64
    assert_allclose(other.transform(digits), fitted.transform(digits), rtol=1e-4)
    binary = (digits > 0.5) * 1.0
    other.random_state = np.random.RandomState(0)
    guesses = np.mean([other.score_samples(binary) for _ in range(150)], axis=1)
    error = guesses.std() / np.sqrt(guesses.size)
    assert abs(guesses.mean() - fitted.score_samples(binary).mean()) < 5 * error


def test_partial_fits_give_the_same_machine_as_fit(digits, fitted):
    by_parts = SparseBernoulliRBM(40, n_iter=8, random_state=0)
    for _ in range(8):
        by_parts.partial_fit(digits)
    assert by_parts.n_iter_ == fitted.n_iter_ == 8
    assert_array_equal(by_parts.transform(digits), fitted.transform(digits))


def test_training_continues_exactly_from_a_pickle(digits, fitted):
    part = SparseBernoulliRBM(40, n_iter=8, random_state=0)
    for _ in range(5):
        part.partial_fit(digits)
    part = pickle.loads(pickle.dumps(part))
    for _ in range(3):
        part.partial_fit(digits)
    assert_array_equal(part.intercept_visible_, fitted.intercept_visible_)
    assert_array_equal(part.transform(digits), fitted.transform(digits))


@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.csc_matrix])
def test_sparse_samples_give_the_same_machine(digits, make):
    options = {"n_iter": 3, "random_state": 0}
    dense = SparseBernoulliRBM(20, **options).fit(digits)
    sparse = SparseBernoulliRBM(20, **options).fit(make(digits))
    # Means of features are added up in another order.
    assert_allclose(sparse.transform(make(digits)), dense.transform(digits), rtol=1e-3)
    assert_allclose(sparse.score_samples(make(digits)), dense.score_samples(digits), rtol=1e-3)


def test_gibbs_gives_binary_samples_by_seed(digits, fitted):
    one = fitted.gibbs(digits, random_state=1)
    assert one.shape == digits.shape
    assert set(np.unique(one)) == {0.0, 1.0}
    assert_array_equal(one, fitted.gibbs(digits, random_state=1))
    assert np.any(one != fitted.gibbs(digits, random_state=2))
    far = fitted.gibbs(digits, n_steps=30, random_state=1)
    assert np.abs(one - digits).mean() < np.abs(far - digits).mean()


def test_features_serve_a_classifier(digits):
    y = load_digits().target[:300]
    pipe = make_pipeline(
        SparseBernoulliRBM(100, n_iter=20, random_state=0), LogisticRegression(max_iter=500)
    )
    assert pipe.fit(digits[:200], y[:200]).score(digits[200:], y[200:]) > 0.75
    assert pipe[:1].get_feature_names_out()[1] == "sparsebernoullirbm1"


def test_other_strategies_and_float64(digits):
    rbm = SparseBernoulliRBM(
        30, evolution=RigL(every=5), dtype="float64", n_iter=3, random_state=0
    ).fit(digits)
    assert rbm.transform(digits).dtype == np.float64
    assert sum(rbm.history_.column("rewired")) > 0


def test_memory_depends_on_connections_and_not_on_positions():
    # A dense matrix of weights would take 40 GB.
    rng = np.random.default_rng(0)
    x = scipy.sparse.random_array((4, 100_000), density=0.01, random_state=rng, dtype=np.float32)
    rbm = SparseBernoulliRBM(100_000, epsilon=1, n_iter=2, random_state=0).fit(x)
    assert rbm.components_.nnz == 200_000
    assert rbm.transform(x).shape == (4, 100_000)
    assert np.isfinite(rbm.score_samples(x)).all()


def test_the_report_has_requested_and_achieved_density(digits, capsys):
    SparseBernoulliRBM(40, density=0.1, n_iter=2, verbose=True, random_state=0).fit(digits)
    printed = capsys.readouterr().out
    assert "requested  achieved" in printed
    assert "epoch 2: reconstruction error" in printed


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n_components": 0}, "n_components"),
        ({"epsilon": 5, "density": 0.1}, "either `epsilon` or `density`"),
        ({"density": 1.5}, "density"),
        ({"evolution": "evolve"}, "evolution"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"momentum": 1.0}, "momentum"),
        ({"n_gibbs": 0}, "n_gibbs"),
        ({"dtype": "int8"}, "dtype"),
    ],
)
def test_a_wrong_parameter_is_named(digits, given, said):
    with pytest.raises(InvalidParameterError, match=said):
        SparseBernoulliRBM(**given).fit(digits)


def test_values_outside_0_1_give_a_warning(digits):
    with pytest.warns(OutOfRangeWarning, match="from 0 to 16"):
        SparseBernoulliRBM(10, n_iter=1, random_state=0).fit(16 * digits)


def test_a_damaged_matrix_is_refused(digits, fitted):
    broken = scipy.sparse.csr_array(digits)
    broken.indices = broken.indices.copy()
    broken.indices[0] = 10**6
    with pytest.raises(InvalidInputError, match="damaged"):
        fitted.transform(broken)
