"""The confusion matrix: rows predicted, columns true, and margins that belong to them."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_array_equal

from ratoon import SparseMLPClassifier
from ratoon.errors import InvalidInputError
from ratoon.report import ConfusionMatrixDisplay

TRUE = ["ill", "ill", "ill", "well", "well", "odd"]
PREDICTED = ["ill", "ill", "well", "well", "ill", "ill"]


@pytest.fixture
def display():
    #                  true:  ill  odd  well
    #   predicted ill          2    1    1
    #   predicted odd          0    0    0
    #   predicted well         1    0    1
    return ConfusionMatrixDisplay.from_predictions(TRUE, PREDICTED)


def texts(display):
    """The text of each cell, by (row, column)."""
    found = {}
    for text in display.ax_.texts:
        column, row = text.get_position()
        found.setdefault((round(row), round(column)), []).append(text.get_text())
    return found


def test_rows_are_predicted_and_columns_are_true(display):
    assert list(display.class_names) == ["ill", "odd", "well"]
    assert_array_equal(display.matrix, [[2, 1, 1], [0, 0, 0], [1, 0, 1]])


def test_margins_are_precision_recall_and_accuracy(display):
    assert_array_equal(display.precision, [0.5, np.nan, 0.5])
    assert_array_equal(display.recall, [2 / 3, 0.0, 0.5])
    assert display.accuracy == 0.5


def test_the_drawing_has_every_number_in_its_cell(display):
    cells = texts(display.plot())
    assert cells[0, 0] == ["2\n33.3%"]
    assert cells[2, 0] == ["1\n16.7%"], "one ill sample predicted well: third row, first column"
    assert cells[0, 3] == ["50.0%", "50.0%"], "precision, and what is missing to it"
    assert cells[1, 3] == ["-"], "nothing was predicted odd: no precision"
    assert cells[3, 0] == ["66.7%", "33.3%"], "recall below"
    assert cells[3, 3] == ["50.0%", "50.0%"]


def test_the_drawing_labels_its_axes(display):
    ax = display.plot().ax_
    assert ax.get_xlabel() == "true class"
    assert ax.get_ylabel() == "predicted class"
    assert [label.get_text() for label in ax.get_xticklabels()] == [
        "ill", "odd", "well", "precision",
    ]  # fmt: skip
    assert ax.get_ylim() == (3.5, -0.5), "the first class is on top"


def test_it_draws_into_given_axes(display):
    ax = Figure().subplots()
    assert display.plot(ax).ax_ is ax
    assert display.figure_ is ax.figure


@pytest.mark.parametrize("n_classes", [2, 3, 8, 9, 18])
def test_any_number_of_classes_is_drawn_without_a_warning(n_classes, tmp_path):
    labels = np.arange(n_classes)
    names = [f"class of number {k}" for k in labels]
    display = ConfusionMatrixDisplay.from_predictions(labels, labels[::-1], class_names=names)
    display.plot().figure_.savefig(tmp_path / "matrix.png")
    assert (tmp_path / "matrix.png").stat().st_size > 0


def test_names_replace_numbers_even_if_a_class_never_occurs():
    display = ConfusionMatrixDisplay.from_predictions([0, 2], [2, 2], class_names=["a", "b", "c"])
    assert_array_equal(display.matrix, [[0, 0, 0], [0, 0, 0], [1, 0, 1]])


def test_all_classes_of_an_estimator_are_shown():
    X = np.arange(30.0).reshape(-1, 1)
    y = np.repeat(["low", "middle", "top"], 10)
    model = SparseMLPClassifier((20,), density=0.5, max_iter=2, random_state=0).fit(X, y)
    display = ConfusionMatrixDisplay.from_estimator(model, X[:10], y[:10])
    assert list(display.class_names) == ["low", "middle", "top"]
    assert_array_equal(display.matrix.sum(axis=0), [10, 0, 0])
    assert_array_equal(np.isnan(display.recall), [False, True, True])


def test_a_number_and_its_text_are_different_labels():
    display = ConfusionMatrixDisplay.from_predictions([0, 1], ["0", "1"])
    assert display.accuracy == 0.0
    assert display.matrix.shape == (4, 4)


@pytest.mark.parametrize(("true", "predicted"), [(["a"], ["a", "b"]), ([["a"]], [["a"]]), ([], [])])
def test_labels_of_unequal_length_are_refused(true, predicted):
    with pytest.raises(InvalidInputError, match="of equal length"):
        ConfusionMatrixDisplay.from_predictions(true, predicted)


def test_a_number_without_a_name_is_refused():
    with pytest.raises(InvalidInputError, match="7 is not one of the classes"):
        ConfusionMatrixDisplay.from_predictions([0, 7], [0, 1], class_names=["a", "b"])
