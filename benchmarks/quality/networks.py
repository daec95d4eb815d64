"""Networks of the study: ratoon's default, recipe G, the paper's SET, FixProb, other forms of SET.

All are built on ratoon's own engine, recipe G too.  It is there twice: whole, and without the
linear path beside its hidden layer and with growth at random instead of by strength.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from quality.linear_path import LinearPath
from quality.rivals import Answer, strength
from quality.sets import Split, standardised
from ratoon import SparseMLPClassifier
from ratoon.estimators.strengths import strengths
from ratoon.evolution import SET, GuidedSET, Strategy
from ratoon.initialise import connections_wanted, guided
from ratoon.network import SparseMLP
from ratoon.optimizers import Adam, make_schedule
from ratoon.paper.trial import PaperSettings, run_trial
from ratoon.topology import Topology
from ratoon.training import Callback, Training, TrainingData, TrainingPlan

Array = NDArray[Any]

N_NEURONS, EPSILON, N_EPOCHS, CLIP = 2000, 5.0, 30, 3.0
PAPER_EPOCHS = 40


def default(parts: Split, seed: int) -> Answer:
    """``SparseMLPClassifier()``: no parameter but the seed, raw features."""
    model = SparseMLPClassifier(random_state=seed, n_jobs=1).fit(parts.x, parts.y)
    return model.predict(parts.x_test), model.predict_proba(parts.x_test)


def recipe_g(parts: Split, seed: int, *, is_whole: bool = True) -> Answer:
    """Recipe G: inputs drawn and weighed by strength, output weights from 0, squared loss."""
    z = standardised(parts)
    f = np.minimum(strength(z.x, z.y), 1e4)
    factors = np.sqrt(f / max(f.mean(), 1e-12))
    plain, plain_test = (np.clip(part, -CLIP, CLIP).astype(np.float32) for part in (z.x, z.x_test))
    x, x_test = ((part * factors).astype(np.float32) for part in (plain, plain_test))
    n_classes = int(z.y.max()) + 1
    shape = (x.shape[1], N_NEURONS)
    first = guided(shape, connections_wanted(shape, epsilon=EPSILON), f + 1e-3, seed=seed)
    network = SparseMLP.start(
        (*shape, n_classes),
        seed=seed,
        density=1.0,
        topologies=[first, Topology.full((N_NEURONS, n_classes))],
        output_init="zero",
    )
    plan = TrainingPlan(
        loss="squared_error",
        optimizer=Adam(),
        learning_rate=1e-3,
        schedule=make_schedule("cosine"),
        batch_size=32,
        balance_batches=True,
        n_epochs=N_EPOCHS,
        evolution=GuidedSET(f + 1e-3, power=1.0, zeta=0.3, every=2000 // N_EPOCHS, until=0.7)
        if is_whole
        else SET(0.3, grown="zero", every=2, until=0.7, anneal="cosine"),
        seed=seed,
    )
    targets = (2.0 * np.eye(n_classes)[z.y] - 1.0).astype(np.float32)
    path = LinearPath(x, plain, n_classes)
    data = TrainingData.of(x, targets, np.float32, offset=path(plain) if is_whole else None)
    Training(network, data, plan, runner=path if is_whole else None).run()
    outputs = network.outputs(x_test) + path(plain_test)
    return outputs.argmax(axis=1), softmax(2.0 * outputs.astype(np.float64), axis=1)


def guided_set(parts: Split, seed: int, callbacks: Sequence[Callback] = ()) -> dict[str, float]:
    """The paper's model, its new connections drawn by the strength of features."""
    z = standardised(parts)
    found = strengths("f", z.x, np.eye(int(z.y.max()) + 1)[z.y], None, has_classes=True)
    return paper(parts, seed, strategy=GuidedSET(found), callbacks=callbacks)


def paper(
    parts: Split, seed: int, *, strategy: Strategy, callbacks: Sequence[Callback] = ()
) -> dict[str, float]:
    """The paper's model, rewired by a strategy or left static, which is FixProb.

    Accuracy is that of the last epoch; that of the best epoch for the test rows is also recorded.
    """
    n_features = parts.x.shape[1]
    x = np.vstack((parts.x, parts.x_test)).astype(np.float32)
    y = np.concatenate((parts.y, parts.y_test))
    settings = PaperSettings(
        hidden=(round(0.8 * n_features),) * 2,
        batch_size=5,
        learning_rate=0.01,
        n_epochs=PAPER_EPOCHS,
    )
    rows = np.arange(len(y))
    n_train = len(parts.y)
    trial = run_trial(
        "paper",
        x,
        y,
        rows[:n_train],
        rows[n_train:],
        settings=settings,
        strategy=strategy,
        seed=seed,
        callbacks=callbacks,
    )
    right = trial.test_predictions == parts.y_test
    balanced = np.mean([right[parts.y_test == k].mean() for k in np.unique(parts.y_test)])
    return {
        "accuracy": 100.0 * trial.last,
        "balanced": 100.0 * float(balanced),
        "best_on_test": 100.0 * trial.best,
    }
