import numpy as np
import pytest

from ratoon import Augment
from ratoon.errors import InvalidParameterError
from ratoon.samples.augment import as_augment


@pytest.mark.parametrize(
    ("text", "augment"),
    [
        ("shift", Augment()),
        ("shift=4", Augment(shift=4)),
        ("flip", Augment(shift=0, flip=True)),
        ("shift+flip", Augment(flip=True)),
        ("shift=2, flip, shape=3x8x8", Augment((3, 8, 8), 2, flip=True)),
        ("flip,shape=3x3x3,channels=last", Augment((3, 3, 3), 0, flip=True, channels="last")),
    ],
)
def test_a_text_describes_the_changes(text, augment):
    assert as_augment(text) == augment
    assert as_augment(augment) is augment


@pytest.mark.parametrize(
    "text",
    ["", "shape=3x8x8", "rotate", "shift=two", "shift=1,shift=2", "flip=no", "shift=0", "shift=-1",
     "shift,shape=8", "shift,shape=0x8", "shift,channels=middle"],
)  # fmt: skip
def test_a_text_with_another_meaning_is_refused(text):
    with pytest.raises(InvalidParameterError):
        as_augment(text)


@pytest.mark.parametrize(
    "given",
    [{"shape": 28}, {"shape": (28.0, 28)}, {"shape": "28"}, {"shift": 1.5}, {"shift": True},
     {"flip": 1}, {"shift": 0}, {"shape": (1, 2, 3, 4)}],
)  # fmt: skip
def test_impossible_values_are_refused(given):
    with pytest.raises(InvalidParameterError, match="Augment: "):
        Augment(**given)
    with pytest.raises(InvalidParameterError, match="`augment` must be"):
        as_augment(given)


@pytest.mark.parametrize(
    ("augment", "n_features", "known", "layout", "shift"),
    [
        (Augment(), 784, None, (1, 28, 28, 1), 3),
        (Augment(), 3072, (32, 32, 3), (1, 32, 32, 3), 4),
        (Augment((3, 32, 32)), 3072, (32, 32, 3), (3, 32, 32, 1), 4),
        (Augment((2, 9, 9), 1), 162, None, (2, 9, 9, 1), 1),
        (Augment((3, 4, 4), 1, channels="last"), 48, None, (1, 3, 4, 4), 1),
        (Augment((np.int64(5), 20)), 100, None, (1, 5, 20, 1), 1),
    ],
)
def test_the_layout_follows_from_the_shape(augment, n_features, known, layout, shift):
    found = augment.for_features(n_features, known)
    assert (found.layout, found.shift) == (layout, shift)
    assert found.for_features(n_features) == found


@pytest.mark.parametrize(
    ("augment", "n_features", "message"),
    [
        (Augment(), 3072, r"such as \(3, 32, 32\) or \(32, 32, 3\)"),
        (Augment(), 10, "not a square"),
        (Augment((3, 8, 8)), 64, "192 values, but a sample has 64"),
        (Augment((3, 4, 4), 1), 48, "where the channels are"),
        (Augment((9, 9, 9), 1), 729, "where the channels are"),
        (Augment(shift=8), 64, "smaller than their sides"),
        (Augment(shift=9), 64, "smaller than their sides"),
    ],
)
def test_a_shape_that_does_not_fit_is_refused(augment, n_features, message):
    with pytest.raises(InvalidParameterError, match=message):
        augment.for_features(n_features)
