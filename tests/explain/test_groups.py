"""Groups of features as neurons: their names, activity and contributions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from ratoon import SparseMLPClassifier, load
from ratoon.datasets import Dataset, groups_from_pairs
from ratoon.errors import InvalidInputError
from ratoon.report import render_report

RNG = np.random.default_rng(0)
NAMES = tuple(f"g{i}" for i in range(24))
X = RNG.normal(size=(300, 24))
DATA = Dataset(
    X, (X[:, :6].sum(axis=1) > 0).astype(int), feature_names=NAMES, class_names=("ill", "well")
)
GROUPS = groups_from_pairs([(name, f"pathway {i // 6}") for i, name in enumerate(NAMES)], NAMES)
KNOWN = [f"pathway {j}" for j in range(4)]


def fitted(topology):
    model = SparseMLPClassifier(topology=topology, max_iter=80, dtype="float64", random_state=0)
    return model.fit(DATA)


@pytest.fixture(scope="module")
def limited():
    return fitted(GROUPS.within(density=0.7))


@pytest.mark.parametrize("topology", [GROUPS.within(), GROUPS.topology(extra=2)])
def test_names_of_groups_survive_fit_file_and_clone(topology, tmp_path):
    model = fitted(topology)
    assert list(model.group_names_) == KNOWN
    model.save(tmp_path / "m.ratoon")
    again = load(tmp_path / "m.ratoon")
    assert list(again.group_names_) == KNOWN
    assert list(clone(model).fit(DATA).group_names_) == KNOWN
    if again.topology is not None:
        assert list(again.fit(DATA).group_names_) == KNOWN


def test_a_fit_without_groups_forgets_their_names(limited):
    model = clone(limited).fit(DATA).set_params(topology=None).fit(DATA)
    assert not hasattr(model, "group_names_")
    with pytest.raises(InvalidInputError, match="not groups of features"):
        model.group_activity(DATA)


def test_activity_is_that_of_the_neurons_and_the_deciding_pathway_is_strongest(limited):
    activity = limited.group_activity(DATA)
    assert_allclose(activity, limited.network_.outputs(X, layer=0)[:, :4])
    found = limited.explain_groups(DATA)
    assert list(found.feature_names) == KNOWN
    assert found.importance().argmax() == 0
    assert_array_equal(found.data, activity)


def test_contributions_of_groups_sum_up(limited):
    found = limited.explain_groups(DATA, target="ill")
    assert_allclose(found.values.sum(axis=1) + found.base_values, found.outputs, atol=1e-9)


def test_further_neurons_are_named_by_number():
    found = fitted(GROUPS.topology(extra=2)).explain_groups(DATA)
    assert list(found.feature_names) == [*KNOWN, "neuron 4", "neuron 5"]


def test_the_report_shows_the_groups(limited):
    page = render_report(limited, DATA)
    assert "Groups that are neurons" in page
    assert "activity in ill" in page
    assert "pathway 0" in page
