"""The step as the paper describes it: SciPy for the products, NumPy for the rest.

Weights are CSR matrices (inputs x outputs).  Forward and backward products are SciPy's.  Gradients
are computed for existing connections only, from their coordinates (COO); the authors wrote that
part in Cython, here it is one vectorised NumPy expression, as one usually writes it.
`ScipyNumpyBySample` adds up one sample after the other instead: less obvious, same result, and two
to three times faster, because nothing as large as (batch, connections) is ever made.

Run as a script it times any of the references on one model:

    python benchmarks/references/scipy_set.py --model a --reference "SciPy + NumPy"
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from references.base import Reference, biases_of, updated
from references.start import Array, Start


class ScipyNumpy(Reference):
    """SciPy CSR products, NumPy gradient over all connections at once."""

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        self.weights = start.matrices
        self.velocities = [np.zeros_like(matrix.data) for matrix in self.weights]
        self.biases = list(biases_of(start))
        self.bias_velocities = [np.zeros_like(bias) for bias in self.biases]
        self.coordinates = [matrix.tocoo().coords for matrix in self.weights]

    def forward(self, layer: int, a: Array) -> Array:
        """Return a W + b."""
        z: Array = a @ self.weights[layer]
        z += self.biases[layer]
        return z

    def backward(self, layer: int, a: Array, delta: Array, with_dx: bool) -> Any:
        """Compute gradients where there are connections, and update."""
        weights = self.weights[layer]
        dx = delta @ weights.T if with_dx else None
        gradient = self.gradient(a, delta, *self.coordinates[layer])
        rule = (self.hyper.lr, self.hyper.momentum)
        updated(weights.data, self.velocities[layer], gradient, *rule, self.hyper.decay)
        updated(self.biases[layer], self.bias_velocities[layer], delta.sum(axis=0), *rule, 0.0)
        return dx

    def gradient(self, a: Array, delta: Array, inputs: Any, outputs: Any) -> Array:
        """Return the gradient of every connection."""
        return np.einsum("bk,bk->k", a[:, inputs], delta[:, outputs])


class ScipyNumpyBySample(ScipyNumpy):
    """The same with the gradient summed up sample by sample."""

    def gradient(self, a: Array, delta: Array, inputs: Any, outputs: Any) -> Array:
        """Return the gradient of every connection."""
        total = np.zeros(inputs.size, dtype=np.float32)
        for a_b, delta_b in zip(a, delta, strict=True):
            total += a_b.take(inputs) * delta_b.take(outputs)
        return total


def main() -> None:
    """Time references on one model and print a table."""
    from common.machine import MachineState, describe
    from common.models import SHAPES, chosen
    from common.tables import markdown, parser, write_json

    from references import REFERENCES
    from references.measure import measure_fresh

    arguments = parser(
        "Time one training step of other implementations (and of ratoon) on one model.",
        "  scipy_set.py --model a\n"
        '  scipy_set.py --model b --reference "SciPy + numba" --threads 2\n',
    )
    arguments.add_argument("--model", default="a", help=f"one of {', '.join(SHAPES)}")
    arguments.add_argument("--reference", help=f"one of {', '.join(REFERENCES)}; default: all")
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--budget", type=float, default=5.0, help="seconds per reference")
    given = arguments.parse_args()
    [model] = chosen(given.model, SHAPES)
    rows = []
    with MachineState() as machine:
        for name in [given.reference] if given.reference else REFERENCES:
            found = measure_fresh(name, model, n_threads=given.threads, budget_s=given.budget)
            rows.append({"reference": name, **found})
    keys = ("step_ms", "step_cpu_ms", "hidden_ms", "step_rss_mb", "skipped")
    print(markdown([{k: row.get(k) for k in ("reference", *keys)} for row in rows]))
    print("\n" + describe(machine.facts()))
    write_json(given.json, {"machine": machine.facts(), "model": model.to_dict(), "rows": rows})


if __name__ == "__main__":
    main()
