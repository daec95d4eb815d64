"""Log a training to MLflow, with its model and model card: pip install mlflow skops

`LogMetrics` passes the results of every epoch to MLflow.  The model is stored in the default
format of MLflow, skops, which executes nothing when the model is loaded.
"""

import mlflow
import mlflow.sklearn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import ratoon
from ratoon.training import LogMetrics

x, x_test, y, y_test = train_test_split(
    *load_digits(return_X_y=True), test_size=0.3, random_state=0
)

if __name__ == "__main__":
    mlflow.set_experiment("digits")
    with mlflow.start_run() as run:
        classifier = ratoon.SparseMLPClassifier(
            (200,), epsilon=10, max_iter=10, callbacks=LogMetrics(mlflow), random_state=0
        )
        model = make_pipeline(MinMaxScaler(), classifier).fit(x, y)
        fitted = model[-1]
        mlflow.log_params({"epsilon": 10, "connections": fitted.network_.n_connections})
        mlflow.log_metric("test_accuracy", model.score(x_test, y_test))
        mlflow.log_text(fitted.card(title="Digits"), "model-card.md")
        info = mlflow.sklearn.log_model(
            model, name="model", skops_trusted_types=ratoon.skops_trusted()
        )
    loaded = mlflow.sklearn.load_model(info.model_uri)
    losses = mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss")
    print(
        f"{len(losses)} epochs logged; accuracy of the loaded model"
        f" {loaded.score(x_test, y_test):.3f}"
    )
