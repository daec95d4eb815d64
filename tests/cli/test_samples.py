"""Commands on files whose samples stay on disk."""

import json

import h5py
import numpy as np
import pytest

OPTIONS = ("--hidden", "20", "--epsilon", "5", "--epochs", "5", "--quiet")


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8)).astype(np.float32)
    y = np.where(X[:, 0] > 0, "up", "down")
    with h5py.File(tmp_path / "big.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(10, 8))
        file["y"] = y.astype("S")
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    np.savez(tmp_path / "small.npz", X=X, y=y)
    return tmp_path


def predictions(ratoon, model, data):
    return ratoon("predict", model, data, "--probabilities", "--quiet").out


def test_a_model_from_disk_is_the_model_from_memory(ratoon, files):
    outcome = []
    for data, label in (("small.npz", "y"), ("big.h5", "y"), ("X.npy", files / "y.npy")):
        model = files / f"{data}.ratoon"
        done = ratoon(
            "train", files / data, "--label", label, *OPTIONS, "--test", 0.3, "-o", model, "--json"
        )
        outcome.append({**json.loads(done.out), "model": None, "loss": None})
        outcome[-1]["predictions"] = predictions(ratoon, model, files / data)
    assert outcome[0] == outcome[1] == outcome[2]


def test_options_that_need_samples_in_memory_are_refused_for_files_on_disk(ratoon, files):
    done = ratoon("train", files / "big.h5", *OPTIONS[:-1])
    assert "samples from array 'X', which stays on disk" in done.err
    done = ratoon("train", files / "big.h5", "--missing", "mean")
    assert done.code != 0
    assert "stay on disk" in " ".join(done.err.split())
    done = ratoon("train", files / "big.h5", "--read", "sparse=true")
    assert "stay on disk" in " ".join(done.err.split())
