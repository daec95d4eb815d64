import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ratoon.datasets import make_interactions, make_microarray
from ratoon.errors import InvalidParameterError


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not():
    first, genes = make_microarray(30, 5000, random_state=4)
    again, same_genes = make_microarray(30, 5000, random_state=4)
    other, _ = make_microarray(30, 5000, random_state=5)

    assert_array_equal(first.X, again.X)
    assert_array_equal(first.y, again.y)
    assert_array_equal(genes, same_genes)
    assert not np.array_equal(first.X, other.X)


def test_shape_types_and_names_follow_the_parameters():
    data, genes = make_microarray(40, 600, 3, 20, class_weights=(5, 3, 2))

    assert data.X.shape == (40, 600)
    assert data.X.dtype == np.float32
    assert list(data.class_counts.values()) == [20, 12, 8]
    assert genes.size == 20
    assert np.all(np.diff(genes) > 0)
    assert len(set(data.feature_names)) == 600
    assert len(set(data.sample_names)) == 40
    assert np.isfinite(data.X).all()
    assert 0 < data.X.min() < data.X.max() < 25, "log2 intensities"


def test_informative_genes_differ_between_classes_and_the_others_do_not():
    data, genes = make_microarray(400, 1000, n_informative=50, batch_effect=0, random_state=1)
    a, b = data.X[data.y == 0], data.X[data.y == 1]
    t = np.abs(a.mean(0) - b.mean(0)) / np.sqrt(a.var(0) / len(a) + b.var(0) / len(b))

    assert np.median(t[genes]) > 5
    # Under no difference a |t| above 4.5 has probability 7e-6 per gene.
    assert (np.delete(t, genes) > 4.5).sum() == 0


def test_genes_of_a_block_have_the_given_correlation():
    data, _ = make_microarray(
        2000, 40, n_informative=0, n_blocks=1, correlation=0.5, batch_effect=0, random_state=2
    )
    high = np.argsort(data.X.mean(0))[-10:]  # the background bends low genes
    correlations = np.abs(np.corrcoef(data.X[:, high].T))[np.triu_indices(10, 1)]
    # One deviation of a correlation of 0.5 over 2000 samples is 0.017.
    assert np.abs(correlations - 0.5).max() < 0.1


def test_without_an_effect_labels_are_independent_of_the_data():
    data, genes = make_microarray(300, 500, n_informative=100, effect=0, random_state=3)
    a, b = data.X[data.y == 0][:, genes], data.X[data.y == 1][:, genes]
    assert np.abs(a.mean(0) - b.mean(0)).max() < 0.6


def test_a_linear_model_does_well_and_not_perfectly_on_the_default_shape():
    scores = []
    for seed in range(2):
        data, _ = make_microarray(random_state=seed)
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        model = make_pipeline(StandardScaler(), RidgeClassifier(alpha=1e3))
        scores.append(cross_val_score(model, data.X, data.y, cv=folds).mean())
    assert 0.8 < np.mean(scores) < 0.97


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_classes": 1},
        {"n_samples": 1},
        {"n_informative": 11, "n_features": 10},
        {"correlation": 1.0},
        {"class_weights": (1.0, 0.0)},
        {"class_weights": (1.0,)},
    ],
)
def test_impossible_sizes_are_refused(wrong):
    with pytest.raises(InvalidParameterError):
        make_microarray(**{"n_samples": 10, "n_features": 50, "n_informative": 5, **wrong})


def test_every_class_gets_a_sample_even_with_a_tiny_weight():
    data, _ = make_microarray(5, 20, 4, 4, class_weights=(1000, 1, 1, 1))
    assert list(data.class_counts.values()) == [2, 1, 1, 1]


@pytest.mark.parametrize("kind", ["product", "xor"])
@pytest.mark.parametrize("order", [2, 3])
def test_the_class_depends_on_the_product_and_on_no_single_feature(kind, order):
    data, informative = make_interactions(2000, 30, order=order, kind=kind, random_state=1)
    assert informative.size == order
    product = data.X[:, informative].prod(axis=1)
    assert_array_equal(data.y, product > 0)
    single = [abs(np.corrcoef(data.X[:, j], data.y)[0, 1]) for j in range(30)]
    # The correlation of independent values over 2000 samples has deviation 0.022.
    assert max(single) < 5 * 0.022
    assert 0.4 < data.y.mean() < 0.6


def test_the_same_seed_gives_the_same_interactions():
    first, again = (make_interactions(random_state=3)[0] for _ in range(2))
    assert_array_equal(first.X, again.X)
    assert_array_equal(first.y, again.y)


def test_the_given_fraction_of_labels_is_inverted():
    clean, _ = make_interactions(1000, 10, random_state=5)
    noisy, _ = make_interactions(1000, 10, label_noise=0.1, random_state=5)
    assert (clean.y != noisy.y).sum() == 100


def test_several_groups_use_distinct_features():
    _, informative = make_interactions(50, 20, 4, order=3, noise=0.5)
    assert np.unique(informative).size == 12


@pytest.mark.parametrize(
    "wrong", [{"n_features": 1}, {"label_noise": 0.5}, {"kind": "sum"}, {"n_interactions": 0}]
)
def test_impossible_interactions_are_refused(wrong):
    with pytest.raises(InvalidParameterError):
        make_interactions(**wrong)
