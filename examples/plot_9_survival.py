"""
Survival: risk groups from many genes
=====================================

From samples with times and events to risks, survival curves and a Kaplan-Meier plot of samples that
were held out.
"""

# %%
# A hundred genes more than samples; the risk depends on two of them.
import numpy as np

from ratoon import SparseMLPSurvival
from ratoon.report import KaplanMeierDisplay

rng = np.random.default_rng(1)
X = rng.normal(size=(200, 300))
time = rng.exponential(12 * np.exp(-1.5 * X[:, 0] - X[:, 1]))
end_of_study = rng.uniform(6, 60, size=200)
y = np.empty(200, dtype=[("event", bool), ("time", float)])
y["event"], y["time"] = time <= end_of_study, np.minimum(time, end_of_study)

# %%
# With few samples of many features the default fits a committee of Cox regressions.
model = SparseMLPSurvival(random_state=0).fit(X[:120], y[:120])
print(model.report_.how)
print(f"concordance on 80 held-out samples: {model.score(X[120:], y[120:]):.2f}")

# %%
# The probability to have no event within a year, for the samples with the lowest and highest risk.
risk = model.predict(X[120:])
curves = model.predict_survival_function(X[120:])
for name, sample in (("lowest", risk.argmin()), ("highest", risk.argmax())):
    print(f"{name} risk: {curves[sample](12.0):.2f} after 12 months")

# %%
# Held-out samples by predicted risk. The groups are equally large.
KaplanMeierDisplay.from_estimator(model, X[120:], y[120:], n_groups=3).plot()
