"""
Gene expression, end to end
===========================

From samples to a panel of genes with an unbiased accuracy: selection inside cross-validation, then
a ranking on all samples with its stability, then pathways as the first layer.
"""

# %%
# Selection uses the labels, so it is part of the pipeline and never sees the test fold.
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from ratoon import SparseFeatureSelector, SparseMLPClassifier
from ratoon.datasets import groups_from_pairs, make_microarray
from ratoon.report import FeatureRankingDisplay

data, informative = make_microarray(100, 800, n_informative=30, effect=2.5, random_state=1)
panel = make_pipeline(
    SparseFeatureSelector(20, n_repeats=2, random_state=0),
    SparseMLPClassifier((50,), epsilon=5, max_iter=40, random_state=0),
)
scores = cross_val_score(panel, data.X, data.labels, cv=3)
print(f"20 genes chosen inside each fold: accuracy {scores.mean():.2f}")

# %%
# The ranking on all samples, and how well five networks agree on it.
selector = SparseFeatureSelector(20, random_state=0).fit(data.X, data.labels)
chosen = selector.get_support(indices=True)
hits = len(set(chosen) & set(informative))
print(f"stability {selector.stability_:.2f}; {hits} of 20 genes are informative")
FeatureRankingDisplay.from_strength(
    selector.strength_, names=data.feature_names, spread=selector.strength_spread_
).plot()

# %%
# Prior knowledge can define the first layer: here two invented pathways and 20 free neurons, which
# evolution connects.  `read_gmt` reads such groups from a file.
pairs = [(data.feature_names[j], f"pathway {j % 2}") for j in informative]
groups = groups_from_pairs(pairs, data.feature_names)
model = SparseMLPClassifier(
    (len(groups.names) + 20,), topology=groups.topology(extra=20), max_iter=60, random_state=0
)
print(groups)
print(f"with pathways: {cross_val_score(model, data.X, data.labels, cv=3).mean():.2f}")
