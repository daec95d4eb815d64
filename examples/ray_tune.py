"""Hyperparameter search with Ray Tune that stops trials early: pip install "ray[tune]"

`partial_fit` trains for exactly one epoch.  After each, a trial reports its validation accuracy,
and the scheduler stops it if others were better.  Only the best settings are scored on the test
rows.
"""

from ray import tune
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from ratoon import SparseMLPClassifier

EPOCHS, TRIALS = 8, 8


def data():
    x, y = load_digits(return_X_y=True)
    return train_test_split(x / 16, y, test_size=0.3, stratify=y, random_state=0)


def make(settings):
    return SparseMLPClassifier(
        (settings["width"],),
        epsilon=settings["epsilon"],
        learning_rate_init=settings["learning_rate"],
        solver="adam",
        scale=None,  # pixels are numbers from 0 to 1 already
        max_iter=EPOCHS,
        n_jobs=1,  # trials run side by side
        random_state=0,
    )


def trial(settings):
    x, _, y, _ = data()
    x, x_val, y, y_val = train_test_split(x, y, test_size=0.25, stratify=y, random_state=1)
    model = make(settings)
    for _ in range(EPOCHS):
        model.partial_fit(x, y, classes=range(10))
        tune.report({"accuracy": model.score(x_val, y_val)})


if __name__ == "__main__":
    tuner = tune.Tuner(
        trial,
        param_space={
            "width": tune.qlograndint(50, 400, 10),
            "epsilon": tune.loguniform(1.0, 20.0),
            "learning_rate": tune.loguniform(1e-4, 1e-2),
        },
        tune_config=tune.TuneConfig(
            metric="accuracy",
            mode="max",
            num_samples=TRIALS,
            max_concurrent_trials=2,
            scheduler=tune.schedulers.ASHAScheduler(max_t=EPOCHS, grace_period=2),
        ),
    )
    best = tuner.fit().get_best_result()
    x, x_test, y, y_test = data()
    score = make(best.config).fit(x, y).score(x_test, y_test)
    print(f"best on validation rows {best.metrics['accuracy']:.3f}: {best.config}")
    print(f"accuracy on test rows {score:.3f}")
