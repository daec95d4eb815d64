"""Gene sets: which sets of features are high in a ranking.

Two questions, and p values for each, adjusted by Benjamini and Hochberg over the sets:

*   Over-representation: are more members of the set among the first k features than expected if
    the k features were drawn at random from the background (hypergeometric test)?
*   Rank enrichment: does the running sum of gene set enrichment analysis (Subramanian et al., PNAS
    102, 2005) over the whole ranking deviate more from 0 than for random sets of the same size?

Both treat features as independent.  Features of a real set are correlated, so p values are too
small (Goeman and Buehlmann, Bioinformatics 23, 2007): they order the sets rather than prove them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import scipy.stats
from numpy.typing import NDArray

from ratoon.datasets.prior import FeatureGroups
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.explain.associations import adjusted
from ratoon.explain.ranking import Ranking
from ratoon.rng import derive_generator

COLUMNS = (
    "set",
    "size",
    "found",
    "expected",
    "p_over",
    "fdr_over",
    "score",
    "normalised",
    "p_rank",
    "fdr_rank",
    "direction",
    "leading",
)

Float = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Enrichment:
    """The sets, those with the smaller of the two FDR values first.

    Parameters
    ----------
    rows : tuple of dict
        One per set.  ``size``: members in the background; ``found`` and ``expected``: members among
        the first ``k`` features; ``score`` and ``normalised``: largest deviation of the running
        sum, and that divided by its mean for random sets; ``leading``: the members before the
        deviation.
    k, n_background : int
        Number of first features, and of all features that count.
    n_permutations : int
        Random sets of every size.
    signed : bool
        Whether features are ordered by signed importance, so that a negative score belongs to the
        first class, or to numbers that fall.
    rows_of_ranking : str
        On which rows the ranking is based.
    """

    rows: tuple[dict[str, Any], ...]
    k: int
    n_background: int
    n_permutations: int
    signed: bool
    rows_of_ranking: str

    def to_frame(self) -> Any:
        """Return the sets as a pandas DataFrame."""
        import pandas as pd

        table = [{**row, "leading": ", ".join(row["leading"])} for row in self.rows]
        return pd.DataFrame(table, columns=list(COLUMNS)).set_index("set")

    def top(self, n: int = 10) -> list[dict[str, Any]]:
        """Return the first ``n`` sets."""
        return list(self.rows[:n])

    def __repr__(self) -> str:
        first = ", ".join(row["set"] for row in self.rows[:3])
        return f"Enrichment({len(self.rows)} sets: {first}{', ...' if len(self.rows) > 3 else ''})"


def enrichment(
    ranking: Ranking,
    groups: FeatureGroups,
    *,
    k: int = 100,
    background: Any = None,
    least: int = 5,
    most: int = 500,
    n_permutations: int = 1000,
    seed: int = 0,
) -> Enrichment:
    """Test which groups of features are high in a ranking.

    Parameters
    ----------
    ranking : Ranking
        Of a model: ``model.ranking_`` or ``model.rank_features(X, y)``; or of a selector.
    groups : FeatureGroups
        Over the features of the ranking, as `ratoon.datasets.read_gmt` returns them.
    k : int, default=100
        Number of first features for over-representation.
    background : ndarray of bool of shape (n_features,), optional
        Features that count.  The default is all of them: those that could have been selected.
    least, most : int
        Groups with fewer or more members in the background are left out.
    n_permutations : int, default=1000
        Random sets of every size; 0 leaves the rank enrichment out.
    seed : int, default=0
        For the random sets.

    Examples
    --------
    >>> from ratoon.datasets.prior import groups_from_pairs
    >>> names = tuple(f"g{i}" for i in range(50))
    >>> ranking = Ranking(np.arange(50.0, 0.0, -1.0), None, names, None, "")
    >>> pairs = [(f"g{i}", "first") for i in range(6)] + [(f"g{8 * i}", "any") for i in range(6)]
    >>> found = enrichment(ranking, groups_from_pairs(pairs, names), k=10)
    >>> [(row["set"], row["found"], row["fdr_over"] < 0.01) for row in found.rows]
    [('first', 6, True), ('any', 2, False)]
    """
    _check(ranking, groups, k, least, most, n_permutations)
    counts = np.ones(ranking.n_features, dtype=bool)
    if background is not None:
        counts = np.asarray(background, dtype=bool)
        if counts.shape != (ranking.n_features,):
            raise InvalidParameterError(
                f"`background` must have one truth value for each of {ranking.n_features} features."
            )
    order = ranking.order[counts[ranking.order]]
    order = order[ranking.importance[order] > 0]
    others = np.flatnonzero(counts & (ranking.importance <= 0))
    members = scipy.sparse.csc_array(groups.matrix)
    sizes = np.asarray(members[counts.nonzero()[0]].astype(bool).sum(axis=0)).ravel()
    tested = np.flatnonzero((sizes >= least) & (sizes <= most))
    if not tested.size:
        raise InvalidInputError(
            f"no gene set has {least} to {most} members among the {counts.sum():,} features that"
            f" count.\n  Do both use the same names? The limits are `least` and `most`."
        )
    first = order[:k]
    score = _signed_importance(ranking)
    signed = bool((score < 0).any())
    everything = np.concatenate((order, others))
    by_score = everything[np.argsort(-score[everything], kind="stable")]
    place = np.full(ranking.n_features, -1, dtype=np.int64)
    place[by_score] = np.arange(by_score.size)
    is_first = np.zeros(ranking.n_features, dtype=bool)
    is_first[first] = True
    weights = np.abs(score[by_score])
    nulls = _Nulls(weights, n_permutations, int(sizes[tested].max()), seed)
    rows = []
    for j in tested.tolist():
        inside = members.indices[members.indptr[j] : members.indptr[j + 1]]
        inside = inside[counts[inside]]
        rows.append(
            {
                "set": groups.names[j],
                "size": int(inside.size),
                "found": int(is_first[inside].sum()),
                "expected": float(inside.size * first.size / counts.sum()),
                **_running_sum(np.sort(place[inside]), weights, nulls, by_score, ranking),
            }
        )
    found = np.array([row["found"] for row in rows])
    p_over = scipy.stats.hypergeom.sf(found - 1, int(counts.sum()), sizes[tested], first.size)
    _add(rows, "over", p_over)
    if n_permutations:
        _add(rows, "rank", np.array([row.pop("p") for row in rows]))
    for row in rows:
        row["direction"] = _direction(row, ranking, signed=signed)
    # Members of both directions cancel in a signed running sum, but not in the first k.
    rows.sort(
        key=lambda row: (
            min(row["fdr_over"], row.get("fdr_rank", 1.0)),
            row["fdr_over"] + row.get("fdr_rank", 1.0),
            -abs(row.get("normalised", 0.0)),
        )
    )
    return Enrichment(
        tuple({name: row.get(name) for name in COLUMNS} for row in rows),
        int(first.size),
        int(counts.sum()),
        n_permutations,
        signed,
        ranking.rows,
    )


class _Nulls:
    """Scores of random sets by size; random sets of several sizes share their members."""

    def __init__(self, weights: Float, n_permutations: int, largest: int, seed: int) -> None:
        rng = derive_generator(seed, "random gene sets")
        self.weights = weights
        largest = min(largest, weights.size)
        self.members = np.array(
            [rng.permutation(weights.size)[:largest] for _ in range(n_permutations)]
        ).reshape(n_permutations, largest)
        self.scores: dict[int, Float] = {}

    def of_size(self, size: int) -> Float:
        if size not in self.scores:
            places = np.sort(self.members[:, :size], axis=1)
            self.scores[size] = running_scores(places, self.weights)[0]
        return self.scores[size]


def running_scores(places: NDArray[Any], weights: Float) -> tuple[Float, NDArray[np.int64]]:
    """Return the largest deviation of the running sum of every row of sorted places.

    At a member the sum rises by the member's share of the weights of the set, at any other feature
    it falls by 1 / (number of others).  The second result is the number of members up to a positive
    deviation, or before a negative one.

    Examples
    --------
    >>> running_scores(np.array([[0, 1], [2, 3]]), np.ones(4))[0].tolist()
    [1.0, -1.0]
    """
    n_sets, size = places.shape
    n_others = max(weights.size - size, 1)
    of_members = weights[places]
    total = of_members.sum(axis=1, keepdims=True)
    of_members = np.where(total > 0, of_members, 1.0)
    total = of_members.sum(axis=1, keepdims=True)
    after = np.cumsum(of_members, axis=1) / total
    missed = (places - np.arange(size)) / n_others
    up, down = after - missed, after - of_members / total - missed
    top, bottom = up.argmax(axis=1), down.argmin(axis=1)
    each = np.arange(n_sets)
    high, low = up[each, top], down[each, bottom]
    is_up = high >= -low
    return np.where(is_up, high, low), np.where(is_up, top + 1, bottom)


def _running_sum(
    places: NDArray[Any], weights: Float, nulls: _Nulls, by_score: NDArray[Any], ranking: Ranking
) -> dict[str, Any]:
    scores, n_before = running_scores(places[None, :], weights)
    score, n = float(scores[0]), int(n_before[0])
    leading = places[:n] if score >= 0 else places[n:][::-1]
    found: dict[str, Any] = {
        "score": score,
        "leading": tuple(ranking.name(int(by_score[j])) for j in leading[:20]),
    }
    if not len(nulls.members):
        return found
    random = nulls.of_size(places.size)
    same = random[random >= 0] if score >= 0 else random[random < 0]
    mean = float(np.abs(same).mean()) if same.size else float("nan")
    found["normalised"] = score / mean if same.size and mean > 0 else score
    found["p"] = (1 + int((np.abs(same) >= abs(score)).sum())) / (1 + same.size)
    return found


def _signed_importance(ranking: Ranking) -> Float:
    """Return importances, negative in the first of two classes or where numbers fall."""
    known = ranking.statistics
    has_sign = ranking.class_names is None or len(ranking.class_names) == 2
    if known is None or not has_sign:
        return ranking.importance
    return np.asarray(ranking.importance * np.where(known.highest == 0, -1.0, 1.0))


def _direction(row: dict[str, Any], ranking: Ranking, *, signed: bool) -> str:
    if not signed:
        return ""
    if ranking.class_names is None:
        return "rises" if row["score"] >= 0 else "falls"
    return f"higher in {ranking.class_names[1 if row['score'] >= 0 else 0]}"


def _add(rows: list[dict[str, Any]], name: str, p_values: Float) -> None:
    for row, p, fdr in zip(rows, p_values.tolist(), adjusted(p_values).tolist(), strict=True):
        row[f"p_{name}"], row[f"fdr_{name}"] = p, fdr


def _check(
    ranking: Ranking, groups: FeatureGroups, k: int, least: int, most: int, n_permutations: int
) -> None:
    if groups.matrix.shape[0] != ranking.n_features:
        raise InvalidParameterError(
            f"`groups` is for {groups.matrix.shape[0]} features, the ranking has"
            f" {ranking.n_features}."
        )
    limits: dict[str, tuple[Any, int]] = {"k": (k, 1), "least": (least, 1), "most": (most, least)}
    limits["n_permutations"] = (n_permutations, 0)
    for name, (value, lowest) in limits.items():
        is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not is_number or value < lowest:
            raise InvalidParameterError(
                f"`{name}` must be a whole number of at least {lowest}, got {value!r}."
            )


def renamed(ranking: Ranking, id_map: dict[str, str]) -> Ranking:
    """Return a ranking with other names; of features with the same new name the first remains.

    Examples
    --------
    >>> ranking = Ranking(np.array([0.2, 0.5, 0.3]), None, ("p1", "p2", "p3"), None, "")
    >>> renamed(ranking, {"p1": "TP53", "p2": "TP53"}).top()
    [{'rank': 1, 'feature': 'TP53', 'importance': 0.5}, {'rank': 2, 'feature': 'p3', 'importance':
    0.3}]
    """
    if ranking.feature_names is None:
        raise InvalidInputError("an ID map needs feature names, and this model has none.")
    new = [id_map.get(name, name) for name in ranking.feature_names]
    best: dict[str, int] = {}
    for j in ranking.order.tolist():
        best.setdefault(new[j], j)
    kept = np.array(sorted(best.values()))
    known = ranking.statistics
    if known is not None:
        known = known.take(kept)
    return Ranking(
        ranking.importance[kept],
        known,
        tuple(new[j] for j in kept.tolist()),
        ranking.class_names,
        ranking.rows,
    )
