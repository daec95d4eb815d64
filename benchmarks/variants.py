"""What every option costs: seconds per 20,000 samples, one option changed at a time.

784-1568-1568-1568-10 at 1 % density, minibatches of 32, one thread, CPU time.  The plain network
has ReLU, softmax with cross-entropy, momentum, float32 and dense float32 samples.  It is measured
in turns with every variant, so ``times`` compares the same seconds of the machine.  Rewiring by
each strategy is timed by itself: the seconds of one, and its share of an epoch of 20,000 samples
with one rewiring.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from common.machine import MachineState
from common.tables import markdown, parser, write_json
from strategies import BUSY, MeasuredTraining

from ratoon.activations import ACTIVATIONS
from ratoon.evolution import STRATEGIES, Static
from ratoon.kernels import Rule, Step, as_samples
from ratoon.losses import LOSSES
from ratoon.network import SparseMLP
from ratoon.samples.in_memory import wrap
from ratoon.training import Training, TrainingData, TrainingPlan

EXAMPLES = """\
  variants.py --json variants.json
  variants.py --batch 128 --only activation,dropout
  variants.py --only strategy --strategies rigl,snfs
"""
WIDTHS = (784, 1568, 1568, 1568, 10)
SAMPLES = 20_000  # figures are for so many
STATES = {Rule.SGD: 0, Rule.ADAM: 2}
STEP = Step(lr=1e-4, mu=0.9, beta2=0.999, adam_eps=1e-8)


@dataclass(frozen=True)
class Variant:
    """One network and one kind of samples."""

    group: str = "plain"
    name: str = "ReLU, softmax, momentum, float32"
    network: dict[str, Any] = field(default_factory=dict)
    loss: str = "softmax_cross_entropy"
    rule: Rule = Rule.MOMENTUM
    samples: str = "float32"
    classes: int = 10


def variants() -> list[Variant]:
    """Return every option, one changed at a time."""
    plain = Variant()
    made = [plain]
    for name, row in ACTIVATIONS.items():
        if name != "relu":
            changed = {"activation": name, "slope": row.slope}
            made.append(replace(plain, group="activation", name=name, network=changed))
    made += [
        replace(plain, group="dropout", name=f"dropout {rate}", network={"dropout": rate})
        for rate in (0.2, 0.5)
    ]
    made += [
        replace(plain, group="loss", name=name, loss=name) for name in LOSSES if name != plain.loss
    ]
    made += [replace(plain, group="loss", name=f"softmax, {n} classes", classes=n) for n in (100,)]
    made += [
        replace(plain, group="optimizer", name=rule.name.lower(), rule=rule)
        for rule in Rule
        if rule not in (Rule.STORE, Rule.MOMENTUM)
    ]
    made += [
        replace(plain, group="dtype", name=name, network={"dtype": name})
        for name in ("float64", "bfloat16")
    ]
    kinds = ("float64", "uint8", "int16", "CSR, 19 % non-zero", "CSR, 1 % non-zero")
    made += [replace(plain, group="X", name=name, samples=name) for name in kinds]
    return made


def samples_of(kind: str, n: int) -> Any:
    """Return random samples of a kind: of images' size and sparsity."""
    rng = np.random.default_rng(0)
    x = rng.integers(1, 255, size=(n, WIDTHS[0]))
    if kind.startswith("CSR"):
        share = 0.19 if "19" in kind else 0.01
        return sp.csr_array((x * (rng.random(x.shape) < share)).astype(np.float32) / 255)
    return x.astype(kind) if "int" in kind else (x / 255).astype(kind)


