"""Ratoon compared with other libraries that train such a network on a CPU, in one run.

Milliseconds per training step (forward, backward, momentum update) and peak memory, on the paper's
models, on a batch of 128, and on the 3072-1024-512-10 networks peers report on; then the growth of
both with the number of connections, as a picture with the memory-bandwidth roofline drawn in.

All start from the same weights, see the same minibatches and have the same loss; what cannot be
run stays in the table with the reason.  `make bench-peers` makes an environment with all of them
and runs this.  Figures are kept one by one: with `--resume` a run continues an earlier one.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from common.growth_plot import draw
from common.isolate import run_fresh
from common.machine import MachineState
from common.models import SHAPES, Model, chosen
from common.tables import markdown, parser, rounded, write_json
from references import REFERENCES
from references.measure import measure_fresh
from scaling import network_of

EXAMPLES = """\
  peers.py --json peers.json --plot peers.svg      an hour or so
  peers.py --json peers.json --resume --minutes 5  the next five minutes of it
  peers.py --models a,cifar90 --no-growth --budget 2 --rounds 3
  peers.py --models b --max-connections 1e6        a quick look at everything
"""
GROWTH = tuple(name for name in REFERENCES if name != "scikit-learn MLPClassifier")
OURS = "ratoon"


class Record:
    """The figures so far, in a file after every one of them."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.path, self.content = given.json, {"models": {}, "growth": {}}
        if given.resume and given.json and Path(given.json).exists():
            self.content = json.loads(Path(given.json).read_text())
            if self.content["threads"] != given.threads:
                raise SystemExit(f"{given.json} is of {self.content['threads']} thread(s).")
        self.content |= {
            "threads": given.threads,
            "compared_by": "CPU time" if given.threads == 1 else "wall time",
            "growth_batch": 5,
        }
        self._ends = time.monotonic() + 60 * given.minutes
        self.is_new = False

    @property
    def has_time(self) -> bool:
        """Whether another measurement may begin."""
        return time.monotonic() < self._ends

    def save(self) -> None:
        """Write what there is, something new."""
        self.is_new = True
        self.content["best_other"] = best_others(self.content["models"])
        write_json(self.path, self.content)


def measure_models(given: argparse.Namespace, record: Record) -> None:
    """Measure every reference on every model, as far as that has not been done.

    In every round each has a process of its own, one after the other; the quickest counts.
    """
    for model in chosen(given.models, SHAPES):
        rows = record.content["models"].setdefault(model.name, {})
        for number in range(given.rounds):
            for name in given.references.split(","):
                if n_rounds(rows.get(name)) == number and record.has_time:
                    found = measure_one(name, model, given)
                    print(f"{model.name}: " + said({name: found}), flush=True)
                    rows[name] = better_of(rows.get(name), found)
                    record.save()


def n_rounds(row: dict[str, Any] | None) -> int | None:
    """Return in how many rounds a reference was measured; None if it cannot be."""
    if row is None:
        return 0
    return len(row["seconds_by_round"]) if "seconds_by_round" in row else None


def better_of(before: dict[str, Any] | None, found: dict[str, Any]) -> dict[str, Any]:
    """Return the quicker of two measurements, with the seconds of both.

    >>> better_of({"seconds": 2.0, "seconds_by_round": [2.0]}, {"seconds": 3.0})
    {'seconds': 2.0, 'seconds_by_round': [2.0, 3.0]}
    """
    if "seconds" not in found:
        return before or found
    rounds = (before["seconds_by_round"] if before else []) + [found["seconds"]]
    better = before if before and before["seconds"] <= found["seconds"] else found
    return {**better, "seconds_by_round": rounds}


def measure_one(name: str, model: Model, given: argparse.Namespace) -> dict[str, Any]:
    """Measure one reference on one model; ``seconds`` is the figure to compare."""
    with MachineState() as machine:
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
        facts = machine.facts()
        found["others_cores"], found["commit"] = facts["load"]["others_cores"], facts["commit"]
    return found


def said(by_name: dict[str, Any]) -> str:
    """Return one line about a model, as it goes."""
    return ", ".join(
        f"{name} {1e3 * row['seconds']:.3g} ms"
        if "seconds" in row
        else f"{name} ({row['skipped']})"
        for name, row in by_name.items()
    )


