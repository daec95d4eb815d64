"""`ratoon data`: look at files, fetch public sets, make data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ratoon.cli.options import (
    DataFile,
    JsonOption,
    LabelOption,
    ReadingOption,
    explaining_read,
    reading_options,
    shares_from,
)
from ratoon.cli.terminal import console, guarded, print_json, print_table, say
from ratoon.errors import InvalidParameterError

app = typer.Typer(help="Look at data files, fetch public sets, make data.", no_args_is_help=True)


@app.command()
@guarded
def show(
    data: DataFile,
    label: LabelOption = None,
    reading: ReadingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look into a file: shape, classes, missing values, what looks wrong.

    For example:

      ratoon data show genes.csv --label outcome

      ratoon data show genes.csv --read sample_sheet=samples.csv --label outcome
    """
    from ratoon.datasets import examine

    with explaining_read():
        examination = examine(data, label=label, **reading_options(reading))
    if as_json:
        print_json(examination.to_dict())
    else:
        console.print(examination.to_text(), highlight=False, markup=False)


@app.command("list")
@guarded
def list_(
    name: Annotated[
        str | None, typer.Argument(help="Tell all about this one: address, licence, citation.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the public data sets that can be fetched.

    For example:

      ratoon data list

      ratoon data list GLI-85

      ratoon data list --json
    """
    from ratoon.datasets import data_folder, find_dataset, list_datasets

    if name is not None:
        one = find_dataset(name)
        if as_json:
            print_json(asdict(one))
            return
        samples, features, classes = one.shape
        file = data_folder() / one.filename
        for word, text in (
            ("name", one.name),
            ("what", one.what),
            ("shape", f"{samples:,} samples x {features:,} features, {classes} classes"),
            ("address", one.url),
            ("licence", one.licence),
            ("citation", one.citation),
            ("SHA-256", one.sha256 or "not known beforehand; that of the first download is kept"),
            ("file", f"{file}{'' if file.exists() else ' (not there yet)'}"),
        ):
            print(f"{word:<10}{text}")
        return
    known = list_datasets()
    if as_json:
        print_json([asdict(one) for one in known])
        return
    rows = [[one.name, *(f"{size:,}" for size in one.shape), one.what] for one in known]
    print_table("public data sets", ["name", "samples", "features", "classes", "what"], rows)


@app.command()
@guarded
def fetch(
    name: Annotated[str, typer.Argument(help="Name, as `ratoon data list` shows it.")],
) -> None:
    """Download a public data set, check it, and say where it is.

    For example:

      ratoon data fetch GLI-85
    """
    from ratoon.datasets import fetch as fetch_file

    say(f"{name} is in {fetch_file(name)}")


@app.command()
@guarded
def make(
    output: Annotated[Path, typer.Argument(help="The .npz, .csv or .tsv file to write.")],
    samples: Annotated[int, typer.Option(min=2, help="Samples.")] = 85,
    features: Annotated[int, typer.Option(min=1, help="Genes.")] = 22_283,
    classes: Annotated[int, typer.Option(min=2, help="Classes.")] = 2,
    informative: Annotated[int, typer.Option(min=0, help="Genes that carry the class.")] = 300,
    effect: Annotated[float, typer.Option(min=0.0, help="How strongly they do.")] = 3.3,
    correlation: Annotated[
        float, typer.Option(min=0.0, max=0.99, help="Of genes within a block.")
    ] = 0.4,
    batch_effect: Annotated[float, typer.Option(min=0.0, help="Shift between batches.")] = 0.3,
    noise: Annotated[float, typer.Option(min=0.0, help="What nothing explains.")] = 1.0,
    shares: Annotated[
        str | None, typer.Option(help="Share of each class, as in 0.9,0.1; equal without.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same data.")] = 0,
) -> None:
    """Make microarray-like data with known informative genes.

    An .npz file holds the columns of these genes in the array `informative`;
    beside a .csv or .tsv file their names stand in a .informative.txt.

    For example:

      ratoon data make imbalanced.npz --samples 120 --shares 0.9,0.1

      ratoon data make small.csv --features 500 --informative 20
    """
    from ratoon.datasets import make_microarray, write

    weights = shares_from(shares)
    if weights is not None and len(weights) != classes:
        raise InvalidParameterError(f"--shares has {len(weights)} numbers for {classes} classes.")
    data, columns = make_microarray(
        samples,
        features,
        classes,
        informative,
        effect=effect,
        correlation=correlation,
        batch_effect=batch_effect,
        noise=noise,
        class_weights=weights,
        random_state=seed,
    )
    if output.suffix == ".npz":
        arrays = {"X": data.X, "y": data.y, "informative": columns}
        if data.feature_names is not None:
            arrays["feature_names"] = np.array(data.feature_names)
        with output.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
    else:
        write(data, output)
        names = "".join(f"{data.feature_label(int(column))}\n" for column in columns)
        output.with_suffix(".informative.txt").write_text(names, encoding="utf-8")
    say(
        f"{data.n_samples} samples x {data.n_features:,} genes, {data.n_classes} classes, are in"
        f" {output}."
    )
