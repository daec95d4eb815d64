"""
Comparing strategies
====================

The same network, the same data, the same number of connections; only the rule that
replaces connections differs.  No single feature separates the classes, only products of two, so
the right connections must be found.
"""

# %%
# One pair of 20 features decides: the class is the sign of their product.
from ratoon import SparseMLPClassifier
from ratoon.datasets import make_interactions
from ratoon.evolution import SET
from ratoon.report import ConnectivityDisplay, LearningCurveDisplay

data, informative = make_interactions(2000, 20, random_state=0)
train, test = slice(0, 1500), slice(1500, None)
print(f"features that matter: {informative.tolist()}")

# %%
# Every strategy is a name or an object of `ratoon.evolution`.
strategies = {
    "never rewired": "static",
    "SET": SET(0.3, grown="zero", until=0.7),
    "RigL": "rigl",
    "GSE": "gse",
}
curves, models = {}, {}
for name, strategy in strategies.items():
    model = SparseMLPClassifier(
        (100,), density=0.1, evolution=strategy, max_iter=60, random_state=0
    )
    model.fit(data.X[train], data.labels[train], eval_set=(data.X[test], data.labels[test]))
    curves[name], models[name] = [model.validation_scores_], model
    share = model.feature_importances_[informative].sum()
    print(f"{name:14} last epoch {model.validation_scores_[-1]:.3f}, strength there {share:.0%}")

# %%
# A real comparison needs several seeds; one is enough to show the curves.
LearningCurveDisplay(curves, ylabel="accuracy on samples held out").plot()

# %%
# The connections of the RigL network after training.
ConnectivityDisplay.from_estimator(models["RigL"], by="strength").plot()
