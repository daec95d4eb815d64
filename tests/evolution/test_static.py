"""Static: nothing ever changes."""

from ratoon.evolution import Clock, Static
from tests.evolution.cases import CLOCK, network


def test_static_is_never_due():
    schedule = Static().schedule
    assert all(not schedule.due_steps(Clock(10 * e, 10, 100), 10 * e + 10) for e in range(10))


def test_rewiring_a_static_network_leaves_every_connection_in_its_slot():
    layers = network()
    for layer, rewiring in zip(layers, Static().rewire(layers, CLOCK, 0), strict=True):
        assert rewiring.topology == layer.topology
        assert rewiring.n_grown == 0
        assert (rewiring.carry_weights(layer.weights) == layer.weights).all()