def epoch_of(variant: Variant, batch: int, n: int) -> Callable[[], Any]:
    """Return a function that trains one epoch of ``n`` samples."""
    widths = (*WIDTHS[:-1], variant.classes)
    network = SparseMLP.start(widths, density=0.01, seed=0, **variant.network)
    for layer in network.layers:
        size = STATES.get(variant.rule, 1)
        layer.state = [np.zeros(layer.n_connections, dtype=layer.bias.dtype) for _ in range(size)]
        layer.bias_state = [np.zeros_like(layer.bias) for _ in range(size)]
    labels = np.random.default_rng(1).integers(0, variant.classes, n)
    targets = np.eye(variant.classes, dtype=network.dtype)[labels]
    samples = as_samples(wrap(samples_of(variant.samples, n)), network.dtype)
    native, order = network.native(variant.loss, 1), np.arange(n)
    steps = [STEP] * -(-n // batch)
    return lambda: native.train(samples, targets, order, batch, variant.rule, steps, dropout_seed=1)


def cpu_of(work: Callable[[], Any]) -> float:
    """Return the CPU time of one run."""
    started = time.process_time()
    work()
    return time.process_time() - started


def measure(variant: Variant, plain: Callable[[], Any], given: argparse.Namespace) -> Any:
    """Return the line of a variant, measured in turns with the plain network."""
    work = epoch_of(variant, given.batch, given.samples)
    work()
    own, other = float("inf"), float("inf")
    for _ in range(given.rounds):
        own, other = min(own, cpu_of(work)), min(other, cpu_of(plain))
    scale = SAMPLES / given.samples
    return {
        "option": variant.group,
        "variant": variant.name,
        "seconds": own * scale,
        "plain, s": other * scale,
        "times": own / other,
    }


def rewiring(name: str, plain: Callable[[], Any], given: argparse.Namespace) -> Any:
    """Return the line of a strategy: a rewiring as a share of an epoch without."""
    n = given.samples
    network = SparseMLP.start(WIDTHS, density=0.01, seed=0)
    labels = np.random.default_rng(1).integers(0, 10, n)
    data = TrainingData.of(
        samples_of("float32", n), np.eye(10, dtype=np.float32)[labels], np.float32
    )
    plan = {"learning_rate": 1e-3, "batch_size": given.batch}
    Training(network, data, TrainingPlan(n_epochs=1, evolution=Static(), **plan)).run()
    strategy = STRATEGIES[name](**BUSY.get(name, {}))
    training = MeasuredTraining(network, data, TrainingPlan(n_epochs=4, evolution=strategy, **plan))
    training.run()
    epoch = min(cpu_of(plain) for _ in range(given.rounds)) * SAMPLES / n
    taken = training.timing.cpu_s if training.timing.walls else 0.0
    watched = sum(training.watching.cpus) / len(training.watching.cpus or [1])
    return {
        "option": "strategy",
        "variant": name,
        "seconds": taken + watched,
        "plain, s": epoch,
        "times": 1 + (taken + watched) / epoch,
    }


def main() -> None:
    """Measure and print one line per option."""
    options = parser(__doc__ or "", EXAMPLES)
    options.add_argument("--batch", type=int, default=32)
    options.add_argument("--samples", type=int, default=2048, help="per run")
    options.add_argument("--rounds", type=int, default=8)
    options.add_argument("--only", metavar="OPTIONS", help="activation, dropout, loss, ...")
    options.add_argument("--strategies", default=",".join(STRATEGIES))
    given = options.parse_args()
    chosen = None if given.only is None else given.only.split(",")
    rows = []
    with MachineState() as machine:
        plain = epoch_of(Variant(), given.batch, given.samples)
        plain()
        for variant in variants():
            if chosen is None or variant.group in chosen:
                rows.append(measure(variant, plain, given))
                print(markdown(rows[-1:]).splitlines()[-1], flush=True)
        if chosen is None or "strategy" in chosen:
            for name in given.strategies.split(","):
                rows.append(rewiring(name, plain, given))
                print(markdown(rows[-1:]).splitlines()[-1], flush=True)
    print("\n" + markdown(rows))
    write_json(given.json, {"batch": given.batch, "rows": rows, "machine": machine.facts()})


if __name__ == "__main__":
    main()
