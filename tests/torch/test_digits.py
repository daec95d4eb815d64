"""The example on digits: a custom model stays accurate when it is made sparse and rewired."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from ratoon.evolution import SET, RigL  # noqa: E402

EXAMPLE = Path(__file__).parents[2] / "examples" / "torch_digits.py"


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not here")
@pytest.mark.parametrize(
    ("make_model", "strategy", "epochs"),
    [("make_mlp", SET(until=0.8, anneal="cosine"), 3), ("make_cnn", RigL(every=10), 2)],
    ids=["mlp", "cnn"],
)
def test_two_percent_of_the_weights_classify_digits(make_model, strategy, epochs):
    example = runpy.run_path(str(EXAMPLE))
    example["train"].__globals__["EPOCHS"] = epochs

    n_weights, accuracy, _ = example["train"](example[make_model], strategy, seed=0)

    dense = sum(p.numel() for p in example[make_model]().parameters())
    assert n_weights < 0.05 * dense
    assert accuracy > 0.7  # guessing gives 0.1; the example, which trains longer, 0.97
