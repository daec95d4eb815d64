"""Pipelines in ONNX: pre-processing of scikit-learn and networks in one file."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from tests.processes import LOOKS_FOR_RACES

pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
if LOOKS_FOR_RACES:
    pytest.skip("finds a race of onnxruntime's own as the process ends", allow_module_level=True)
onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.compose import ColumnTransformer  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402
from sklearn.impute import MissingIndicator, SimpleImputer  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, QuantileTransformer  # noqa: E402

from ratoon import (  # noqa: E402
    SparseAutoencoderSelector,
    SparseFeatureSelector,
    SparseMLPClassifier,
    SparseMLPRegressor,
    table_encoder,
)
from ratoon.errors import InvalidInputError  # noqa: E402
from ratoon.export import register_converters, to_onnx  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 12)).astype(np.float32)
Y = np.where(X[:, 0] + X[:, 1] > 0, "case", "control")
HOW = {"hidden_layer_sizes": (20,), "epsilon": 4, "max_iter": 5, "random_state": 0}


def run(model, inputs):
    onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64}
    if not isinstance(inputs, dict):
        inputs = {"X": inputs.astype(kinds[session.get_inputs()[0].type])}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


@pytest.mark.parametrize(
    "steps",
    [
        (MinMaxScaler(),),
        (QuantileTransformer(n_quantiles=20), PCA(5, random_state=0)),
        (SparseFeatureSelector(4, n_repeats=2, random_state=0),),
        (SparseAutoencoderSelector(4, max_iter=3, n_repeats=1, random_state=0), MinMaxScaler()),
    ],
    ids=["scaler", "quantiles and PCA", "selector", "autoencoder"],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_pipeline_predicts_the_same_in_onnxruntime(steps, dtype):
    pipeline = make_pipeline(*steps, SparseMLPClassifier(**HOW, dtype=dtype)).fit(X, Y)

    found = run(to_onnx(pipeline), X)

    expected = pipeline.predict_proba(X.astype(dtype))
    np.testing.assert_allclose(found["probabilities"], expected, atol=1e-4)
    is_clear = np.abs(expected[:, 0] - 0.5) > 1e-3
    np.testing.assert_array_equal(found["label"][is_clear], pipeline.predict(X)[is_clear])


@pytest.mark.parametrize("n_targets", [1, 3])
def test_a_pipeline_with_a_regressor_predicts_the_same(n_targets):
    y = X[:, :n_targets] * 3.0 + 1.0
    pipeline = make_pipeline(MinMaxScaler(), SparseMLPRegressor(**HOW)).fit(X, y)

    found = next(iter(run(to_onnx(pipeline), X).values()))

    np.testing.assert_allclose(found, pipeline.predict(X).reshape(120, -1), rtol=1e-3, atol=1e-4)


def test_several_labels_in_a_pipeline():
    y = (X[:, :3] > 0).astype(int)
    pipeline = make_pipeline(MinMaxScaler(), SparseMLPClassifier(**HOW)).fit(X, y)

    found = run(to_onnx(pipeline), X)

    np.testing.assert_allclose(found["probabilities"], pipeline.predict_proba(X), atol=1e-4)


def test_columns_selected_by_name_are_inputs_of_their_own():
    frame = pd.DataFrame(
        {"age": X[:, 0], "dose": X[:, 1], "group": np.where(X[:, 2] > 0, "a", "b")}
    )
    frame.loc[3, "dose"] = np.nan
    columns = ColumnTransformer(
        [
            ("numbers", SimpleImputer(), ["age", "dose"]),
            ("groups", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["group"]),
        ]
    )
    pipeline = make_pipeline(columns, SparseMLPClassifier(**HOW)).fit(frame, Y)

    model = to_onnx(pipeline, X=frame)

    assert {entry.name for entry in model.graph.input} == {"age", "dose", "group"}
    inputs = {name: frame[[name]].to_numpy() for name in frame}
    np.testing.assert_allclose(
        run(model, inputs)["probabilities"], pipeline.predict_proba(frame), atol=1e-4
    )


def test_a_calibrated_classifier_is_converted():
    model = CalibratedClassifierCV(SparseMLPClassifier(**HOW), cv=2).fit(X, Y)

    found = run(to_onnx(model), X)

    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-4)


def test_weights_of_a_pipeline_in_fewer_bits_make_a_smaller_file():
    how = {**HOW, "hidden_layer_sizes": (300, 300), "epsilon": 20}
    pipeline = make_pipeline(MinMaxScaler(), SparseMLPClassifier(**how)).fit(X, Y)

    sizes = [to_onnx(pipeline, weights=kind).ByteSize() for kind in (None, "bfloat16", "int8")]

    assert sizes == sorted(sizes, reverse=True)
    assert sizes[2] < 0.6 * sizes[0]


def test_skl2onnx_itself_converts_after_registering():
    import skl2onnx

    register_converters()
    pipeline = make_pipeline(MinMaxScaler(), SparseMLPClassifier(**HOW)).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = skl2onnx.to_onnx(pipeline, X[:1], options={"zipmap": False})

    np.testing.assert_allclose(run(model, X)["probabilities"], pipeline.predict_proba(X), atol=1e-4)


def test_a_pipeline_that_is_not_fitted_is_refused():
    with pytest.raises(InvalidInputError, match="fitted"):
        to_onnx(make_pipeline(MinMaxScaler(), SparseMLPClassifier()))


def test_classes_without_a_type_in_skl2onnx_are_refused():
    pipeline = make_pipeline(MinMaxScaler(), SparseMLPClassifier(**HOW)).fit(X, (Y == "case") + 0.0)
    with pytest.raises(InvalidInputError, match="fractions"):
        to_onnx(pipeline)


@pytest.mark.parametrize("columns", [["age", "dose", "city", "smokes"], ["age", "dose"], ["city"]])
@pytest.mark.parametrize("indicator", [True, False])
def test_encoded_tables_predict_the_same_in_onnxruntime(columns, indicator):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, 60),
            "dose": rng.lognormal(size=60),
            "city": rng.choice(["x", "y", "z"], 60),
            "smokes": rng.random(60) < 0.5,
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame = frame[columns]
    y = rng.integers(0, 2, 60)
    network = SparseMLPClassifier((9,), max_iter=3, random_state=0)
    model = make_pipeline(table_encoder(indicator=indicator), network).fit(frame, y)
    kinds = {"city": object}
    inputs = {
        name: frame[[name]].astype(kinds.get(name, np.float32)).to_numpy() for name in columns
    }
    found = run(to_onnx(model, X=frame), inputs)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(frame), atol=1e-5)
    assert np.array_equal(found["label"], model.predict(frame))


def test_an_indicator_of_other_values_is_refused():
    X = np.array([[1.0, -1.0], [-1.0, 3.0]] * 10)
    indicator = MissingIndicator(missing_values=-1.0, features="all")
    model = make_pipeline(indicator, SparseMLPClassifier((3,), max_iter=1))
    model.fit(X, np.arange(20) % 2)
    with pytest.raises(InvalidInputError, match="of NaN"):
        to_onnx(model)
