"""Tables with text, categories and missing values, as scikit-learn encodes them."""

from __future__ import annotations

from typing import Any

from ratoon.errors import InvalidParameterError

FILLINGS = ("mean", "median", "most_frequent")


def table_encoder(
    *, missing: str = "mean", indicator: bool = True, min_frequency: float | None = None
) -> Any:
    """Return a transformer of pandas tables for the first step of a pipeline.

    Columns of numbers: missing values are filled with the mean of the training samples, numbers
    are standardised, and a column that marks what was missing is added where training had missing
    values.  All other columns: one column per category, which stay sparse; a missing value is a
    category of its own, and categories that training did not have get zeros.

    The fitted pipeline is saved with skops (`ratoon.skops_trusted`) and exported by
    ``ratoon.export.to_onnx(pipeline, X=table)``.

    Parameters
    ----------
    missing : {"mean", "median", "most_frequent"}, default="mean"
        What fills missing numbers.
    indicator : bool, default=True
        Whether to add columns that mark missing numbers.
    min_frequency : int or float, optional
        Categories with fewer samples, or a smaller fraction of them, share one column.

    Returns
    -------
    sklearn.compose.ColumnTransformer

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from ratoon import SparseMLPClassifier, table_encoder
    >>> table = pd.DataFrame({"age": [40.0, None, 61.0, 55.0], "group": ["a", "b", "a", None]})
    >>> model = make_pipeline(table_encoder(), SparseMLPClassifier(random_state=0))
    >>> model.fit(table, [0, 1, 1, 0])[:-1].get_feature_names_out()[:3].tolist()
    ['numbers__age', 'numbers__missingindicator_age', 'categories__group_a']
    """
    from sklearn.compose import ColumnTransformer, make_column_selector
    from sklearn.impute import MissingIndicator, SimpleImputer
    from sklearn.pipeline import FeatureUnion, make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    if missing not in FILLINGS:
        raise InvalidParameterError(
            f"table_encoder: `missing` must be one of {FILLINGS}, got {missing!r}."
        )
    filled = make_pipeline(
        SimpleImputer(strategy=missing, keep_empty_features=True), StandardScaler()
    )
    parts = [("filled", filled), ("missing", MissingIndicator(error_on_new=False))]
    numbers = FeatureUnion(parts[: 2 if indicator else 1], verbose_feature_names_out=False)
    categories = OneHotEncoder(
        handle_unknown="ignore" if min_frequency is None else "infrequent_if_exist",
        min_frequency=min_frequency,
    )
    are_numbers = make_column_selector(dtype_include=["number", "bool"])
    are_others = make_column_selector(
        dtype_exclude=["number", "bool", "datetime", "datetimetz", "timedelta"]
    )
    return ColumnTransformer(
        [("numbers", numbers, are_numbers), ("categories", categories, are_others)],
        remainder="passthrough",  # dates reach the estimator, which refuses them with a recipe
    )
