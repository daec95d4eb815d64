"""`ratoon plan`: memory and time of a network before anything is allocated."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from ratoon.cli.output import console, print_json
from ratoon.cli.samples import JsonOption, widths_from


def plan(
    features: Annotated[int, typer.Argument(min=1, help="Features of a sample.")],
    samples: Annotated[int, typer.Option(min=1, help="Samples to train on.")] = 1000,
    outputs: Annotated[int, typer.Option(min=1, help="Classes or targets.")] = 2,
    hidden: Annotated[str | None, typer.Option(help="Hidden widths, as in 3000,3000.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="About epsilon * (inputs + outputs) connections.")
    ] = None,
    density: Annotated[
        float | None, typer.Option(help="Or fraction of possible connections.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Samples per step.")] = None,
    preset: Annotated[str | None, typer.Option(help="paper, fast or large.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads to plan for.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell memory and seconds per epoch before anything is allocated.

    For example, the paper's million-neuron network:

      ratoon plan 54675 --samples 1397 --outputs 18 --hidden 500000,500000
    """
    from ratoon import SparseMLPClassifier

    given = {
        "hidden_layer_sizes": widths_from(hidden),
        "epsilon": epsilon,
        "density": density,
        "batch_size": batch_size,
        "preset": preset,
        "n_jobs": threads,
    }
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    planned = SparseMLPClassifier(**options).plan(features, n_samples=samples, n_outputs=outputs)
    show_plan(planned, as_json=as_json)


def show_plan(planned: Any, *, as_json: bool) -> None:
    """Print a plan."""
    if as_json:
        totals = {
            "n_connections": planned.n_connections,
            "peak_bytes": planned.peak_bytes,
            "seconds": planned.seconds,
        }
        print_json({**asdict(planned), **totals})
    else:
        console.print(str(planned), highlight=False, markup=False, soft_wrap=True)
