import gzip
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from ratoon.datasets import Limits, read
from ratoon.errors import FormatError, RatoonError

FILE = "# made by hand\n+1 1:0.5 3:2\n-1 2:-1e3 # second\n\n+1\n-1 1:1 2:2 3:3\n"


def test_samples_become_rows_of_a_csr_matrix(write):
    data = read(write("a.libsvm", FILE))
    assert data.is_sparse
    assert_array_equal(data.X.toarray(), [[0.5, 0, 2], [0, -1000, 0], [0, 0, 0], [1, 2, 3]])
    assert data.class_names == ("-1", "1")
    assert_array_equal(data.y, [1, 0, 1, 0])
    assert "feature indices start at 1" in data.notes


def test_an_index_of_zero_means_that_indices_start_at_zero(write):
    data = read(write("a.libsvm", "a 0:1 2:3\nb 1:2\n"))
    assert_array_equal(data.X.toarray(), [[1, 0, 3], [0, 2, 0]])
    assert "feature indices start at 0" in data.notes


def test_the_format_is_recognised_without_its_extension_and_gzipped(write):
    content = b"1 qid:3 1:2\n2 qid:4 2:5\n"
    assert read(write("a.txt.gz", gzip.compress(content))).X.shape == (2, 2)


@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_any_matrix_is_read_as_by_scikit_learn(tmp_path_factory, rows, columns, seed):
    path = tmp_path_factory.mktemp("svm") / "a.svm"
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.3)
    X[0, -1] = 1.0
    dump_svmlight_file(X, rng.integers(0, 3, rows), str(path), zero_based=False)
    expected, _ = load_svmlight_file(str(path), n_features=columns, zero_based=False)
    assert_allclose(read(path, dtype="float64").X.toarray(), expected.toarray(), rtol=0, atol=0)


BAD = {
    "no colon": ("1 1:2\n1 3\n", "line 2: '3' is not index:value"),
    "no value": ("1 1:\n", "line 1: '1:' is not"),
    "two colons": ("1 1:2:3\n", "line 1: '1:2:3' is not"),
    "text value": ("1 1:2\n\n1 1:high\n", "line 3: 'high' is not"),
    "negative number": ("1 -1:2\n", "line 1: '-1:2' is not"),
    "backwards": ("1 3:1 2:1\n", "line 1: feature index 2 does not increase"),
    "twice": ("1 1:1\n1 2:1 2:1\n", "line 2: feature index 2 does not increase"),
    "too large": ("1 99999999999:1\n", "line 1: feature index 99999999999 is too large"),
    "no label": ("1 1:1\n1:2 2:3\n", "line 2: the line begins with a feature"),
    "no features": ("1\n2\n", "no sample has a feature"),
    "nothing": ("# comment\n", "no samples"),
    "too many columns": ("1 1000000000:1\n", "limit"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_with_the_line(write, case):
    text, message = BAD[case]
    with pytest.raises(FormatError, match=f"a.libsvm.*{message}"):
        read(write("a.libsvm", text), limits=Limits(columns=10**6))


@given(st.lists(st.sampled_from(list("01:. -#\n\tqidnae+_")), max_size=60).map("".join))
def test_arbitrary_text_is_read_or_refused_with_an_error_of_ours(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("any") / "a.libsvm"
    path.write_text(text)
    with suppress(RatoonError):
        read(path, limits=Limits(columns=10**6))
