"""Names that moved to `ratoon.paper` are still importable from their old modules."""

from importlib import import_module

import pytest

from ratoon import paper


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("ratoon.experiments", "PaperSettings"),
        ("ratoon.experiments", "Trial"),
        ("ratoon.experiments", "run_trial"),
        ("ratoon.experiments.reproduce", "TABLES"),
        ("ratoon.experiments.reproduce", "reproduce"),
        ("ratoon.experiments.reproduce_runs", "Effort"),
        ("ratoon.experiments.trial_store", "TrialResult"),
        ("ratoon.experiments.trial_store", "TrialStore"),
    ],
)
def test_the_old_name_is_the_new_one_with_a_warning(module, name):
    with pytest.warns(DeprecationWarning, match=rf"use ratoon\.paper\.{name}"):
        old = getattr(import_module(module), name)
    assert old is getattr(paper, name)
