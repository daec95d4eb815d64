"""A checkpoint folder that changes while it is used: the training goes on, or ends with a message.

Whatever happens, it never writes into a folder that another training made anew.
"""

import random
import shutil
import warnings

import numpy as np
import pytest

import ratoon
from ratoon.storage import Checkpoint
from ratoon.training import Callback
from tests.adversary.attacks import only_ratoon_errors, repeat

X = np.random.default_rng(0).normal(size=(30, 6))
Y = X[:, 0] > 0
NAMES = (
    *(
        "checkpoint-00000001.ratoon",
        "checkpoint-123456789.ratoon",
        "checkpoint-999999999999.ratoon",
    ),
    *("checkpoint-0.ratoon", "checkpoint-\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661.ratoon"),
    *("checkpoint--0000001.ratoon", "lock", ".ratoon-0123456789abcdef.tmp", "x"),
)
CONTENTS = (b"", b"x", bytes(100), b"\xff" * 5_000, b'{"' * 3_000)


def remake(choose, folder):
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "mine").write_text("another training")


def remove(choose, folder):
    shutil.rmtree(folder)


def replace_by_file(choose, folder):
    shutil.rmtree(folder)
    folder.write_text("x")


def replace_by_link(choose, folder):
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(choose.choice(("moved", "nowhere", folder.name)))


def add_file(choose, folder):
    path = folder / choose.choice(NAMES)
    if not path.is_dir():
        path.unlink(missing_ok=True)
        path.write_bytes(choose.choice(CONTENTS))


def add_link(choose, folder):
    path = folder / choose.choice(NAMES)
    if not path.is_dir():
        path.unlink(missing_ok=True)
        path.symlink_to(choose.choice(("nowhere", path.name, "..", "/dev/zero", "lock")))


def add_folder(choose, folder):
    path = folder / choose.choice(NAMES)
    if not path.is_dir():
        path.unlink(missing_ok=True)
        path.mkdir()


def damage(choose, folder):
    for path in folder.glob("checkpoint-*"):
        if path.is_file() and choose.random() < 0.7:
            raw = bytearray(path.read_bytes() or b"x")
            raw[choose.randrange(len(raw))] ^= 1 << choose.randrange(8)
            path.write_bytes(raw[: choose.choice((len(raw), len(raw) // 2))])


ACTIONS = (remake, remove, replace_by_file, replace_by_link, add_file, add_link, add_folder, damage)


class Attack(Callback):
    """Does something to the folder after one of the epochs."""

    def __init__(self, choose, folder):
        self.choose, self.folder = choose, folder
        self.epoch = choose.randrange(5)
        self.done = None

    def on_epoch_end(self, training, record):
        if record.epoch == self.epoch and self.folder.is_dir():
            self.done = self.choose.choice(ACTIONS)
            self.done(self.choose, self.folder)


def attack(seed, home):
    choose = random.Random(seed)
    for path in home.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    folder = home / "kept"
    how = {"hidden_layer_sizes": (4,), "epsilon": 2, "max_iter": 5, "random_state": 0}
    for _ in range(3):  # the second and third try to resume
        spoiler = Attack(choose, folder)
        saver = Checkpoint(folder, every=choose.choice((1, 2)))
        model = ratoon.SparseMLPClassifier(**how, callbacks=[spoiler, saver])
        with only_ratoon_errors(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model.fit(X, Y)
            except OSError as error:  # such as a folder that was replaced by a file
                if str(folder) not in str(error):
                    raise
        if spoiler.done is remake:
            assert [path.name for path in folder.iterdir()] == ["mine"], seed
            return


def test_a_folder_that_changes_ends_in_a_message_or_a_checkpoint(tmp_path):
    for seed in range(40):
        attack(seed, tmp_path)


@pytest.mark.soak
def test_folders_that_change_end_in_messages_or_checkpoints_for_long(tmp_path, minutes, say):
    repeat(lambda seed: attack(seed, tmp_path), minutes, say)
