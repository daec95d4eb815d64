"""Degrees, connectivity, ranking and sizes: what is drawn is what the network has."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon import SparseMLPClassifier
from ratoon.errors import InvalidInputError
from ratoon.report import (
    ConnectionCountDisplay,
    ConnectivityDisplay,
    DegreeDisplay,
    FeatureRankingDisplay,
)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 12))
    y = np.where(x[:, 3] > 0, "up", "down")
    return SparseMLPClassifier((20, 10), epsilon=2, max_iter=8, random_state=0).fit(x, y)


def test_degrees_add_up_to_the_connections_of_the_layer(model):
    display = DegreeDisplay.from_estimator(model, layer=1)
    for degrees in display.degrees.values():
        assert degrees.sum() == model.network_.layers[1].n_connections


def test_the_survival_curve_begins_at_one_and_falls(model):
    values, shares = DegreeDisplay.from_estimator(model).survival("inputs of the layer")
    assert shares[0] == 1.0
    assert np.all(np.diff(values) > 0)
    assert np.all(np.diff(shares) < 0)


def test_a_missing_layer_is_refused(model):
    with pytest.raises(InvalidInputError, match="3 layers"):
        DegreeDisplay.from_estimator(model, layer=3)


def test_equal_degrees_are_uniform():
    assert DegreeDisplay({"inputs": np.array([4, 4]), "outputs": np.array([2, 2])}).is_uniform
    assert not DegreeDisplay({"inputs": np.array([4, 3])}).is_uniform


def test_the_heat_map_has_the_shape_of_the_image(model):
    display = ConnectivityDisplay.from_estimator(model, image_shape=(3, 4)).plot()
    assert display.grid.shape == (3, 4)
    assert display.grid.sum() == model.network_.layers[0].n_connections
    assert display.ax_.images[0].get_array().shape == (3, 4)


def test_an_image_of_another_size_is_refused(model):
    with pytest.raises(InvalidInputError, match="12 inputs"):
        ConnectivityDisplay.from_estimator(model, image_shape=(5, 5))


def test_without_an_image_the_values_lie_along_the_inputs(model):
    display = ConnectivityDisplay.from_estimator(model, by="strength").plot()
    assert_array_equal(display.grid[0], model.network_.input_strength())
    with pytest.raises(InvalidInputError, match="connections"):
        ConnectivityDisplay.from_estimator(model, by="love")


def test_features_are_ranked_by_strength(model):
    display = FeatureRankingDisplay.from_estimator(model, top=5).plot()
    assert len(display.names) == 5
    assert np.all(np.diff(display.strength) <= 0)
    assert display.strength[0] == model.feature_importances_.max()
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == display.names


def test_the_spread_of_strengths_is_drawn_where_it_is_known():
    display = FeatureRankingDisplay.from_strength([1.0, 2.0], spread=[0.1, 0.2]).plot()
    assert display.spread.tolist() == [0.2, 0.1]
    assert len(display.ax_.collections) == 1


def test_names_must_be_as_many_as_features():
    with pytest.raises(InvalidInputError, match="2 names for 3"):
        FeatureRankingDisplay.from_strength([1.0, 2.0, 3.0], names=["a", "b"])
    with pytest.raises(InvalidInputError, match="strengths must be a one-dimensional"):
        FeatureRankingDisplay.from_strength([])


def test_sizes_count_sparse_and_dense(model):
    display = ConnectionCountDisplay.from_estimator(model).plot()
    assert display.counts["all layers"] == (model.network_.n_connections, 12 * 20 + 200 + 20)
    assert len(display.ax_.patches) == 2 * 4
    assert display.ax_.get_xscale() == "log"
