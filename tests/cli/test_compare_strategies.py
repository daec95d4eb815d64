"""`ratoon compare-strategies` sets all ways of rewiring side by side."""

import json

import pytest

from ratoon.evolution import STRATEGIES

QUICK = ("--epochs", "3", "--hidden", "20", "--splits", "2")


def test_every_strategy_that_needs_no_strengths_has_a_line(ratoon, table):
    done = ratoon("compare-strategies", table, "--label", "outcome", *QUICK, "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert {line["strategy"] for line in found["strategies"]} >= set(STRATEGIES) - {"guided_set"}
    assert (found["samples"], found["features"], found["classes"]) == (60, 12, 2)
    for line in found["strategies"]:
        assert 0.0 <= line["accuracy"] <= 1.0
        assert 0.0 < line["explored"] <= 1.0
        assert line["array_bytes"] > 12 * 20
    by_name = {line["strategy"]: line for line in found["strategies"]}
    assert by_name["set"]["n_rewirings"] == 2
    assert by_name["set"]["seconds_per_rewiring"] > 0
    assert by_name["static"]["gain"] is None
    assert by_name["static"]["seconds_per_rewiring"] is None


def test_digits_are_known_by_name_and_can_be_drawn(ratoon, tmp_path):
    picture = tmp_path / "digits.svg"
    done = ratoon(
        "compare-strategies", "digits", *QUICK[:4], "--splits", "1",
        "--strategies", "static,set", "--plot", picture,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "64-20-10" in done.out
    assert "set" in done.out
    assert "rigl" not in done.out
    assert picture.read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("digits", "--strategies", "static,sett"), "no strategy 'sett'"),
        (("digits", "--plot", "out.xyz"), "must end in .png"),
        (("nowhere.csv",), "no such file"),
        (("digits", "--hidden", "many"), "whole numbers"),
    ],
)
def test_a_wrong_wish_is_told_before_anything_is_trained(ratoon, options, said):
    done = ratoon("compare-strategies", *options)
    assert done.code == 1
    assert said in done.err
    assert "split 1" not in done.err
