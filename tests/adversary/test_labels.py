"""Labels and names of any characters: what `fit` accepts is saved, loaded, and shown safely."""

import random

import numpy as np
import pytest

import ratoon
from ratoon.cli import main
from ratoon.datasets import Dataset
from tests.adversary.attacks import has_controls, only_ratoon_errors, repeat

CHARACTERS = (
    *("a", "=", "+", "-", "@", "'", '"', ",", ";", "\t", "\n", "\r", "\0", "\x1b", "\x7f", "\x9b"),
    *("\u202e", "\u2028", "\ufeff", "\u0301", "\ud800", "\udfff", "\U0010ffff", "[", "]", "{", "%"),
)
WHOLE = ("", " ", "\0", "=1+1", "[red]", "\x1b]0;x\x07", "nan", "None", "0", "-0", "x" * 70_000)


def random_name(choose):
    if choose.random() < 0.3:
        return choose.choice(WHOLE)
    return "".join(choose.choices(CHARACTERS, k=choose.randint(1, 5)))


def attack(seed, folder, capsys):
    """Fit, save, load, predict and show with random names of classes and features."""
    choose = random.Random(seed)
    n_classes, n_features = choose.randint(2, 4), choose.randint(1, 4)
    classes = tuple(random_name(choose) for _ in range(n_classes))
    names = tuple(random_name(choose) for _ in range(n_features))
    if choose.random() < 0.5:
        names = tuple(f"{k}{name}" for k, name in enumerate(names))  # else often duplicates
        classes = tuple(f"{k}{name}" for k, name in enumerate(classes))
    values = np.random.default_rng(0).normal(size=(12, n_features))
    codes = np.arange(12) % n_classes
    path = folder / "model.ratoon"
    path.unlink(missing_ok=True)
    with only_ratoon_errors():
        if choose.random() < 0.5:
            X, y = Dataset(values, codes, feature_names=names, class_names=classes), None
        else:
            X = Dataset(values, feature_names=names)
            y = np.array([*(classes[code] for code in codes), None], dtype=object)[:-1]
        model = ratoon.SparseMLPClassifier((3,), max_iter=1, random_state=0).fit(X, y)
        expected = model.predict(X).tolist()
        model.save(path)
        assert ratoon.load(path).predict(X).tolist() == expected
    if path.exists():
        capsys.readouterr()
        for command in (["inspect", str(path)], ["inspect", str(path), "--json"]):
            assert main(command) == 0
        printed = "".join(capsys.readouterr())
        assert not has_controls(printed), {c for c in printed if not c.isprintable()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", range(4))
def test_names_of_any_characters_are_kept_or_refused(tmp_path, capsys, batch):
    for seed in range(10):
        attack(f"{batch} {seed}", tmp_path, capsys)


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore")
def test_names_of_any_characters_are_kept_or_refused_for_long(tmp_path, capsys, minutes, say):
    repeat(lambda seed: attack(seed, tmp_path, capsys), minutes, say)
