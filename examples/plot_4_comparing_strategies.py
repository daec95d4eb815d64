"""
Comparing strategies
====================

The same network, the same data, the same number of connections; only the rule by which
connections are replaced differs.  No single feature tells the classes apart here, only products
of two: the place where a topology has something to find.
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
# One seed proves nothing; the curves show how such a comparison looks.
LearningCurveDisplay(curves, ylabel="accuracy on samples held out").plot()

# %%
# Where the connections of the RigL network have gone.
ConnectivityDisplay.from_estimator(models["RigL"], by="strength").plot()
