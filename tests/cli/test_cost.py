"""`ratoon plan` and `ratoon bench`: memory and time, before and while training."""

import json

import pytest


def test_the_million_neuron_network_is_planned_without_being_built(ratoon):
    arguments = ["plan", "54675", "--samples", "1397", "--outputs", "18", "--epsilon", "10"]
    outcome = ratoon(*arguments, "--hidden", "500000,500000", "--batch-size", "5", "--json")
    plan = json.loads(outcome.out)
    assert plan["widths"] == [54675, 500000, 500000, 18]
    # 5,546,750 + 10,000,000 + 5,000,180
    assert plan["n_connections"] == sum(plan["connections"]) == 20_546_930
    assert plan["peak_bytes"] < 1.2e9
    assert plan["seconds_per_epoch"] > 0


def test_a_plan_reads_well(ratoon):
    outcome = ratoon("plan", "1000", "--hidden", "300", "--density", "0.1", "--threads", "1")
    assert "1,000 -> 300 -> 2" in outcome.out
    assert "peak" in outcome.out
    assert "1 thread" in outcome.out


@pytest.mark.parametrize(
    "wrong", [["--hidden", "x"], ["--preset", "x"], ["--epsilon", "-1"], ["--density", "2"]]
)
def test_an_impossible_plan_is_refused(ratoon, wrong):
    outcome = ratoon("plan", "100", *wrong)
    assert (outcome.code, "Traceback" in outcome.err) == (1, False)


def test_bench_measures_the_given_model(ratoon):
    outcome = ratoon("bench", "--models", "b", "--steps", "1", "--repeats", "1", "--json")
    figures = json.loads(outcome.out)
    assert set(figures) == {"isa", "threads", "load", "models"}
    [b] = figures["models"]
    assert (b["model"], b["connections"], b["batch"]) == ("b", 410_400, 5)
    assert min(b["step_ms"], b["rewire_ms"], b["ns_per_connection"]) > 0


def test_bench_prints_a_table_that_fits(ratoon):
    outcome = ratoon("bench", "--models", "d", "--steps", "1", "--repeats", "1")
    assert "GLI-85" in outcome.out
    assert "462,830" in outcome.out
    assert max(len(line) for line in outcome.out.splitlines()) <= 80


def test_bench_knows_its_models(ratoon):
    outcome = ratoon("bench", "--models", "b,z")
    assert (outcome.code, "--models must be among a, b, c, d, f; got z." in outcome.err) == (
        1,
        True,
    )
