import json

import numpy as np
import scipy.sparse as sp

from ratoon.datasets import Dataset, examine, make_microarray


def kinds(data):
    return {finding.kind for finding in examine(data).findings}


def test_a_file_with_missing_values_and_repeated_names_is_examined_not_refused(write):
    path = write("a.csv", "id,g,g,h,class\nA,1,NA,3,x\nA,4,5,6,y\nB,1,NA,3,x\n")
    found = examine(path)
    assert (found.n_samples, found.n_features, found.n_missing) == (3, 3, 2)
    assert (found.n_features_missing, found.n_samples_missing) == (1, 2)
    assert found.classes == {"x": 2, "y": 1}
    assert found.duplicate_sample_names == {"A": 2}
    assert found.duplicate_feature_names == {"g": 2}
    assert found.duplicate_samples == [["A", "B"]]
    text = found.to_text()
    for part in ("x: 2 (66.7%)", "2 values in 1 feature and 2 samples", "A=B", "samples are in"):
        assert part in text


def test_the_json_is_complete_and_strict(write):
    found = examine(write("a.csv", "id,g,h\nA,1,NA\nB,2,NA\n"))
    parsed = json.loads(found.to_json())
    assert parsed["n_samples"] == 2
    assert set(parsed) == set(found.to_dict())


def test_a_continuous_target_and_missing_labels_are_reported():
    X = np.random.default_rng(0).normal(size=(4, 2))
    assert "target      0.5 to 3.5" in examine(Dataset(X, np.arange(4) + 0.5)).to_text()
    assert "labels      none" in str(examine(Dataset(X)))


def test_missing_values_of_a_sparse_matrix_are_counted():
    X = sp.csr_matrix(np.array([[1.0, np.nan, 0.0], [np.nan, 2.0, 0.0]]))
    found = examine(Dataset(X))
    assert (found.n_missing, found.n_features_missing, found.n_samples_missing) == (2, 2, 2)
    assert found.value_range == (0.0, 2.0)


def test_equal_and_constant_features_are_counted():
    X = np.array([[1.0, 1.0, 7.0, 0.3], [2.0, 2.0, 7.0, 0.1], [4.0, 4.0, 7.0, 0.2]])
    for data in (Dataset(X), Dataset(sp.csr_matrix(X))):
        found = examine(data)
        assert found.n_duplicate_features == 1
        assert [f.features for f in found.findings if f.kind == "constant"] == [(2,)]


def test_a_row_number_among_the_features_is_found():
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[:, 1] = np.arange(20) + 5
    assert "row number" in kinds(Dataset(X))


def test_the_label_among_the_features_is_found():
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = np.arange(20) % 2
    X[:, 2] = y * 3 + 1
    found = examine(Dataset(X, y, class_names=("a", "b")))
    assert [f.features for f in found.findings if f.kind == "leak"] == [(2,)]


def test_rare_classes_imbalance_and_single_classes_are_found():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.zeros(30, dtype=int)
    y[:1] = 1
    assert {"rare class", "imbalance"} <= kinds(Dataset(X, y, class_names=("a", "b")))
    assert "one class" in kinds(Dataset(X, y * 0, class_names=("a",)))


def test_values_off_the_log_scale_are_found_and_log_values_are_not():
    data, _ = make_microarray(30, 500, n_informative=10)
    assert "scale" not in kinds(data)
    assert "scale" in kinds(Dataset(np.exp2(data.X)))


def test_ordinary_data_give_no_findings():
    data, _ = make_microarray(40, 2000, n_informative=50, random_state=1)
    assert kinds(data) == set()
    assert examine(data).duplicate_samples == []


def test_columns_without_values_are_constant_and_raise_no_warning():
    found = examine(Dataset(np.array([[np.nan, 1.0], [np.nan, 2.0]])))
    assert [f.features for f in found.findings if f.kind == "constant"] == [(0,)]
