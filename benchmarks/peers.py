"""Ratoon against everything else that trains such a network on a CPU, in one run.

Milliseconds per training step (forward, backward, momentum update) and peak memory, on the paper's
models, on a batch of 128, and on the 3072-1024-512-10 networks peers report on; then the growth of
both with the number of connections, as a picture with the memory-bandwidth roofline drawn in.

All start from the same weights, see the same minibatches and lose the same loss; what cannot be
tried stays in the table with the reason.  `make bench-peers` makes an environment with all of them
and runs this.
"""

from __future__ import annotations

import argparse
from typing import Any

from common.growth_plot import draw
from common.isolate import run_fresh
from common.machine import MachineState, describe
from common.models import SHAPES, Model, chosen
from common.tables import markdown, parser, write_json
from references import REFERENCES
from references.measure import measure_fresh
from scaling import network_of

EXAMPLES = """\
  peers.py --json peers.json --plot peers.svg      an hour or so
  peers.py --models a,cifar90 --no-growth --budget 2
  peers.py --models b --max-connections 1e6        a quick look at everything
"""
GROWTH = tuple(name for name in REFERENCES if name != "scikit-learn MLPClassifier")
OURS = "ratoon"


def measure_models(given: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Measure every reference on every model."""
    found: dict[str, dict[str, Any]] = {}
    for model in chosen(given.models, SHAPES):
        found[model.name] = {
            name: measure_one(name, model, given) for name in given.references.split(",")
        }
        print(f"{model.name}: " + said(found[model.name]), flush=True)
    return found


def measure_one(name: str, model: Model, given: argparse.Namespace) -> dict[str, Any]:
    """Measure one reference on one model; ``seconds`` is the figure to compare."""
    found = measure_fresh(
        name,
        model,
        n_threads=given.threads,
        budget_s=given.budget,
        limit_gb=given.limit_gb,
        timeout_s=given.timeout,
    )
    if "skipped" not in found:
        found["seconds"] = found["step_cpu_ms" if given.threads == 1 else "step_ms"] / 1e3
    return found


def said(by_name: dict[str, Any]) -> str:
    """Return one line about a model, as it goes."""
    return ", ".join(
        f"{name} {1e3 * row['seconds']:.3g} ms"
        if "seconds" in row
        else f"{name} ({row['skipped']})"
        for name, row in by_name.items()
    )


def measure_growth(given: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Grow a network until it is too slow, too large or as large as asked for."""
    growth: dict[str, list[dict[str, Any]]] = {}
    for name in GROWTH:
        if name not in given.references.split(","):
            continue
        most = given.max_connections if name == OURS else given.peers_max_connections
        points: list[dict[str, Any]] = []
        neurons = given.min_connections / 20
        while 20 * neurons <= most * 1.0001:
            model = network_of(round(neurons), 10.0, 5)
            point = measure_one(name, model, given)
            points.append({"connections": model.connections, **point})
            if "skipped" in point or point["seconds"] > given.slow:
                break
            neurons *= given.factor
        growth[name] = points
        print(f"{name}: {len(points)} sizes", flush=True)
    return growth


def best_others(models: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return for every model the fastest of the others, and how much slower it is."""
    found = {}
    for model, by_name in models.items():
        timed = {name: row["seconds"] for name, row in by_name.items() if "seconds" in row}
        ours = timed.pop(OURS, None)
        if ours is not None and timed:
            name = min(timed, key=lambda other: timed[other])
            found[model] = {"by": name, "times_slower": timed[name] / ours}
    return found


def table(models: dict[str, dict[str, Any]], key: str, factor: float) -> list[dict[str, Any]]:
    """Return lines by reference and columns by model."""
    names = list(next(iter(models.values())))
    return [
        {
            "": name,
            **{
                model: factor * by_name[name][key]
                if key in by_name[name]
                else by_name[name].get("skipped")
                for model, by_name in models.items()
            },
        }
        for name in names
    ]


def main() -> None:
    """Measure, print tables, write JSON, draw."""
    arguments = parser(__doc__ or "", EXAMPLES)
    add = arguments.add_argument
    add("--models", default=",".join(SHAPES), help=f"of {','.join(SHAPES)}")
    add("--references", default=",".join(REFERENCES), help="names as in the table, in commas")
    add("--threads", type=int, default=1)
    add("--budget", type=float, default=8.0, help="seconds per measurement")
    add("--timeout", type=float, default=600.0, help="seconds after which a measurement is ended")
    add("--limit-gb", type=float, default=8.0, help="memory that dense references may take")
    add("--no-growth", action="store_true", help="leave the growth and its picture out")
    add("--min-connections", type=float, default=1e4)
    add("--max-connections", type=float, default=1e9, help="of ratoon: 17 bytes each")
    add("--peers-max-connections", type=float, default=1e8, help="of the others")
    add("--factor", type=float, default=10**0.5, help="from one size to the next")
    add("--slow", type=float, default=20.0, help="seconds per step at which growth ends")
    add("--stream-elements", type=float, default=2e7, help="of the measured memory stream")
    add("--plot", metavar="OUT", help="picture file, such as peers.svg")
    given = arguments.parse_args()
    with MachineState() as machine:
        roofline = run_fresh(
            "common.roofline:measure",
            n_threads=given.threads,
            threads=given.threads,
            elements=int(given.stream_elements),
        )
        models = measure_models(given)
        growth = {} if given.no_growth else measure_growth(given)
    content = {
        "machine": machine.facts(),
        "threads": given.threads,
        "compared_by": "CPU time" if given.threads == 1 else "wall time",
        "roofline": roofline,
        "models": models,
        "best_other": best_others(models),
        "growth": growth,
        "growth_batch": 5,
    }
    print("\nMilliseconds per step:\n\n" + markdown(table(models, "seconds", 1e3)))
    print("\nPeak memory, MB:\n\n" + markdown(table(models, "step_rss_mb", 1.0)))
    print("\nThe fastest of the others:\n")
    print(markdown([{"model": name, **row} for name, row in content["best_other"].items()]))
    print(f"\nMemory: {roofline.get('stream_gb_s', 0):.1f} GB/s. " + describe(machine.facts()))
    write_json(given.json, content)
    if given.plot and growth:
        draw(content, given.plot)


if __name__ == "__main__":
    main()
