"""Parameters of other libraries: what the same thing is called here."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

from ratoon.errors import InvalidParameterError

FOREIGN = {
    # scikit-learn's MLPClassifier
    "alpha": "`weight_decay`, which is multiplied by the learning rate: weight_decay = alpha /"
    " batch_size has the same effect with SGD",
    "power_t": "`learning_rate`, a schedule: a name or a function of the progress of training",
    "max_fun": "`max_iter`; there is no L-BFGS solver",
    # PyTorch, Keras and others
    "lr": "`learning_rate_init`",
    "epochs": "`max_iter`",
    "n_epochs": "`max_iter`",
    "n_iter": "`max_iter`",
    "optimizer": "`solver`",
    "seed": "`random_state`",
    "dropout_rate": "`dropout`",
    "hidden_dims": "`hidden_layer_sizes`",
    "hidden_sizes": "`hidden_layer_sizes`",
    "criterion": "`loss`",
    # LightGBM and XGBoost
    "n_estimators": "`max_iter` for epochs; a network has no trees",
    "num_leaves": "`hidden_layer_sizes` and `density`; a network has no trees",
    "max_depth": "`hidden_layer_sizes`; a network has no trees",
    "reg_lambda": "`weight_decay`",
    "lambda_l2": "`weight_decay`",
    "reg_alpha": "`density` or `epsilon`, which set the number of connections directly",
    "early_stopping_rounds": "`early_stopping=True` with `n_iter_no_change`",
    "num_threads": "`n_jobs`",
    "nthread": "`n_jobs`",
    "n_threads": "`n_jobs`",
    "scale_pos_weight": '`class_weight`, such as "balanced"',
    "is_unbalance": '`class_weight="balanced"`',
    "eval_metric": "`fit(..., eval_set=(X, y))`, which scores by accuracy or R squared",
    "categorical_feature": "`ratoon.table_encoder()` as the first step of a pipeline",
    "categorical_features": "`ratoon.table_encoder()` as the first step of a pipeline",
    "enable_categorical": "`ratoon.table_encoder()` as the first step of a pipeline",
    "missing": "`ratoon.table_encoder(missing=...)` as the first step of a pipeline",
}
"""Names of parameters in other libraries, and what to use instead."""


class UnknownParameterError(InvalidParameterError, TypeError):
    """A parameter that does not exist; the message names what other libraries' is called here."""


def hint_for(owner: str, name: str) -> str | None:
    """Return the message for a parameter of another library; None if it is not known.

    Examples
    --------
    >>> print(hint_for("SparseMLPClassifier", "epochs"))
    SparseMLPClassifier has no parameter `epochs`.
      Use `max_iter`.
    """
    if name not in FOREIGN:
        return None
    return f"{owner} has no parameter `{name}`.\n  Use {FOREIGN[name]}."


def with_hints(init: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that names the right parameter for those of other libraries."""
    own = set(signature(init).parameters)

    @wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in kwargs.keys() - own:
            if (message := hint_for(type(self).__name__, name)) is not None:
                raise UnknownParameterError(message)
        init(self, *args, **kwargs)

    return checked
