"""The networks that are measured: the paper's, and shapes that peers use.

Reference figures of the paper's models: seconds per epoch in the paper (i7-4700MQ, one
thread), and those of the C++ prototype the kernels were designed from (AMD EPYC Zen 3, training
without rewiring; CPU time on one thread, wall time on two).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any


@dataclass(frozen=True)
class Model:
    """A network, its minibatches, and what is known about its speed."""

    name: str
    widths: tuple[int, ...]
    batch: int
    n_train: int = 0
    n_test: int = 0
    learning_rate: float = 0.01
    epsilon: float | None = 10.0
    density: float | None = None
    title: str = ""
    paper_s: float | None = None
    prototype_s: tuple[float, float] | None = None  # on one thread, on two
    target_s: float | None = None  # train + rewire, one thread

    @property
    def minibatches(self) -> int:
        """Per epoch; the last one may be short."""
        return -(-self.n_train // self.batch)

    @property
    def n_neurons(self) -> int:
        """Counted as the paper does: inputs and outputs included."""
        return sum(self.widths)

    @property
    def dense_bytes(self) -> int:
        """Bytes of one dense float32 copy of all weights."""
        return 4 * sum(n_in * n_out for n_in, n_out in pairwise(self.widths))

    @property
    def connections(self) -> int:
        """How many connections the network starts with."""
        if self.density is not None:
            return sum(round(self.density * i * o) for i, o in pairwise(self.widths))
        assert self.epsilon is not None
        return sum(min(i * o, round(self.epsilon * (i + o))) for i, o in pairwise(self.widths))

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can carry to a fresh process."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Model:
        """Return the model of such a dictionary."""
        pair = values.get("prototype_s")
        return cls(
            **{
                **values,
                "widths": tuple(values["widths"]),
                "prototype_s": tuple(pair) if pair else None,
            }
        )


LEUKEMIA = {"n_train": 1397, "n_test": 699}

PAPER = {
    model.name: model
    for model in (
        Model("a", (54675, 27500, 27500, 18), 5, **LEUKEMIA, learning_rate=0.005,
              title="Leukemia", paper_s=61.31, prototype_s=(1.15, 0.61), target_s=1.4),
        Model("b", (11340, 9000, 9000, 3), 5, 74, 37, 0.01,
              title="CLL-SUB-111", paper_s=6.65, prototype_s=(0.0150, 0.0083), target_s=0.020),
        Model("c", (19993, 16000, 16000, 2), 5, 124, 63, 0.005,
              title="SMK-CAN-187", paper_s=27.17, prototype_s=(0.045, 0.024), target_s=0.060),
        Model("d", (22283, 20000, 2), 1, 56, 29, 0.005,
              title="GLI-85", paper_s=32.87, prototype_s=(0.038, 0.021), target_s=0.050),
        Model("e", (54675, 500_000, 500_000, 18), 5, **LEUKEMIA, learning_rate=0.05,
              title="a million neurons", paper_s=983.0, prototype_s=(26.7, 14.4), target_s=31.0),
        Model("f", (54675, 1000, 1000, 18), 5, **LEUKEMIA, learning_rate=0.05,
              title="small", paper_s=13.0, prototype_s=(0.32, 0.17), target_s=0.40),
    )
}  # fmt: skip

SHAPES = {
    **PAPER,
    "a128": Model("a128", PAPER["a"].widths, 128, **LEUKEMIA, title="Leukemia, batch 128"),
    **{
        f"cifar{sparsity}": Model(
            f"cifar{sparsity}",
            (3072, 1024, 512, 10),
            100,
            1000,
            1000,
            epsilon=None,
            density=round(1 - sparsity / 100, 2),
            title=f"3072-1024-512-10, {sparsity} % sparse, batch 100",
        )
        for sparsity in (90, 95, 99)
    },
    # Large minibatches: wide1-128 has 1 % of the connections and minibatches of 128.
    **{
        f"wide{percent}-{batch}": Model(
            f"wide{percent}-{batch}",
            (784, 1568, 1568, 1568, 10),
            batch,
            4096,
            epsilon=None,
            density=percent / 100,
            title=f"784-1568-1568-1568-10, {percent} %, batch {batch}",
        )
        for percent in (1, 5, 20)
        for batch in (32, 128, 512)
    },
}


def square(n: int, *, batch: int = 5, n_outputs: int = 10, epsilon: float = 10.0) -> Model:
    """Return n inputs, two hidden layers of n and a few outputs: about 4 n epsilon connections.

    >>> square(1000).connections
    50000
    """
    return Model(f"square{n}", (n, n, n, n_outputs), batch, epsilon=epsilon)


def chosen(names: str, models: dict[str, Model]) -> list[Model]:
    """Read ``a,b`` as a list of models; for argparse."""
    unknown = [name for name in names.split(",") if name not in models]
    if unknown:
        raise SystemExit(f"unknown model {', '.join(unknown)}; there are {', '.join(models)}")
    return [models[name] for name in names.split(",")]
