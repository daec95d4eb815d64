"""A network whose parts are on several ranks trains as the whole network on one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ratoon.activations import ACTIVATIONS
from ratoon.distributed import SingleRank, ThreadRanks
from ratoon.distributed.split import SplitFolder, SplitNetwork, SplitTraining, split_cost
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.evolution import GSE, SET, SNFS, GuidedSET, RigL
from ratoon.kernels import Scaling
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD, Adam
from ratoon.training import Training, TrainingData, TrainingPlan

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 30)).astype(np.float64)
LABELS = (X[:, 0] + X[:, 1] > 0).astype(int) + (X[:, 2] > 0)
TARGETS = np.eye(3)[LABELS]
WIDTHS = (30, 41, 23, 3)


def a_plan(**given):
    how = {"batch_size": 12, "n_epochs": 4, "learning_rate": 0.05, "seed": 3}
    return TrainingPlan(**{**how, "optimizer": SGD(momentum=0.9), **given})


def whole_network(activation="relu", dropout=0.0):
    scaling = Scaling(X.mean(axis=0), 1 / X.std(axis=0), 2.0)
    return SparseMLP.start(
        WIDTHS,
        density=0.3,
        seed=1,
        dtype=np.float64,
        scaling=scaling,
        activation=activation,
        slope=ACTIVATIONS[activation].slope or 0.0,
        dropout=dropout,
    )


def train_split(n_ranks, n_parts, plan, network=None, **given):
    """Return the joined network and the losses, as every rank has them."""

    def work(ranks):
        if network is None:
            split = SplitNetwork.start(
                WIDTHS, n_parts, ranks, density=0.3, seed=1, dtype=np.float64, dropout=0.2
            )
        else:
            split = SplitNetwork.of(network, n_parts, ranks)
        training = SplitTraining(split, X, TARGETS, plan, **given)
        training.run()
        return split.join(), training.history.column("loss"), training.outputs(X)

    results = ThreadRanks(n_ranks).run(work)
    for other in results[1:]:
        assert other[1] == results[0][1]
        assert_array_equal(other[2], results[0][2])
    return results[0]


def matrices(network):
    return [layer.to_csr().toarray() for layer in network.layers]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("n_ranks", "n_parts"), [(1, 1), (1, 3), (2, 2), (3, 4)])
def test_without_rewiring_it_becomes_the_network_of_one_rank(activation, n_ranks, n_parts):
    network = whole_network(activation)
    expected = Training(network.copy(), TrainingData.of(X, TARGETS, np.float64), a_plan())
    expected.run()
    found, losses, outputs = train_split(n_ranks, n_parts, a_plan(), network)
    # The same products, summed in another order.
    assert_allclose(losses, expected.history.column("loss"), rtol=1e-9)
    for mine, theirs in zip(matrices(found), matrices(expected.network), strict=True):
        assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9)
    for mine, theirs in zip(found.layers, expected.network.layers, strict=True):
        assert_allclose(mine.bias, theirs.bias, rtol=1e-7, atol=1e-9)
    assert_allclose(outputs, expected.network.outputs(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("loss", ["softmax_cross_entropy", "sigmoid_cross_entropy", "huber"])
@pytest.mark.parametrize("optimizer", [SGD(momentum=0.0, weight_decay=0.01), Adam()], ids=repr)
def test_every_loss_and_optimizer_is_that_of_one_rank(loss, optimizer):
    plan = a_plan(loss=loss, optimizer=optimizer, learning_rate=0.01)
    network = whole_network()
    weights = RNG.uniform(0.5, 2.0, size=50)
    data = TrainingData.of(X, TARGETS, np.float64, weights=weights)
    expected = Training(network.copy(), data, plan)
    expected.run()
    found, losses, _ = train_split(2, 2, plan, network, weights=weights)
    assert_allclose(losses, expected.history.column("loss"), rtol=1e-7)
    for mine, theirs in zip(matrices(found), matrices(expected.network), strict=True):
        assert_allclose(mine, theirs, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "strategy", [SET(), SET(removal="relative"), RigL(every=3), GSE(every=4)], ids=repr
)
def test_the_result_depends_on_the_parts_and_not_on_the_ranks(strategy):
    plan = a_plan(evolution=strategy, n_epochs=3)
    networks = [train_split(n_ranks, 4, plan)[0] for n_ranks in (1, 2, 4)]
    start = train_split(1, 4, a_plan(n_epochs=1))[0]
    for other in networks[1:]:
        for one, two in zip(networks[0].layers, other.layers, strict=True):
            assert one.topology == two.topology
            assert_allclose(one.weights, two.weights, rtol=1e-7, atol=1e-9)
    assert networks[0].n_connections == start.n_connections
    assert networks[0].layers[1].topology != start.layers[1].topology


def test_every_rank_holds_its_share_of_the_connections():
    def work(ranks):
        return SplitNetwork.start((900, 1000, 800, 10), 4, ranks, epsilon=10, seed=0).n_connections

    counts = ThreadRanks(4).run(work)
    whole = SparseMLP.start((900, 1000, 800, 10), epsilon=10, seed=0).n_connections
    assert sum(counts) == pytest.approx(whole, rel=0.002)  # counts of blocks are rounded
    assert max(counts) < 1.1 * whole / 4


def test_first_weights_have_the_variance_of_the_whole_layer():
    widths = (2000, 3000, 2000, 10)
    split = SplitNetwork.start(widths, 5, SingleRank(), epsilon=10, seed=0).join()
    whole = SparseMLP.start(widths, epsilon=10, seed=0)
    for mine, theirs in zip(split.layers, whole.layers, strict=True):
        # Standard deviations of at least 15,000 normal deviates differ by about one per cent.
        assert mine.weights.std() == pytest.approx(theirs.weights.std(), rel=0.04)


def test_cutting_and_joining_keeps_the_network():
    network = whole_network()
    joined = SplitNetwork.of(network, 3, SingleRank()).join()
    for mine, theirs in zip(joined.layers, network.layers, strict=True):
        assert mine.topology == theirs.topology
        assert_array_equal(mine.weights, theirs.weights)


def test_narrow_layers_may_leave_parts_without_neurons(tmp_path):
    def work(ranks):
        split = SplitNetwork.start((30, 9, 2), 4, ranks, density=0.9, seed=0)
        training = SplitTraining(
            split, X, np.eye(2)[(LABELS > 0).astype(int)], a_plan(), folder=SplitFolder(tmp_path)
        )
        training.run()
        return training.history.column("loss")

    losses = ThreadRanks(2).run(work)[0]
    assert losses[-1] < losses[0]
    again = SplitFolder(tmp_path).load(SingleRank())
    assert again.widths == (30, 9, 2)


def test_groups_of_ranks_train_on_shares_of_every_minibatch():
    network, plan = whole_network(), a_plan(batch_size=10)
    expected = train_split(1, 2, plan, network)

    def work(world):
        within = _Selected(world, [world.rank // 2 * 2, world.rank // 2 * 2 + 1])
        across = _Selected(world, [world.rank % 2, world.rank % 2 + 2])
        split = SplitNetwork.of(network, 2, within)
        training = SplitTraining(split, X, TARGETS, plan, replicas=across)
        training.run()
        return split.join(), training.history.column("loss")

    results = ThreadRanks(4).run(work)
    for found, losses in results:
        # Momentum SGD is linear in the gradients, so the mean of steps is the step of the mean.
        assert_allclose(losses, expected[1], rtol=1e-9)
        for mine, theirs in zip(matrices(found), matrices(expected[0]), strict=True):
            assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9)


class _Selected:
    """Some ranks of a group of threads, as a communicator; all groups call the same methods."""

    def __init__(self, world, members):
        self.world, self.members = world, members
        self.rank, self.size = members.index(world.rank), len(members)

    def gather(self, value):
        found = self.world.gather(value)
        return [found[member] for member in self.members]

    def add(self, values):
        values[...] = np.sum(self.gather(values.copy()), axis=0)

    def share(self, values, root):
        values[...] = self.gather(values.copy())[root]

    def collect(self, values, root):
        found = self.gather(values.copy())
        if self.rank == root:
            values[...] = np.sum(found, axis=0)

    def take_first(self, values):
        self.share(values, 0)

    def from_first(self, value):
        return self.gather(value)[0]

    def failures(self, message):
        found = self.gather(message)
        return None if found == [None] * self.size else found


@pytest.mark.parametrize("strategy", [SNFS(), GuidedSET()], ids=lambda one: type(one).__name__)
def test_strategies_that_need_more_than_a_block_are_refused(strategy):
    split = SplitNetwork.of(whole_network(), 2, SingleRank())
    with pytest.raises(InvalidParameterError, match="cannot rewire a network whose parts"):
        SplitTraining(split, X, TARGETS, a_plan(evolution=strategy))


def test_ranks_with_different_settings_do_not_train():
    def work(ranks):
        split = SplitNetwork.of(whole_network(), 2, ranks)
        SplitTraining(split, X, TARGETS, a_plan(seed=ranks.rank)).run()

    with pytest.raises(InvalidParameterError, match=r"plan.seed: 0 on rank 0, 1 on rank 1"):
        ThreadRanks(2, timeout=20).run(work)


def test_more_ranks_than_parts_are_refused():
    with pytest.raises(InvalidParameterError, match="at least 2 parts"):
        ThreadRanks(2).run(lambda ranks: SplitNetwork.start((4, 4, 2), 1, ranks, density=1, seed=0))


def test_bfloat16_is_refused():
    network = SparseMLP.start((4, 4, 2), density=0.5, seed=0, dtype="bfloat16")
    with pytest.raises(InvalidInputError, match="bfloat16"):
        SplitNetwork.of(network, 2, SingleRank())


def test_the_cost_of_a_rank_falls_with_their_number():
    widths = (1000, 100_000, 100_000, 10)
    one, four = (split_cost(widths, n, epsilon=10) for n in (1, 4))
    assert four.connection_bytes == pytest.approx(one.connection_bytes / 4, rel=1e-6)
    assert one.sent_bytes == 0 < four.sent_bytes
