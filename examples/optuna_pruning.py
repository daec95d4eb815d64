"""Hyperparameter search with Optuna that prunes trials: pip install "ratoon[optuna]"

`partial_fit` trains for exactly one epoch.  After each, the trial reports its validation accuracy,
and the pruner stops it if other trials were better at the same epoch.  Only the best settings are
evaluated on the test rows.
"""

import optuna
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from ratoon import SparseMLPClassifier
from ratoon.evolution import SET

EPOCHS, TRIALS = 8, 12

x, y = load_digits(return_X_y=True)
x, x_test, y, y_test = train_test_split(x / 16, y, test_size=0.3, stratify=y, random_state=0)
x_fit, x_val, y_fit, y_val = train_test_split(x, y, test_size=0.25, stratify=y, random_state=1)


def make(settings):
    return SparseMLPClassifier(
        (settings["width"],),
        epsilon=settings["epsilon"],
        evolution=SET(zeta=settings["zeta"]),
        learning_rate_init=settings["learning_rate"],
        batch_size=32,
        scale=None,  # pixels are numbers from 0 to 1 already
        max_iter=EPOCHS,
        n_jobs=1,  # trials may run side by side: study.optimize(..., n_jobs=-1)
        random_state=0,
    )


def objective(trial):
    model = make(
        {
            "width": trial.suggest_int("width", 50, 400, log=True),
            "epsilon": trial.suggest_float("epsilon", 1.0, 20.0, log=True),
            "zeta": trial.suggest_float("zeta", 0.1, 0.5),
            "learning_rate": trial.suggest_float("learning_rate", 1e-4, 0.1, log=True),
        }
    )
    for epoch in range(EPOCHS):
        model.partial_fit(x_fit, y_fit, classes=range(10))
        accuracy = model.score(x_val, y_val)
        trial.report(accuracy, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return accuracy


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=0),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=1),
    )
    study.optimize(objective, n_trials=TRIALS)
    pruned = [t for t in study.trials if t.state is optuna.trial.TrialState.PRUNED]
    epochs = sum(len(t.intermediate_values) for t in study.trials)
    best = make(study.best_params).fit(x, y)
    print(f"{len(pruned)} of {TRIALS} trials pruned, {epochs} of {EPOCHS * TRIALS} epochs trained")
    print(f"best on validation rows {study.best_value:.3f}: {study.best_params}")
    print(f"accuracy on test rows {best.score(x_test, y_test):.3f}")
