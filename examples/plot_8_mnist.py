"""
MNIST with 1 % of the connections
=================================

Three hidden layers of 1,568 neurons would have 6.2 million connections.  Here they have 62,000,
which stay where they were drawn or are rewired by RigL.  An epoch takes less than a CPU second.
"""

# %%
# MNIST as an ``.npz`` file or an IDX file, if it is here; otherwise digits of 8 x 8 pixels.
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from ratoon import SparseMLPClassifier
from ratoon.datasets import read
from ratoon.report import LearningCurveDisplay

names = ("mnist.npz", "shared/data/mnist.npz", "train-images-idx3-ubyte")
here = Path.cwd()
found = [up / name for up in (here, *here.parents) for name in names if (up / name).exists()]
if found:
    data = read(found[0])
    X, y, n_test = np.asarray(data.X), data.labels, 10_000
else:
    print("MNIST is not here (mnist.npz or train-images-idx3-ubyte): 8 x 8 digits instead")
    (X, y), n_test = load_digits(return_X_y=True), 600
X = (X - X.mean()) / X.std()
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=n_test, random_state=0)

# %%
# With ``epsilon`` a layer gets connections in proportion to its neurons, so the narrow output layer
# is denser than the others.
hidden = (2 * X.shape[1],) * 3
curves = {}
for evolution in ("static", "rigl"):
    model = SparseMLPClassifier(
        hidden,
        epsilon=6,
        evolution=evolution,
        solver="sgd",
        learning_rate_init=0.1,
        learning_rate="cosine",
        batch_size=32,
        max_iter=6,
        scale=None,
        random_state=0,
    )
    model.fit(X_train, y_train, eval_set=(X_test, y_test))
    curves[evolution] = [model.validation_scores_]
    print(f"{evolution:6} last epoch {model.score(X_test, y_test):.4f}")
print(model.report_)

# %%
# RigL grows connections where the gradient is largest, and ends more than a point ahead.
LearningCurveDisplay(curves, ylabel="accuracy on test rows").plot()
