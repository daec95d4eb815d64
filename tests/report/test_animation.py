"""The animation of a training."""

import numpy as np
import pytest
from matplotlib import pyplot
from numpy.testing import assert_array_equal
from PIL import Image

from ratoon.errors import InvalidInputError
from ratoon.evolution import SET
from ratoon.network import SparseMLP
from ratoon.report import ConnectivityAnimation
from ratoon.training import Training, TrainingData, TrainingPlan
from ratoon.training.recorder import TopologyRecorder


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 12)).astype(np.float32)
    data = TrainingData.of(x, np.eye(2, dtype=np.float32)[rng.integers(2, size=20)], np.float32)
    recorder = TopologyRecorder(with_strength=True)
    network = SparseMLP.start((12, 10, 2), density=0.3, seed=0)
    start = network.layers[0].topology.degrees()[0]
    plan = TrainingPlan(n_epochs=4, evolution=SET())
    Training(network, data, plan, callbacks=[recorder]).run()
    return recorder, network, start


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def test_frames_begin_with_the_start_and_end_with_the_network(trained):
    recorder, network, start = trained
    film = ConnectivityAnimation.from_recorder(recorder, (3, 4))
    assert film.epochs == [0, 1, 2, 3]
    assert_array_equal(film.frames[0], start.reshape(3, 4))
    assert_array_equal(film.frames[-1], network.layers[0].topology.degrees()[0].reshape(3, 4))


def test_strengths_are_those_after_every_epoch(trained):
    recorder, network, _ = trained
    film = ConnectivityAnimation.from_recorder(recorder, (4, 3), by="strength")
    assert film.epochs == [1, 2, 3, 4]
    assert_array_equal(film.frames[-1].ravel(), network.input_strength())


def test_the_animation_shows_the_frames_in_order(trained):
    film = ConnectivityAnimation.from_recorder(trained[0], (3, 4))
    animation = film.animate()
    animation._func(2)
    assert_array_equal(film.ax_.images[0].get_array(), film.frames[2])
    assert film.ax_.get_title(loc="left") == "epoch 2"
    animation._func(0)
    assert_array_equal(film.ax_.images[0].get_array(), film.frames[0])
    animation._draw_was_started = True  # it was never shown, on purpose


def test_a_file_has_every_frame(trained, tmp_path):
    film = ConnectivityAnimation.from_recorder(trained[0], (3, 4))
    film.save(tmp_path / "film.gif", dpi=30)
    with Image.open(tmp_path / "film.gif") as image:
        assert image.n_frames == 4
    with pytest.raises(InvalidInputError, match="must end in"):
        film.save(tmp_path / "film.avi")


def test_images_and_regions_that_do_not_fit_are_refused(trained):
    recorder = trained[0]
    with pytest.raises(InvalidInputError, match="12 inputs"):
        ConnectivityAnimation.from_recorder(recorder, (5, 5))
    with pytest.raises(InvalidInputError, match="`by` must be"):
        ConnectivityAnimation.from_recorder(recorder, (3, 4), by="age")
    with pytest.raises(InvalidInputError, match="no training"):
        ConnectivityAnimation.from_recorder(TopologyRecorder(), (3, 4))
    recorder = TopologyRecorder(shapes=recorder.shapes, start=recorder.start)
    with pytest.raises(InvalidInputError, match="with_strength"):
        ConnectivityAnimation.from_recorder(recorder, (3, 4), by="strength")
    with pytest.raises(InvalidInputError, match="one image and one epoch"):
        ConnectivityAnimation(np.zeros((2, 3, 4)), [0])