def measure_growth(given: argparse.Namespace, record: Record) -> None:
    """Grow a network until it is too slow, too large or as large as asked for."""
    for name in GROWTH:
        if name not in given.references.split(","):
            continue
        most = given.max_connections if name == OURS else given.peers_max_connections
        points = record.content["growth"].setdefault(name, [])
        neurons = given.min_connections / 20
        for number in range(1000):
            over = points and (
                "skipped" in points[-1] or points[-1]["seconds"] * given.factor > given.slow
            )
            if 20 * neurons > most * 1.0001 or (number >= len(points) and over):
                break
            if number >= len(points):
                if not record.has_time:
                    return
                model = network_of(round(neurons), 10.0, 5)
                point = measure_one(name, model, given)
                points.append({"connections": model.connections, **point})
                print(f"{model.connections:,} connections: " + said({name: point}), flush=True)
                record.save()
            neurons *= given.factor


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
    names = [name for name in REFERENCES if any(name in rows for rows in models.values())]
    return [
        {"": name, **{m: cell(models[m].get(name), key, factor) for m in models}} for name in names
    ]


def cell(row: dict[str, Any] | None, key: str, factor: float) -> Any:
    """Return a figure, the reason why it is missing, or nothing."""
    if row is None:
        return None
    return factor * row[key] if key in row else row.get("skipped")


def report(content: dict[str, Any]) -> str:
    """Return everything as Markdown."""
    models = {name: content["models"][name] for name in SHAPES if content["models"].get(name)}
    speed = content.get("roofline", {}).get("stream_gb_s", 0)
    best = [
        {"model": name, **content["best_other"][name]}
        for name in models
        if name in content["best_other"]
    ]
    return "\n\n".join(
        [
            f"Milliseconds per step, {content['threads']} thread(s), {content['compared_by']}:",
            markdown(table(models, "seconds", 1e3)),
            "Peak memory, MB:",
            markdown(table(models, "step_rss_mb", 1.0)),
            "The fastest of the others:",
            markdown(best),
            f"Memory: {speed:.1f} GB/s. {content['machine']['cpu']}. " + circumstances(content),
        ]
    )


def circumstances(content: dict[str, Any]) -> str:
    """Say how busy the machine was over all figures, and which versions were measured.

    Figures may come from several runs, so the state of the last one says little.
    """
    rows = [row for by_name in content["models"].values() for row in by_name.values()]
    rows += [row for points in content["growth"].values() for row in points]
    busy = [row["others_cores"] for row in rows if row.get("others_cores") is not None]
    commits = sorted({row["commit"] for row in rows if "commit" in row})
    text = f"Other processes kept {min(busy)} to {max(busy)} cores busy" if busy else ""
    return f"{text}; commits {', '.join(commits) or 'not noted'}."


def main() -> None:
    """Measure, print tables, write JSON, draw."""
    arguments = parser(__doc__ or "", EXAMPLES)
    add = arguments.add_argument
    add("--models", default=",".join(SHAPES), help=f"of {','.join(SHAPES)}")
    add("--references", default=",".join(REFERENCES), help="names as in the table, in commas")
    add("--threads", type=int, default=1)
    add("--budget", type=float, default=8.0, help="seconds per measurement")
    add("--rounds", type=int, default=1, help="processes per measurement; the quickest counts")
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
    add("--markdown", metavar="OUT", help="write the tables to this file as well")
    add("--resume", action="store_true", help="continue with the figures of the JSON file")
    add("--minutes", type=float, default=1e6, help="begin no measurement after so many")
    given = arguments.parse_args()
    record = Record(given)
    content = record.content
    with MachineState() as machine:
        if "roofline" not in content:
            content["roofline"] = run_fresh(
                "common.roofline:measure",
                n_threads=given.threads,
                threads=given.threads,
                elements=int(given.stream_elements),
            )
        measure_models(given, record)
        if not given.no_growth:
            measure_growth(given, record)
    if record.is_new or "machine" not in content:
        content["machine"] = machine.facts()
        record.save()
    said_at_end = report(rounded(content))
    print("\n" + said_at_end)
    if given.markdown:
        Path(given.markdown).write_text(said_at_end + "\n")
    if given.plot and any(content["growth"].values()):
        draw(content, given.plot)


if __name__ == "__main__":
    main()
