"""An MLP and a small CNN in PyTorch on digits: dense, fixed topology, SET, RigL.

The models and the loop are those of `examples/torch_digits.py`.  Accuracy is of the last epoch, on
test rows that decide nothing; seconds are processor time of one thread per epoch.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from common.machine import MachineState
from common.tables import markdown, parser, write_json

from ratoon.evolution import SET, RigL, Static

EXAMPLES = """\
  torch_digits.py --json results/torch-digits.json
  torch_digits.py --models MLP --seeds 10
"""
EXAMPLE = Path(__file__).parents[1] / "examples" / "torch_digits.py"
METHODS = {
    "dense": None,
    "fixed topology": Static(),
    "SET": SET(until=0.8, anneal="cosine"),
    "RigL": RigL(every=30),
}


def main() -> None:
    """Measure and print."""
    options = parser(__doc__ or "", EXAMPLES)
    options.add_argument("--models", default="MLP,CNN")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--epochs", type=int, default=15)
    given = options.parse_args()
    example = runpy.run_path(str(EXAMPLE))
    train = example["train"]
    train.__globals__["EPOCHS"] = given.epochs
    rows: list[dict[str, Any]] = []
    with MachineState() as machine:
        for model in given.models.split(","):
            for method, strategy in METHODS.items():
                runs = [
                    train(example[f"make_{model.lower()}"], strategy, seed)
                    for seed in range(given.seeds)
                ]
                weights, right, seconds = zip(*runs, strict=True)
                rows.append(
                    {
                        "model": model,
                        "method": method,
                        "weights": round(mean(weights)),
                        "accuracy %": round(100 * mean(right), 1),
                        "deviation": round(100 * stdev(right), 1) if len(right) > 1 else None,
                        "s per epoch": min(seconds),
                    }
                )
    print(markdown(rows))
    write_json(given.json, {"seeds": given.seeds, "rows": rows, "machine": machine.facts()})


if __name__ == "__main__":
    main()
