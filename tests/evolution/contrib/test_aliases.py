"""The documented modules that moved to contrib can still be imported, with a warning."""

from importlib import import_module

import pytest

from ratoon.evolution import allocate
from ratoon.evolution.contrib import lottery, paper


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("ratoon.evolution.paper", paper, "rewire_one_by_one"),
        ("ratoon.evolution.paper", paper, "rewire_vectorised"),
        ("ratoon.evolution.lottery", lottery, "find_ticket"),
        ("ratoon.evolution.lottery", lottery, "with_other_weights"),
        ("ratoon.evolution.lottery", lottery, "LotteryRound"),
    ],
)
def test_the_old_module_returns_the_same_object_and_warns(old, new, name):
    with pytest.warns(DeprecationWarning, match=name):
        assert getattr(import_module(old), name) is getattr(new, name)


def test_an_unknown_name_of_an_old_module_raises_an_attribute_error():
    with pytest.raises(AttributeError, match="rewire_twice"):
        _ = import_module("ratoon.evolution.paper").rewire_twice


def test_the_old_name_of_split_in_proportion_returns_it_and_warns():
    with pytest.warns(DeprecationWarning, match="split_in_proportion"):
        assert allocate.shares is allocate.split_in_proportion
