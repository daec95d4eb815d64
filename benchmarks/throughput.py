"""GFlop/s of the kernels per pass, density and batch, as a share of the measured limit.

One layer of n x n by itself, each pass in a call of its own, and whole training steps of
784-n-n-n-10.  A multiply-add counts as two operations; the minimum of CPU time over repeats, one
thread.  With `--reference` another build is measured in turns with this one, each in its process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

EXAMPLES = """\
  throughput.py --json throughput.json
  throughput.py --reference ../other/src            a folder with a compiled package `ratoon`
  throughput.py --densities 1 --batches 128 --dtype float64
"""
PASSES = ("forward", "weight_gradient", "both_gradients", "train", "predict")
DEPTH = 3  # hidden layers of the whole network


class Work:
    """The passes of one density and batch, each with its number of operations."""

    def __init__(self, width: int, density: float, batch: int, dtype: str, threads: int) -> None:
        from ratoon import kernels
        from ratoon.kernels import Rule
        from ratoon.kernels.linear import padded
        from ratoon.network import SparseMLP

        rng = np.random.default_rng(0)
        layer = SparseMLP.start((width, width), seed=0, density=density, dtype=dtype).layers[0]
        x, dy = (padded(rng.normal(size=(width, batch)).astype(dtype)) for _ in range(2))
        gradient = np.empty_like(layer.stored)

        def backward(*, with_dx: bool) -> None:
            kernels.backward(
                layer.topology,
                Rule.STORE,
                layer.stored,
                x,
                dy,
                first=gradient,
                with_dx=with_dx,
                n_threads=threads,
            )

        product = 2.0 * layer.n_connections * batch
        self.passes: dict[str, tuple[Callable[[], Any], float]] = {
            "forward": (
                lambda: kernels.forward(
                    layer.topology, layer.stored, layer.bias, x, n_threads=threads
                ),
                product,
            ),
            "weight_gradient": (lambda: backward(with_dx=False), product),
            "both_gradients": (lambda: backward(with_dx=True), 2 * product),
        }
        self._add_network(width, density, batch, dtype, threads, rng)

    def _add_network(
        self,
        width: int,
        density: float,
        batch: int,
        dtype: str,
        threads: int,
        rng: np.random.Generator,
    ) -> None:
        from ratoon.kernels import Rule, Step, as_samples
        from ratoon.network import SparseMLP
        from ratoon.samples.in_memory import wrap

        widths = (784, *[width] * DEPTH, 10)
        network = SparseMLP.start(widths, seed=0, density=density, dtype=dtype)
        for layer in network.layers:
            layer.state = [np.zeros_like(layer.stored)]
            layer.bias_state = [np.zeros_like(layer.bias)]
        n = max(512, 2 * batch)
        samples = as_samples(wrap(rng.normal(size=(n, 784)).astype(dtype)), network.dtype)
        targets = np.eye(10, dtype=dtype)[rng.integers(0, 10, n)]
        native = network.native("softmax_cross_entropy", threads)
        order, steps = np.arange(n), [Step(lr=1e-4, mu=0.9)] * -(-n // batch)
        counts = [layer.n_connections for layer in network.layers]
        products = 3 * sum(counts) - counts[0]  # the first layer has no gradient of its inputs
        self.passes["train"] = (
            lambda: native.train(samples, targets, order, batch, Rule.MOMENTUM, steps),
            2.0 * products * n,
        )
        self.passes["predict"] = (lambda: native.predict(samples), 2.0 * sum(counts) * n)


def serve() -> None:
    """Answer lines of (case, pass, seconds to spend) with GFlop/s, until the input ends."""
    works: dict[str, Work] = {}
    for line in sys.stdin:
        case, name, budget_s = json.loads(line)
        key = json.dumps(case)
        if key not in works:
            works.clear()  # one network at a time, as the caches would be shared
            works[key] = Work(**case)
        work, operations = works[key].passes[name]
        clock = time.process_time if case["threads"] == 1 else time.perf_counter
        work()
        best, spent = float("inf"), 0.0
        while spent < budget_s:
            started = clock()
            work()
            taken = clock() - started
            best, spent = min(best, taken), spent + taken
        print(json.dumps(operations / best / 1e9), flush=True)


class Build:
    """A process with one build of the kernels."""

    def __init__(self, folder: str | None = None) -> None:
        command = [sys.executable, __file__, "--serve"]
        environment = dict(os.environ)
        if folder is not None:
            # Without `site`, an editable installation does not come before the folder.
            command.insert(1, "-S")
            paths = [folder, *(path for path in sys.path if "site-packages" in path)]
            environment["PYTHONPATH"] = os.pathsep.join(paths)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def rate(self, case: dict[str, Any], name: str, budget_s: float) -> float:
        """Return GFlop/s of one pass."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([case, name, budget_s]), file=self._process.stdin, flush=True)
        return float(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def measure(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return one row per density, batch and pass."""
    from common.limits import Probe

    builds = {"now": Build()}
    if arguments.reference:
        builds["before"] = Build(arguments.reference)
    probe = None if arguments.threads > 1 or arguments.dtype != "float32" else Probe()
    rows = []
    for batch in arguments.batches:
        limit = None if probe is None else probe.best_blocks(batch, arguments.width, repeats=2)
        for percent in arguments.densities:
            case = {
                "width": arguments.width,
                "density": percent / 100,
                "batch": batch,
                "dtype": arguments.dtype,
                "threads": arguments.threads,
            }
            for name in arguments.passes:
                best = dict.fromkeys(builds, 0.0)
                for _ in range(arguments.rounds):
                    for build, process in builds.items():
                        rate = process.rate(case, name, arguments.seconds)
                        best[build] = max(best[build], rate)
                row = {"density %": percent, "batch": batch, "pass": name, **best}
                if "before" in best:
                    row["times"] = best["now"] / best["before"]
                if limit is not None:
                    row["limit"] = {
                        "forward": limit.forward,
                        "predict": limit.forward,
                        "weight_gradient": limit.weight_gradient,
                        "both_gradients": limit.both,
                        # Of 3 products one is forward and two are backward.
                        "train": 3 / (1 / limit.forward + 2 / limit.both),
                    }[name]
                    row["share"] = best["now"] / row["limit"]
                rows.append(row)
                print(json.dumps(row), file=sys.stderr, flush=True)
    for process in builds.values():
        process.close()
    return rows


def main() -> None:
    """Measure and print one line per density, batch and pass."""
    if sys.argv[1:] == ["--serve"]:
        return serve()
    sys.path.insert(0, str(Path(__file__).parent))
    from common.machine import MachineState
    from common.tables import markdown, numbers, parser, write_json

    options = parser(__doc__, EXAMPLES)
    options.add_argument("--width", type=int, default=1568)
    options.add_argument(
        "--densities", type=lambda text: [float(one) for one in text.split(",")], default=[1, 5, 20]
    )
    options.add_argument("--batches", type=numbers, default=[32, 128, 512])
    options.add_argument("--passes", type=lambda text: text.split(","), default=PASSES)
    options.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--reference", metavar="FOLDER", help="a folder with another build")
    options.add_argument("--rounds", type=int, default=3, help="turns per build")
    options.add_argument("--seconds", type=float, default=0.1, help="per turn")
    arguments = options.parse_args()
    with MachineState() as machine:
        rows = measure(arguments)
    print(markdown(rows))
    write_json(arguments.json, {"rows": rows, "machine": machine.facts()})
    return None


if __name__ == "__main__":
    main()
