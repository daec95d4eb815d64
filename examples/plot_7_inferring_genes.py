"""
Inferring genes from landmark genes
===================================

A chip measures a few hundred landmark genes; the others are predicted from them, as D-GEX does.
With few samples one call fits all target genes in closed form: one network, shared by all of them.
"""

# %%
# Expression follows from hidden programs, which landmark and target genes share.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.neighbors import KNeighborsRegressor

from ratoon import SparseMLPRegressor

rng = np.random.default_rng(0)
n_samples, n_landmarks, n_targets = 400, 200, 500
programs = rng.standard_normal((n_samples, 30)) / np.sqrt(np.arange(1, 31))
loadings = rng.standard_normal((30, n_landmarks + n_targets)) * (
    rng.random((30, n_landmarks + n_targets)) < 0.2
)
signal = programs @ loadings
spread = np.maximum(signal.std(axis=0), 0.1)
expression = signal / spread + 0.7 * rng.standard_normal(signal.shape)
x, y = expression[:, :n_landmarks], expression[:, n_landmarks:]
train, test = np.arange(300), np.arange(300, n_samples)

# %%
# The error of a gene is its mean absolute error on samples that the models have not seen.
models = {
    "ratoon": SparseMLPRegressor(random_state=0),
    "ridge": RidgeCV(np.logspace(-1, 5, 13)),
    "linear regression": LinearRegression(),
    "nearest neighbours": KNeighborsRegressor(20),
}
errors = {}
for name, model in models.items():
    predicted = model.fit(x[train], y[train]).predict(x[test])
    errors[name] = np.abs(predicted - y[test]).mean(axis=0)
    print(f"{name}: mean error of a gene {errors[name].mean():.3f}")
better = np.mean(errors["ratoon"] < errors["linear regression"])
print(f"better than linear regression on {100 * better:.0f} % of genes")
print(models["ratoon"].report_)

# %%
# Every point is a gene. Below the diagonal ratoon is better.
figure, axes = plt.subplots(figsize=(4, 4))
axes.scatter(errors["linear regression"], errors["ratoon"], s=6)
axes.axline((0.5, 0.5), slope=1, color="grey", linewidth=1)
axes.set(xlabel="error, linear regression", ylabel="error, ratoon")
figure.tight_layout()
