"""`ratoon inspect`: the contents of a model file."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from ratoon.cli.options import JsonOption, ModelFile
from ratoon.cli.samples import how_it_was_fitted, load_model, print_preparation
from ratoon.cli.select import statistics_cells
from ratoon.cli.terminal import (
    density_text,
    megabytes,
    print_json,
    print_note,
    print_table,
    require_stdout,
)
from ratoon.errors import InvalidParameterError


def inspect(
    model: ModelFile,
    top: Annotated[int, typer.Option(min=0, help="Number of strongest features to list.")] = 10,
    card: Annotated[
        bool, typer.Option("--card", help="Print a model card in Markdown instead.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a model: layers, densities, degrees, history, strongest features.

    For example:

      ratoon inspect lung.ratoon --top 20

      ratoon inspect lung.ratoon --json > lung.json

      ratoon inspect lung.ratoon --card > README.md
    """
    if card and as_json:
        raise InvalidParameterError("--card and --json exclude each other.")
    estimator = load_model(model)
    if card:
        estimator.network_.require_memory_of_inputs(64)
        require_stdout().write(estimator.card(title=model.name))
        return
    facts = describe(estimator, top)
    facts["file_bytes"] = model.stat().st_size
    if as_json:
        print_json(facts)
        return
    print_note(
        f"{facts['estimator']}, {how_it_was_fitted(estimator)};"
        f" file of {megabytes(facts['file_bytes'])}"
    )
    print_preparation(estimator)
    columns = ["layer", "connections", "requested", "density", "in degree", "out degree"]
    print_table(
        "layers",
        columns,
        [
            [
                f"{x['inputs']:,} -> {x['outputs']:,}",
                f"{x['connections']:,}",
                density_text(x["requested_density"]),
                f"{x['density']:.3g}",
                _range_text(x["input_degree"]),
                _range_text(x["output_degree"]),
            ]
            for x in facts["layers"]
        ],
        note="requested: density; degree: connections of a neuron, min/median/max",
    )
    for number, layer in enumerate(facts["layers"], start=1):
        if layer["allowed"] is not None:
            print_note(
                f"Layer {number}: connections are limited to {layer['allowed']:,} positions."
            )
    _show_history(facts["history"])
    if facts["strongest_features"]:
        rows = [
            [x["feature"], f"{x['importance']:.5f}", *statistics_cells(x)]
            for x in facts["strongest_features"]
        ]
        columns = ["feature", "importance"]
        if "fdr" in facts["strongest_features"][0]:
            columns += ["direction", "difference", facts["ranking"]["statistic"], "FDR"]
        print_table("strongest features", columns, rows, note=f"ranked {facts['ranking']['rows']}")
    if facts["groups"]:
        rows = [[x["group"], x["connections"], f"{x['importance']:.5f}"] for x in facts["groups"]]
        note = f"{facts['n_groups']} neurons of the first layer are groups of features"
        print_table("strongest groups", ["group", "connections", "importance"], rows, note=note)


def _show_history(records: list[dict[str, Any]]) -> None:
    """Print the first and the last epoch and up to four in between."""
    if len(records) < 2:
        return
    chosen = np.unique(np.linspace(0, len(records) - 1, 6).round().astype(int))
    rows = []
    for record in (records[k] for k in chosen):
        score = record["validation_score"]
        rows.append(
            [
                record["epoch"] + 1,
                f"{record['loss']:.4g}",
                "-" if score is None else f"{score:.4f}",
                f"{record['rewired']:,}",
                f"{record['train_seconds'] + record['rewire_seconds']:.3g}",
            ]
        )
    columns = ["epoch", "loss", "validation score", "rewired", "seconds"]
    print_table("history", columns, rows)


def describe(estimator: Any, top: int) -> dict[str, Any]:
    """Return the facts about a fitted estimator as plain data."""
    estimator.network_.require_memory_of_inputs(64)
    layers = []
    for layer, reported in zip(estimator.network_.layers, estimator.report_.layers, strict=True):
        inputs, outputs = layer.topology.degrees()
        layers.append(
            {
                "inputs": layer.shape[0],
                "outputs": layer.shape[1],
                "connections": layer.n_connections,
                "requested_density": reported.requested_density,
                "density": layer.topology.density,
                "allowed": None if layer.allowed is None else layer.allowed.n_connections,
                "input_degree": _spread(inputs),
                "output_degree": _spread(outputs),
            }
        )
    ranking = estimator.ranking_
    names = getattr(estimator, "feature_names_in_", None)
    strongest = ranking.order[:top]
    rows = ranking.select(strongest)
    for row, j in zip(rows, strongest, strict=True):
        del row["rank"]
        if names is None:
            row["feature"] = int(j)
    return {
        "estimator": type(estimator).__name__,
        "epochs": estimator.n_iter_,
        "loss": estimator.loss_,
        "classes": [str(c) for c in getattr(estimator, "classes_", [])],
        "preparation": [] if estimator.preparation_ is None else estimator.preparation_.describe(),
        "layers": layers,
        "ranking": {
            "rows": ranking.rows,
            "statistic": ranking.statistic_name,
            "difference": ranking.difference_name,
        },
        "strongest_features": rows,
        **_groups(estimator, top),
        "history": estimator.history_.to_rows(),
    }


def _groups(estimator: Any, top: int) -> dict[str, Any]:
    """Return the groups whose neurons are strongest: weights in, times strength of weights out."""
    from ratoon.explain import relative_strength
    from ratoon.explain.ranking import neuron_strength

    names = getattr(estimator, "group_names_", ())
    if len(names) == 0:
        return {"n_groups": 0, "groups": []}
    strength = relative_strength(neuron_strength(estimator.network_))[: len(names)]
    degrees = estimator.network_.layers[0].topology.degrees()[1]
    return {
        "n_groups": len(names),
        "groups": [
            {
                "group": str(names[j]),
                "connections": int(degrees[j]),
                "importance": float(strength[j]),
            }
            for j in np.argsort(-strength, kind="stable")[:top].tolist()
        ],
    }


def _spread(degrees: Any) -> list[float]:
    return [float(v) for v in (degrees.min(), np.median(degrees), degrees.max())]


def _range_text(spread: list[float]) -> str:
    low, middle, high = (f"{value:.10g}" for value in spread)
    return low if low == high else f"{low}/{middle}/{high}"
