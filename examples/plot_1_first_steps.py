"""
First steps
===========

A sparse network in ten lines: generated data like those of a small gene expression study, a network
whose connections change during training, and its confusion matrix.
"""

# %%
# Data with labels; a third of the samples is kept for testing.
from sklearn.model_selection import train_test_split

from ratoon import SparseMLPClassifier
from ratoon.datasets import make_microarray
from ratoon.report import ConfusionMatrixDisplay, LearningCurveDisplay

data, _ = make_microarray(120, 1000, n_classes=3, n_informative=60, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(
    data.X, data.labels, test_size=1 / 3, stratify=data.labels, random_state=0
)

# %%
# `epsilon` sets the sparsity: about epsilon * (inputs + outputs) connections in a
# layer.  Evolution replaces the weakest connections during training.
model = SparseMLPClassifier((200,), epsilon=5, max_iter=60, random_state=0)
model.fit(X_train, y_train)
print(f"accuracy on test samples: {model.score(X_test, y_test):.2f}")
print(model.report_)

# %%
# Rows are predicted classes, columns true classes; precision on the right, recall below.
ConfusionMatrixDisplay.from_estimator(model, X_test, y_test).plot()

# %%
# The loss after every epoch.
LearningCurveDisplay.from_estimator(model).plot()
