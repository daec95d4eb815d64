"""Folders with a split network: any number of ranks, interruptions, damage."""

import json
import shutil

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.distributed import SingleRank, ThreadRanks
from ratoon.distributed.split import SplitFolder, SplitNetwork, SplitTraining
from ratoon.errors import FormatError, InvalidInputError
from ratoon.evolution import SET
from ratoon.kernels import Scaling
from ratoon.optimizers import SGD, Adam
from ratoon.storage import ResumeError
from ratoon.training import TrainingPlan

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 20)).astype(np.float32)
TARGETS = np.eye(3, dtype=np.float32)[RNG.integers(3, size=40)]


def a_plan(**given):
    how = {"batch_size": 8, "n_epochs": 6, "learning_rate": 0.05, "evolution": SET(), "seed": 3}
    return TrainingPlan(**{**how, "optimizer": SGD(momentum=0.9), **given})


def train(folder, n_ranks, *, n_epochs=None, n_parts=4, plan=None):
    def work(ranks):
        scaling = Scaling(X.mean(axis=0), 1 / X.std(axis=0), 3.0)
        network = SplitNetwork.start(
            (20, 30, 15, 3), n_parts, ranks, density=0.3, seed=1, scaling=scaling
        )
        folders = None if folder is None else SplitFolder(folder, {"note": "hello"})
        training = SplitTraining(network, X, TARGETS, plan or a_plan(), folder=folders)
        training.run(n_epochs)
        return training.outputs(X), training.history.column("loss")

    return ThreadRanks(n_ranks).run(work)[0]


def test_training_continues_on_another_number_of_ranks(tmp_path):
    expected = train(None, 1)
    train(tmp_path, 1, n_epochs=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["epoch-00000002", "split.json"]
    train(tmp_path, 1, n_epochs=2)
    outputs, losses = train(tmp_path, 1)
    assert losses == expected[1]
    assert_array_equal(outputs, expected[0])
    shutil.rmtree(tmp_path)
    train(tmp_path, 4, n_epochs=3)
    outputs, losses = train(tmp_path, 2)
    # float32 sums in another order
    np.testing.assert_allclose(losses, expected[1], rtol=1e-4)
    np.testing.assert_allclose(outputs, expected[0], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("n_ranks", [1, 3, 4])
def test_any_number_of_ranks_loads_and_predicts(tmp_path, n_ranks):
    outputs, _ = train(tmp_path, 2)
    found = ThreadRanks(n_ranks).run(lambda ranks: SplitFolder(tmp_path).load(ranks).outputs(X))
    np.testing.assert_allclose(found[0], outputs, rtol=1e-4, atol=1e-5)
    assert SplitFolder(tmp_path).description() == {"note": "hello"}


def test_an_epoch_that_was_not_completed_is_ignored(tmp_path):
    train(tmp_path, 1, n_epochs=2)
    (tmp_path / "epoch-00000003").mkdir()
    (tmp_path / "epoch-00000003" / "part-00000.ratoon").write_bytes(b"half")
    assert train(tmp_path, 1)[1] == train(None, 1)[1]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"plan": a_plan(learning_rate=0.1)}, "plan.learning_rate"),
        ({"plan": a_plan(optimizer=Adam())}, "plan.optimizer"),
        ({"n_parts": 3}, "n_parts"),
    ],
)
def test_another_training_is_refused(tmp_path, change, named):
    train(tmp_path, 1, n_epochs=1)
    with pytest.raises(ResumeError, match=named):
        train(tmp_path, 1, **change)


def test_a_folder_without_a_network_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="not a folder with a split network"):
        SplitFolder(tmp_path).load(SingleRank())


DAMAGES = {
    "not JSON": "{",
    "a list": "[]",
    "nested": "[" * 100_000,
    "no epoch": {"epoch": None},
    "a negative epoch": {"epoch": -1},
    "other widths": {"widths": [20, 31, 15, 3]},
    "widths of text": {"widths": ["20", 30, 15, 3]},
    "a huge width": {"widths": [20, 2**31, 15, 3]},
    "another activation": {"kinds": [{"activation": "x", "slope": 0, "dropout": 0}] * 3},
    "fewer layers": {"widths": [20, 30, 3], "kinds": []},
    "other parts": {"n_parts": 2},
    "another dtype": {"dtype": "float64"},
    "an epoch that is not there": {"epoch": 5},
    "a path": {"epoch": "../x"},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_description_is_refused(tmp_path, damage):
    train(tmp_path, 1, n_epochs=1)
    path, change = tmp_path / "split.json", DAMAGES[damage]
    if isinstance(change, str):
        path.write_text(change)
    else:
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises((FormatError, OSError)):
        SplitFolder(tmp_path).load(SingleRank())


@pytest.mark.parametrize("damage", ["swapped", "missing", "scaling", "flipped"])
def test_damaged_parts_are_refused(tmp_path, damage):
    train(tmp_path, 1, n_epochs=1)
    folder = tmp_path / "epoch-00000001"
    first, second = folder / "part-00000.ratoon", folder / "part-00001.ratoon"
    if damage == "swapped":
        raw = first.read_bytes(), second.read_bytes()
        first.write_bytes(raw[1])
        second.write_bytes(raw[0])
    elif damage == "missing":
        second.unlink()
    elif damage == "scaling":
        (folder / "scaling.ratoon").write_bytes(first.read_bytes())
    else:
        raw = bytearray(second.read_bytes())
        raw[-3] ^= 4
        second.write_bytes(raw)
    with pytest.raises((FormatError, OSError)):
        SplitFolder(tmp_path).load(SingleRank())
