"""Splits are stratified, depend on the seed, and have the sizes of the paper."""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.experiments import split_rows


def test_both_parts_have_the_same_class_proportions():
    y = np.repeat([0, 1], [60, 30])
    first, second = split_rows(y, 1 / 3, 0)
    assert_array_equal(np.bincount(y[first]), [40, 20])
    assert_array_equal(np.bincount(y[second]), [20, 10])
    assert_array_equal(np.sort(np.concatenate((first, second))), np.arange(90))


@pytest.mark.parametrize(
    ("n_train", "n_test"),
    [(1397, 699), (74, 37), (124, 63), (56, 29)],  # Leukemia, CLL-SUB-111, SMK-CAN-187, GLI-85
)
def test_a_third_has_as_many_samples_as_in_the_paper(n_train, n_test):
    first, second = split_rows(np.arange(n_train + n_test) % 2, 1 / 3, 0)
    assert (first.size, second.size) == (n_train, n_test)


def test_an_exact_fraction_is_not_rounded_up():
    assert split_rows(np.arange(10) % 2, 0.1 + 0.2, 0)[1].size == 3


def test_the_split_depends_on_the_seed():
    y = np.repeat([0, 1], 20)
    assert not np.array_equal(split_rows(y, 0.5, 0)[0], split_rows(y, 0.5, 1)[0])
    assert_array_equal(split_rows(y, 0.5, 0)[0], split_rows(y, 0.5, 0)[0])


@pytest.mark.parametrize(
    "y",
    [
        [0] * 9 + [1],  # a class of a single sample
        [0, 2] * 5,  # a number that no sample has
        list(range(8)) * 2,  # more classes than the second part has rows
        [0, 1],
    ],
)
def test_too_few_samples_to_stratify_are_split_without_strata(y):
    first, second = split_rows(np.array(y), 0.25, 0)
    assert second.size == math.ceil(0.25 * len(y))
    assert first.size + second.size == len(y)


def test_a_continuous_target_is_split_without_strata():
    y = np.linspace(0.0, 1.0, 10)
    first, second = split_rows(y, 0.3, 0, stratify=False)
    assert (first.size, second.size) == (7, 3)


def test_one_sample_and_an_invalid_fraction_are_refused():
    with pytest.raises(InvalidInputError, match=r"at least 2 samples.* got 1"):
        split_rows(np.array([0]), 0.5, 0)
    with pytest.raises(InvalidParameterError, match="in \\(0, 1\\)"):
        split_rows(np.array([0, 1]), 1.0, 0)
