"""Model files changed at random and sealed: what `load` accepts can be used, saved and trained."""

import contextlib

import numpy as np
import pytest

import ratoon
from ratoon.errors import RatoonError
from ratoon.inference import Predictor
from tests.adversary.attacks import only_ratoon_errors, repeat
from tests.storage.mutate import mutant

X = np.random.default_rng(0).normal(size=(30, 8))
HOW = {"hidden_layer_sizes": (6,), "epsilon": 3, "max_iter": 3, "random_state": 0}
MODELS = {
    "classifier": lambda: ratoon.SparseMLPClassifier(**HOW, evolution="rigl").fit(X, X[:, 0] > 0),
    "labels": lambda: ratoon.SparseMLPClassifier(**HOW).fit(X, (X[:, :2] > 0).astype(int)),
    "regressor": lambda: ratoon.SparseMLPRegressor(
        **HOW, early_stopping=True, evolution="snfs"
    ).fit(X, X[:, :2]),
}
USES = (
    lambda model, x, path: str(model.report_),
    lambda model, x, path: model.predict(x),
    lambda model, x, path: model.feature_importances_,
    lambda model, x, path: model.coefs_,
    lambda model, x, path: model.partial_fit(x, model.predict(x)),
    lambda model, x, path: model.save(path),
    lambda model, x, path: ratoon.load(path).predict(x),
    lambda model, x, path: Predictor.load(path).predict(x.astype(np.float32)),
)


def attack(seed, raw, folder):
    """Use one mutant; return whether it was loaded."""
    path = folder / "model.ratoon"
    path.write_bytes(mutant(np.random.default_rng(seed), raw))
    model = None
    with only_ratoon_errors():
        model = ratoon.load(path)
    if model is None or model.n_features_in_ > 10_000:
        return False
    x = np.random.default_rng(0).normal(size=(12, model.n_features_in_))
    for use in USES:
        with only_ratoon_errors(), contextlib.suppress(RatoonError):
            use(model, x, path)
    return True


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", MODELS)
def test_a_changed_model_that_is_loaded_can_be_used(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("RATOON_MEMORY_LIMIT", "200MB")
    MODELS[kind]().save(tmp_path / "good.ratoon")
    raw = (tmp_path / "good.ratoon").read_bytes()
    n_loaded = sum(attack(seed, raw, tmp_path) for seed in range(60))
    assert n_loaded > 3


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore")
def test_changed_models_that_are_loaded_can_be_used_for_long(tmp_path, monkeypatch, minutes, say):
    monkeypatch.setenv("RATOON_MEMORY_LIMIT", "200MB")
    files = []
    for kind, make in MODELS.items():
        make().save(tmp_path / kind)
        files.append((tmp_path / kind).read_bytes())
    repeat(lambda seed: attack(seed, files[seed % len(files)], tmp_path), minutes, say)
