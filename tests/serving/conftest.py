import numpy as np
import pytest

from ratoon import SparseMLPClassifier, SparseMLPRegressor

HOW = {"hidden_layer_sizes": (20,), "density": 0.3, "max_iter": 5, "random_state": 0, "n_jobs": 1}


@pytest.fixture(scope="session")
def samples():
    return np.random.default_rng(0).normal(size=(80, 6))


@pytest.fixture(scope="session")
def classifier(samples):
    return SparseMLPClassifier(**HOW).fit(samples, np.where(samples[:, 0] > 0, "case", "control"))


@pytest.fixture(scope="session")
def regressor(samples):
    return SparseMLPRegressor(**HOW).fit(samples, samples[:, :2])


@pytest.fixture(scope="session")
def named(samples):
    import pandas as pd

    frame = pd.DataFrame(samples, columns=list("abcdef"))
    return SparseMLPClassifier(**HOW).fit(frame, samples[:, 0] > 0)
