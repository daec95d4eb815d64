"""Images that change while an estimator is trained on them."""

import numpy as np
import pytest
import scipy.sparse

from ratoon import Augment, SparseMLPClassifier, SparseMLPRegressor, load
from ratoon.datasets import Dataset
from ratoon.errors import InvalidParameterError
from ratoon.storage import Checkpoint, ResumeError
from ratoon.training import Callback

QUICK = {"hidden_layer_sizes": (12,), "epsilon": 4, "max_iter": 4, "random_state": 0}


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (90, 48)).astype(np.uint8), rng.integers(0, 3, 90)


def fitted(x, y, **more):
    return SparseMLPClassifier(**{**QUICK, **more}).fit(x, y)


def weights(model):
    return np.concatenate([layer.weights for layer in model.network_.layers])


def same(one, other):
    return np.array_equal(weights(one), weights(other))


FLIPS = "shift=1,flip,shape=8x3x2"


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.uint8])
def test_text_and_object_change_images_of_any_type_alike(images, kind):
    x, y = images
    model = fitted(x.astype(kind), y, augment=Augment((8, 3, 2), 1, flip=True))
    assert same(model, fitted(x, y, augment=FLIPS, n_jobs=2))
    assert not same(model, fitted(x, y))
    assert model.settings_.augment == Augment((8, 3, 2), 1, flip=True, channels="last")


def test_memory_maps_are_augmented(images, tmp_path):
    x, y = images
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert same(fitted(mapped, y, augment=FLIPS), fitted(x, y, augment=FLIPS))


def test_the_scaling_and_predictions_are_of_the_images_as_they_are(images):
    x, y = images
    model, without = fitted(x, y, augment=FLIPS), fitted(x, y)
    np.testing.assert_array_equal(model.network_.scaling.shift, without.network_.scaling.shift)
    np.testing.assert_array_equal(model.network_.scaling.scale, without.network_.scaling.scale)
    for network in (model.network_, without.network_):
        network.layers = without.network_.layers
    np.testing.assert_array_equal(model.predict_proba(x), without.predict_proba(x))


def test_the_shape_of_the_images_is_that_of_the_data_set(images):
    x, y = images
    data = Dataset(x.astype(np.float32), y, class_names=("a", "b", "c"), image_shape=(4, 4, 3))
    model = SparseMLPClassifier(**QUICK, augment="shift=1,flip").fit(data)
    assert model.settings_.augment.shape == (4, 4, 3)
    with pytest.raises(InvalidParameterError, match=r"48 features are not a square"):
        fitted(x, y, augment="shift=1,flip")
    later = model.partial_fit(x, data.labels)  # the shape is that of the first fit
    assert later.settings_.augment.shape == (4, 4, 3)


class Stop(Callback):
    """Interrupts the training after the second epoch."""

    def on_epoch_end(self, training, record):
        if training.epochs_done == 2:
            raise KeyboardInterrupt


def test_channels_that_came_first_are_not_taken_for_the_last_ones(images):
    x, y = images
    model = fitted(x, y, augment="shift=1,shape=3x4x4,channels=first")
    with pytest.raises(InvalidParameterError, match="are not a square image"):
        model.set_params(augment="shift=1").partial_fit(x, y)


def test_a_training_resumes_from_a_checkpoint_to_the_same_weights(images, tmp_path):
    x, y = images
    whole = fitted(x, y, augment=FLIPS, callbacks=[])
    with pytest.raises(KeyboardInterrupt):
        fitted(x, y, augment=FLIPS, callbacks=[Checkpoint(tmp_path, every=1), Stop()])
    resumed = fitted(x, y, augment=FLIPS, callbacks=Checkpoint(tmp_path, every=1, resume=True))
    assert same(resumed, whole)
    with pytest.raises(ResumeError, match=r"plan.augment.shift: 1 there, 2 here"):
        fitted(
            x,
            y,
            augment="shift=2,flip,shape=8x3x2",
            callbacks=Checkpoint(tmp_path, every=1, resume=True),
        )


def test_a_file_keeps_the_augmentation_and_trains_on_with_it(images, tmp_path):
    x, y = images
    data = Dataset(x.astype(np.float32), y, class_names=("a", "b", "c"), image_shape=(4, 4, 3))
    model = SparseMLPClassifier(**QUICK, augment="shift=1,flip").fit(data)
    model.save(tmp_path / "m.ratoon")
    again = load(tmp_path / "m.ratoon")
    assert again.augment == "shift=1,flip"
    assert again.settings_ == model.settings_
    assert same(again.partial_fit(data), model.partial_fit(data))
    given = Augment((8, 3, 2), 2)
    fitted(x, y, augment=given).save(tmp_path / "m.ratoon")
    assert load(tmp_path / "m.ratoon").augment == given


def test_validation_rows_are_not_augmented(images):
    x, y = images
    model = fitted(x, y, augment=FLIPS, early_stopping=True, learning_rate_init=1e-12)
    scores = model.validation_scores_
    assert len(set(scores)) == 1  # the network hardly changes, and the images do not


@pytest.mark.parametrize(
    ("x", "more", "message"),
    [
        (scipy.sparse.csr_array(np.eye(48)), {"augment": FLIPS}, "X is sparse"),
        (np.eye(48), {"augment": "shift"}, r"such as \(3, 4, 4\) or \(4, 4, 3\)"),
        (np.eye(48), {"augment": "shift=4,shape=3x4x4,channels=first"}, "smaller than their sides"),
        (np.eye(48), {"augment": "shift,shape=5x5"}, "25 values, but a sample has 48"),
        (np.eye(48), {"augment": "turn"}, "got 'turn'"),
        (np.eye(48), {"augment": 4}, "must be None, a text"),
    ],
)
def test_what_cannot_be_augmented_is_refused(x, more, message):
    y = np.arange(48) % 2
    for kind in (SparseMLPClassifier, SparseMLPRegressor):
        with pytest.raises(InvalidParameterError, match=message):
            kind(**QUICK, **more).fit(x, y)


def test_augmentation_asks_for_a_training():
    x, y = np.random.default_rng(0).normal(size=(40, 100)), np.arange(40) % 2
    assert SparseMLPClassifier().fit(x, y).solver_ == "closed form"
    model = SparseMLPClassifier(augment="shift", batch_size=32, random_state=0)
    model.set_params(preset="fast").fit(x, y)
    assert model.settings_.augment.shape == (10, 10)
    with pytest.raises(InvalidParameterError, match="`augment='shift'` would have no effect"):
        SparseMLPClassifier(augment="shift", solver="ridge").fit(x, y)
