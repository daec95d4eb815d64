"""The epoch loop: records, order of events, stopping, interruptions, and exact resumption."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ratoon import Augment
from ratoon.errors import AlreadyTrainingError, DivergenceError, InvalidInputError
from ratoon.evolution import SET, RigL, Static
from ratoon.kernels import Step, reference
from ratoon.losses import mean_loss
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD, Adam, cosine
from ratoon.rng import derive_seed
from ratoon.training import (
    Callback,
    EarlyStopping,
    Training,
    TrainingData,
    TrainingPlan,
    TrainingState,
)
from tests.training.cases import (
    Diary,
    accuracy,
    assert_same_network,
    samples,
    start,
    training,
)

# --------------------------------------------------------------------------------------- history


def test_the_record_of_an_epoch_holds_its_results():
    run = training(
        TrainingPlan(
            learning_rate=0.1, schedule=cosine, n_epochs=4, batch_size=10, evolution=SET(zeta=0.5)
        )
    )
    run.run()
    first, second, *_ = run.history
    assert run.history.column("epoch") == [0, 1, 2, 3]
    assert run.history.column("learning_rate") == pytest.approx(
        [0.1 * cosine(p) for p in (0.0, 0.25, 0.5, 0.75)]
    )
    assert first.n_connections == run.network.n_connections
    assert first.density == run.network.density
    # SET rewires before every epoch but the first: half of 240, 160 and 12 connections, each sign
    # rounded by itself.
    assert first.rewired == 0
    assert second.rewired == pytest.approx(206, abs=3)
    assert first.train_seconds > 0
    assert second.rewire_seconds > 0
    assert first.validation_score is first.validation_loss is None


def test_the_loss_of_an_epoch_is_the_mean_over_its_samples():
    # With a learning rate of next to nothing all samples meet the same network.
    run = training(TrainingPlan(learning_rate=1e-20, n_epochs=1, batch_size=7, optimizer=SGD(0.0)))
    x, targets = samples()
    expected = mean_loss("softmax_cross_entropy", run.network.outputs(x), targets)
    run.run()
    assert run.history[0].loss == pytest.approx(expected, rel=1e-5)  # float32


def test_validation_is_scored_after_every_epoch():
    x, targets = samples(25, seed=1)
    held = TrainingData.of(x, targets, np.float32)
    run = training(validation=held, scorer=accuracy)
    run.run()
    outputs = run.network.outputs(x)
    assert run.history[-1].validation_score == accuracy(outputs, held)
    assert run.history[-1].validation_loss == pytest.approx(
        mean_loss("softmax_cross_entropy", outputs, targets)
    )
    assert run.history[-1].evaluate_seconds > 0


def test_without_a_scorer_the_score_is_the_negative_loss():
    run = training(validation=TrainingData.of(*samples(25, seed=1), np.float32))
    run.run()
    assert run.history[0].validation_score == -run.history[0].validation_loss


def test_training_reduces_the_loss():
    annealed = SET(until=0.7, anneal="cosine")
    run = training(TrainingPlan(learning_rate=0.05, n_epochs=40, evolution=annealed), n=200)
    run.run()
    x, targets = samples(200)
    assert np.mean(run.network.outputs(x).argmax(1) == targets.argmax(1)) > 0.95


# ------------------------------------------------------------------------------------- callbacks


def test_callbacks_are_called_in_order():
    pages = []
    run = training(TrainingPlan(n_epochs=2), callbacks=[Diary("a ", pages), Diary("b ", pages)])
    run.run()
    assert pages == [
        "a begin", "b begin",
        "a epoch 0", "b epoch 0",
        "a epoch 1", "b epoch 1",
        "a end", "b end",
    ]  # fmt: skip


def test_a_callback_gets_the_record_of_the_epoch_that_has_ended():
    class Look(Diary):
        def on_epoch_end(self, training, record):
            self.pages.append((training.epochs_done, len(training.history), record.epoch))

    run = training(callbacks=[look := Look()])
    run.run()
    assert look.pages[1:-1] == [(1, 1, 0), (2, 2, 1), (3, 3, 2)]


def test_a_callback_can_stop_training():
    class Enough(Callback):
        def on_epoch_end(self, training, record):
            training.should_stop = record.epoch == 1

    run = training(TrainingPlan(n_epochs=100), callbacks=[Enough(), diary := Diary()])
    run.run()
    assert run.epochs_done == 2
    assert diary.pages[-1] == "end"


def test_a_callback_that_needs_rewirings_gets_them_and_changes_nothing():
    class Listener(Diary):
        needs_rewirings = True

        def on_rewire(self, training, rewirings):
            self.pages.append([rewiring.n_grown for rewiring in rewirings])

    plan = TrainingPlan(n_epochs=3, evolution=SET())
    watched, alone = training(plan, callbacks=[listener := Listener()]), training(plan)
    watched.run()
    alone.run()
    assert_same_network(watched.network, alone.network)
    pages = [page for page in listener.pages if isinstance(page, list)]
    assert [sum(page) for page in pages] == alone.history.column("rewired")[1:]
    assert watched.rewired_by_layer == alone.rewired_by_layer == np.sum(pages, axis=0).tolist()


def test_the_base_callback_does_nothing():
    one, other = training(callbacks=[Callback()]), training()
    one.run()
    other.run()
    assert_same_network(one.network, other.network)


# -------------------------------------------------------------------------------------- stopping


class Scores(Callback):
    """Hands out scores made up beforehand, one per epoch."""

    def __init__(self, *scores):
        self.scores = list(scores)
        self.kept = []

    def __call__(self, outputs, data):
        return self.scores.pop(0)

    def on_epoch_end(self, training, record):
        self.kept.append(training.network.copy())


def stopped(scores, stopping, **more):
    held = TrainingData.of(*samples(5, seed=1), np.float32)
    plan = TrainingPlan(n_epochs=len(scores.scores), evolution=SET())
    return training(
        plan, validation=held, scorer=scores, stopping=stopping, callbacks=[scores], **more
    )


def test_early_stopping_returns_to_the_best_epoch():
    scores = Scores(0.5, 0.8, 0.7, 0.8, 0.6, 0.9)
    run = stopped(scores, EarlyStopping(patience=3))
    run.run()
    assert run.epochs_done == 5, "three epochs without a better score"
    assert run.stopping.best_epoch == 1
    assert_same_network(run.network, scores.kept[1])


def test_the_last_network_can_be_kept_to_train_on():
    scores = Scores(0.9, 0.5, 0.4)
    run = stopped(scores, EarlyStopping(patience=2))
    run.run(restore_best=False)
    assert_same_network(run.network, scores.kept[-1])
    run.restore_best()
    assert_same_network(run.network, scores.kept[0])


def test_without_restoring_no_copy_is_kept():
    run = stopped(Scores(0.9, 0.5, 0.4), EarlyStopping(patience=2, restore_best=False))
    run.run()
    assert run.stopping.best_network is None
    assert run.stopping.best_epoch == 0


def test_a_score_must_be_better_by_more_than_the_tolerance():
    run = stopped(Scores(0.5, 0.505, 0.51, 0.9), EarlyStopping(patience=2, tol=0.01))
    run.run()
    assert run.epochs_done == 3
    assert run.stopping.best_epoch == 0


# ------------------------------------------------------------------------- trouble and interruption


def test_the_error_of_divergence_suggests_a_smaller_learning_rate():
    run = training(TrainingPlan(learning_rate=1e30, n_epochs=5), callbacks=[diary := Diary()])
    with pytest.raises(DivergenceError, match=r"diverged.*\n.*learning rate is 1e\+30"):
        run.run()
    assert diary.pages[-1] == "end"


def test_ctrl_c_keeps_what_was_learnt():
    class Interrupt(Callback):
        def on_epoch_end(self, training, record):
            if record.epoch == 1:
                raise KeyboardInterrupt

    run = training(TrainingPlan(n_epochs=9), callbacks=[diary := Diary(), Interrupt()])
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert (run.epochs_done, len(run.history)) == (2, 2)
    assert diary.pages[-1] == "end"
    undisturbed = training(TrainingPlan(n_epochs=9))
    undisturbed.run(2)
    assert_same_network(run.network, undisturbed.network)


def test_targets_that_do_not_fit_are_refused():
    x, targets = samples()
    for wrong in (targets[:-1], targets[:, 0]):
        with pytest.raises(InvalidInputError, match="41 samples need targets"):
            TrainingData.of(x, wrong, np.float32)


# ------------------------------------------------------------------------------ the same to the bit


@pytest.mark.parametrize("optimizer", [SGD(), SGD(0.0), SGD(nesterov=True), Adam()])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_six_epochs_are_three_and_three(optimizer, dropout):
    plan = TrainingPlan(
        learning_rate=0.05,
        schedule=cosine,
        optimizer=optimizer,
        n_epochs=6,
        batch_size=7,
        evolution=SET(anneal="cosine"),
    )
    whole = training(plan, start(dropout=dropout))
    whole.run()

    first = training(plan, start(dropout=dropout))
    first.run(3)
    # All that a later process would have: the network, the number of epochs, and the plan.
    then = training(plan, TrainingState(first.network.copy(), epochs_done=3))
    then.run()
    assert_same_network(whole.network, then.network)
    losses = first.history.column("loss") + then.history.column("loss")
    assert losses == whole.history.column("loss")


@pytest.mark.parametrize("batch_size", [1, 5, 100])
def test_the_number_of_threads_changes_no_byte(batch_size):
    def trained(n_threads):
        # Wide enough for kernels to share their work.
        network = SparseMLP.start((400, 600, 500, 3), density=0.2, dropout=0.2, seed=0)
        rng = np.random.default_rng(0)
        x = rng.normal(size=(23, 400)).astype(np.float32)
        targets = np.eye(3, dtype=np.float32)[rng.integers(3, size=23)]
        plan = TrainingPlan(n_epochs=3, batch_size=batch_size, evolution=SET(), n_threads=n_threads)
        run = Training(network, TrainingData.of(x, targets, np.float32), plan)
        run.run()
        return run

    one, two = trained(1), trained(2)
    assert_same_network(one.network, two.network)
    assert one.history.column("loss") == two.history.column("loss")


def test_the_seed_determines_all_random_numbers():
    def trained(seed):
        run = training(TrainingPlan(n_epochs=2, evolution=SET(), seed=seed), start(dropout=0.2))
        run.run()
        return run.network

    assert_same_network(trained(1), trained(1))
    assert not np.array_equal(trained(1).layers[0].weights, trained(2).layers[0].weights)


@pytest.mark.parametrize(
    ("plan", "dropout"),
    [({"shuffle": True}, 0.0), ({"shuffle": False}, 0.2), ({"evolution": SET()}, 0.0)],
    ids=["order of samples", "dropout", "rewiring"],
)
def test_every_use_of_random_numbers_depends_on_the_seed(plan, dropout):
    def trained(seed):
        run = training(
            TrainingPlan(**{"n_epochs": 2, "shuffle": False, "seed": seed, **plan}),
            start(dropout=dropout),
        )
        run.run()
        return run.network.layers[0]

    one, other = trained(1), trained(2)
    assert one.topology != other.topology or not np.array_equal(one.weights, other.weights)


# ------------------------------------------------------------------------------------ minibatches


def by_steps(order, batch, dropout=0.0):
    """Train one step per call on the given rows, in the given order."""
    x, targets = samples()
    network = start(dropout=dropout)
    for layer in network.layers:
        layer.clear_state(1)
    native = network.native("softmax_cross_entropy", 1)
    data = TrainingData.of(x, targets, np.float32)
    for first in range(0, order.size, batch):
        native.train(
            data.samples, data.targets, order[first : first + batch], batch, SGD().rule,
            [Step(0.05, mu=0.9)], first_step=first // batch,
        )  # fmt: skip
    return network


def test_a_last_short_batch_is_used():
    # 41 samples in batches of 20: two full ones and one of a single sample.
    plan = TrainingPlan(learning_rate=0.05, batch_size=20, n_epochs=1, shuffle=False)
    run = training(plan)
    run.run()
    assert_same_network(run.network, by_steps(np.arange(41), 20))
    shorter = by_steps(np.arange(40), 20)
    assert not np.array_equal(run.network.layers[0].weights, shorter.layers[0].weights)


def test_balanced_batches_are_about_equally_large():
    plan = TrainingPlan(batch_size=20, balance_batches=True)
    assert plan.batch_for(41) == 14  # 14 + 14 + 13 instead of 20 + 20 + 1
    assert plan.batch_for(40) == 20
    assert plan.batch_for(7) == 7
    assert plan.clock(0, 41).steps_per_epoch == 3
    run = training(
        TrainingPlan(
            learning_rate=0.05, batch_size=20, balance_batches=True, n_epochs=1, shuffle=False
        )
    )
    run.run()
    assert_same_network(run.network, by_steps(np.arange(41), 14))


def test_every_epoch_has_all_samples_in_another_order():
    run = training()
    orders = [run._order(epoch) for epoch in range(3)]
    assert all(np.array_equal(np.sort(order), np.arange(41)) for order in orders)
    assert not np.array_equal(orders[0], orders[1])


def test_only_the_named_rows_are_trained_on():
    x, targets = samples()
    rows = np.array([3, 4, 5, 20, 21, 40])
    plan = TrainingPlan(n_epochs=3, batch_size=2)
    named = Training(start(), TrainingData.of(x, targets, np.float32, rows=rows), plan)
    taken = Training(start(), TrainingData.of(x[rows], targets[rows], np.float32), plan)
    named.run()
    taken.run()
    assert_same_network(named.network, taken.network)


def test_every_epoch_augments_the_images_of_the_training_alone():
    x, targets = samples()
    augment = Augment((5, 6), 1, flip=True)
    plan = TrainingPlan(n_epochs=2, batch_size=8, shuffle=False, augment=augment)
    data = TrainingData.of(x, targets, np.float32)
    run = Training(start(), data, plan, validation=data)
    run.run()
    # One epoch after the other, on a changed copy of X.
    copies = Training(start(), data, replace(plan, augment=None), validation=data)
    for epoch in range(2):
        seed = derive_seed(plan.seed, "augment", epoch)
        copies.data = TrainingData.of(reference.augmented(x, augment, seed), targets, np.float32)
        copies.run_epoch()
    assert_same_network(run.network, copies.network)
    assert run.history.column("loss") == copies.history.column("loss")
    assert run.history.column("validation_loss") == copies.history.column("validation_loss")


def test_strategies_look_at_the_augmented_images():
    x, targets = samples()
    plan = TrainingPlan(
        n_epochs=1, batch_size=8, shuffle=False, augment=Augment((5, 6), 2), evolution=RigL()
    )
    seed = derive_seed(plan.seed, "augment", 0)
    copy = reference.augmented(x, plan.augment, seed)
    run = Training(start(), TrainingData.of(x, targets, np.float32), plan)
    other = Training(
        start(), TrainingData.of(copy, targets, np.float32), replace(plan, augment=None)
    )
    [one, *_], [two, *_] = (t._layer_states(np.arange(8), plan.clock(0, 41)) for t in (run, other))
    for a, b in zip(one.signals(), two.signals(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_row_changes_alike_whatever_the_other_rows_are():
    x, targets = samples()
    rows = np.array([3, 4, 5, 20, 21, 40])
    plan = TrainingPlan(n_epochs=1, batch_size=2, shuffle=False, augment=Augment((5, 6), 2))
    named = Training(start(), TrainingData.of(x, targets, np.float32, rows=rows), plan)
    named.run()
    changed = reference.augmented(x, plan.augment, derive_seed(plan.seed, "augment", 0))[rows]
    taken = Training(
        start(), TrainingData.of(changed, targets[rows], np.float32), replace(plan, augment=None)
    )
    taken.run()
    assert_same_network(named.network, taken.network)


# ---------------------------------------------------------------------------------------- dropout


def test_dropout_changes_training_and_not_prediction():
    network = start(dropout=0.5)
    x, _ = samples()
    assert_array_equal(network.outputs(x), start(dropout=0.0).outputs(x))
    run = training(network=network)
    run.run()
    plain = training(network=start(dropout=0.0))
    plain.run()
    assert not np.array_equal(network.layers[0].weights, plain.network.layers[0].weights)


def test_dropout_is_drawn_again_at_every_step():
    # Tiny learning rate: the loss changes only by what drops out.
    plan = TrainingPlan(learning_rate=1e-20, n_epochs=5, shuffle=False)
    run = training(plan, start(dropout=0.5))
    run.run()
    assert len(set(run.history.column("loss"))) == 5


def test_dropout_keeps_the_mean_of_activations():
    # An identity layer behind it: the mean over many draws is the output without dropout.
    rng = np.random.default_rng(0)
    network = SparseMLP.start((50, 400, 1), density=0.5, dropout=0.4, seed=0, dtype=np.float64)
    x = rng.normal(size=(1, 50))
    clean = network.outputs(x)[0, 0]
    data = TrainingData.of(np.repeat(x, 400, axis=0), np.zeros((400, 1)), np.float64)
    plan = TrainingPlan("squared_error", SGD(0.0), learning_rate=1e-300, n_epochs=1, batch_size=1)
    run = Training(network, data, plan)
    run.run()
    # The mean square over the draws is clean^2 plus the variance of dropout,
    # sum of (w h)^2 * 0.4 / 0.6; by 400 draws its relative error is about 0.1.
    hidden = network.outputs(x, layer=0)[0]
    spread = float(((network.layers[1].to_csr().toarray()[:, 0] * hidden) ** 2).sum() * 0.4 / 0.6)
    assert_allclose(2 * run.history[0].loss, clean**2 + spread, rtol=0.5)


# --------------------------------------------------------------------------------------- rewiring


def test_the_topology_is_handed_over_as_training_left_it():
    # One epoch: SET would rewire before a second, which never comes.
    run = training(TrainingPlan(n_epochs=1, evolution=SET()))
    before = [layer.topology for layer in run.network.layers]
    run.run()
    assert [layer.topology for layer in run.network.layers] == before


def test_a_static_network_keeps_its_topology():
    run = training(TrainingPlan(n_epochs=4, evolution=Static()))
    before = [layer.topology for layer in run.network.layers]
    run.run()
    assert [layer.topology for layer in run.network.layers] == before
    assert run.history.column("rewired") == [0, 0, 0, 0]


def test_the_count_never_drifts():
    run = training(TrainingPlan(n_epochs=12, evolution=SET(zeta=0.9)))
    counts = [layer.n_connections for layer in run.network.layers]
    run.run()
    assert [layer.n_connections for layer in run.network.layers] == counts
    assert set(run.history.column("n_connections")) == {sum(counts)}


def test_a_full_layer_does_not_change_while_others_rewire():
    network = SparseMLP.start((30, 40, 3), epsilon=5, seed=0)
    assert network.layers[1].topology.is_full
    run = training(TrainingPlan(n_epochs=3, evolution=SET()), network)
    run.run()
    assert run.rewired_by_layer[0] > 0
    assert run.rewired_by_layer[1] == 0


def test_training_accounts_for_an_offset():
    # With the targets themselves as offset there is nothing left to learn.
    x, _ = samples()
    targets = x[:, :3].copy()
    data = TrainingData.of(x, targets, np.float32, offset=targets)
    network = start(output_init="zero")
    run = Training(network, data, TrainingPlan("squared_error", n_epochs=2))
    run.run()
    assert run.history.column("loss") == [0.0, 0.0]


# ------------------------------------------------------------------------------- other threads


@pytest.mark.parametrize("shares", ["network", "one layer"])
def test_two_trainings_of_one_network_in_two_threads_are_refused(shares):
    network = start()
    other = network if shares == "network" else SparseMLP([*start().layers[:2], network.layers[2]])
    outcome = []

    class TrainsElsewhere(Callback):
        def on_epoch_end(self, run, record):
            with ThreadPoolExecutor(1) as pool:
                outcome.append(pool.submit(training(network=other).run_epoch).exception())

    training(network=network, callbacks=[TrainsElsewhere()]).run_epoch()
    assert isinstance(outcome[0], AlreadyTrainingError)
    training(network=other).run_epoch()


def test_a_callback_may_train_the_network_for_another_epoch():
    class OneMore(Callback):
        def on_epoch_end(self, run, record):
            if record.epoch == 0:
                run.run_epoch()

    run = training(callbacks=[OneMore()])
    run.run_epoch()
    assert run.epochs_done == 2
