"""Gene sets: hypergeometric test, running sum, renaming, limits."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

from ratoon import SparseMLPClassifier
from ratoon.datasets import groups_from_pairs, make_microarray
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.explain import Ranking, enrichment, renamed
from ratoon.explain.enrichment import running_scores

NAMES = tuple(f"g{i}" for i in range(200))
IMPORTANCE = np.linspace(1.0, 0.01, 200)
RANKING = Ranking(IMPORTANCE / IMPORTANCE.sum(), None, NAMES, None, "on no rows")
SETS = {
    "first": range(10),
    "last": range(190, 200),
    "mixed": range(0, 200, 13),
    "small": range(3),
}
PAIRS = [(f"g{i}", name) for name, members in SETS.items() for i in members]
GROUPS = groups_from_pairs(PAIRS, NAMES)


def rows_by_name(**how):
    return {row["set"]: row for row in enrichment(RANKING, GROUPS, **how).rows}


def naive_score(places, weights):
    total, inside = 0.0, set(places)
    share, n_others = weights[list(places)].sum(), weights.size - len(places)
    path = []
    for j in range(weights.size):
        total += weights[j] / share if j in inside else -1.0 / n_others
        path.append(total)
    return max(path, key=abs)


def test_the_running_score_is_the_largest_deviation_of_the_sum():
    rng = np.random.default_rng(0)
    weights = rng.random(30)
    for size in (1, 5, 12):
        places = np.sort(rng.choice(30, size, replace=False))
        assert_allclose(running_scores(places[None], weights)[0][0], naive_score(places, weights))


def test_over_representation_is_the_hypergeometric_test():
    row = rows_by_name(k=20)["mixed"]
    found = len(set(SETS["mixed"]) & set(range(20)))
    table = [[found, 20 - found], [16 - found, 164 + found]]
    assert (row["size"], row["found"]) == (16, found)
    assert_allclose(row["expected"], 16 * 20 / 200)
    assert_allclose(row["p_over"], scipy.stats.fisher_exact(table, alternative="greater")[1])


def test_a_set_of_first_features_is_enriched_and_one_of_random_features_is_not():
    found = rows_by_name(k=20)
    assert next(iter(found)) == "first"
    assert found["first"]["fdr_rank"] < 0.01
    assert found["first"]["fdr_over"] < 1e-6
    assert found["first"]["leading"][0] == "g0"
    assert found["mixed"]["p_rank"] > 0.05
    assert "small" not in found, "it has fewer members than `least`"
    assert "small" in rows_by_name(least=3)


def test_p_values_of_random_sets_are_uniform():
    rng = np.random.default_rng(1)
    pairs = [(f"g{i}", f"set {s}") for s in range(200) for i in rng.permutation(200)[:12]]
    found = enrichment(RANKING, groups_from_pairs(pairs, NAMES), n_permutations=500)
    p = [row["p_rank"] for row in found.rows]
    # The seed is fixed; of 200 uniform numbers, fewer than 1 % of samples are further from uniform.
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.01


def test_the_same_seed_gives_the_same_p_values():
    assert rows_by_name(seed=3) == rows_by_name(seed=3)
    assert rows_by_name(seed=3) != rows_by_name(seed=4)


def test_without_permutations_there_is_only_over_representation():
    row = rows_by_name(n_permutations=0, k=20)["first"]
    assert row["p_rank"] is None
    assert row["fdr_over"] < 1e-4


def test_only_features_of_the_background_count():
    background = np.zeros(200, dtype=bool)
    background[:100] = True
    found = rows_by_name(background=background, k=20, least=1)
    assert "last" not in found
    assert found["mixed"]["size"] == 8
    assert_allclose(found["mixed"]["expected"], 8 * 20 / 100)


def test_with_two_classes_a_set_is_higher_in_one_of_them():
    data, informative = make_microarray(60, 400, 2, 30, effect=4.0, random_state=0)
    model = SparseMLPClassifier(random_state=0).fit(data)
    ranking = model.ranking_
    up = [j for j in informative if ranking.statistics.difference[j] > 0]
    down = [j for j in informative if ranking.statistics.difference[j] < 0]
    pairs = [(data.feature_names[j], "up") for j in up]
    pairs += [(data.feature_names[j], "down") for j in down]
    found = enrichment(ranking, groups_from_pairs(pairs, data.feature_names))
    direction = {row["set"]: row["direction"] for row in found.rows}
    assert direction == {
        "up": f"higher in {data.class_names[1]}",
        "down": f"higher in {data.class_names[0]}",
    }
    assert max(row["fdr_rank"] for row in found.rows) < 0.05
    assert list(found.to_frame().index) == [row["set"] for row in found.rows]


def test_of_features_with_the_same_new_name_the_most_important_remains():
    short = renamed(RANKING, {"g3": "TP53", "g7": "TP53"})
    assert short.n_features == 199
    assert short.feature_names.count("TP53") == 1
    assert_allclose(short.importance[short.feature_names.index("TP53")], RANKING.importance[3])
    with pytest.raises(InvalidInputError, match="needs feature names"):
        renamed(Ranking(IMPORTANCE, None, None, None, ""), {})


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"k": 0}, "`k` must be"),
        ({"least": 0}, "`least` must be"),
        ({"least": 5, "most": 4}, "`most` must be"),
        ({"n_permutations": -1}, "`n_permutations` must be"),
        ({"background": [True]}, "`background` must have"),
    ],
)
def test_impossible_arguments_are_refused(how, message):
    with pytest.raises(InvalidParameterError, match=message):
        enrichment(RANKING, GROUPS, **how)


def test_sets_that_are_all_too_small_are_an_error():
    with pytest.raises(InvalidInputError, match="no gene set has 50 to 500 members"):
        enrichment(RANKING, GROUPS, least=50)
