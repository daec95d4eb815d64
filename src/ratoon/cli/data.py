"""`ratoon data`: examine files, download public data sets, generate data."""

from __future__ import annotations

import io
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ratoon.cli.options import (
    ON_DISK,
    DataFile,
    JsonOption,
    LabelOption,
    ReadingOption,
    fractions_from,
    in_shell_words,
    reading_options,
    shell_words,
)
from ratoon.cli.output import check_file
from ratoon.cli.samples import known_file, refuse_on_disk
from ratoon.cli.terminal import (
    HelpfulGroup,
    guarded,
    print_json,
    print_note,
    print_table,
    print_text,
)
from ratoon.datasets.public.fetch import UnverifiedDownloadWarning
from ratoon.errors import InvalidParameterError
from ratoon.storage.atomic import write_file

MOST_VALUES = 10**10
"""Largest number of values that `ratoon data make` generates."""

app = typer.Typer(
    help="Examine data files, download public data sets, generate data.", cls=HelpfulGroup
)


@app.command()
@guarded
def show(
    data: DataFile,
    label: LabelOption = None,
    reading: ReadingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Examine a file: shape, classes, missing values, possible problems.

    For example:

      ratoon data show genes.csv --label outcome

      ratoon data show genes.csv --read sample_sheet=samples.csv --label outcome
    """
    from ratoon.datasets import can_stay_on_disk, examine, open_stored

    data, label = known_file(data, label)
    options = reading_options(reading)
    on_disk = options.pop(ON_DISK, "auto")
    with shell_words():
        if can_stay_on_disk(data, on_disk=on_disk):
            stored = open_stored(data, label=label, matrix=options.pop("matrix", None))
            refuse_on_disk(options, data)
            if not as_json:
                print_text(stored.describe())
                return
            shape = {"n_samples": stored.n_samples, "n_features": stored.n_features}
            print_json({"source": str(data), "storage": "on disk", **shape})
            return
        examination = examine(data, label=label, **options)
    if as_json:
        print_json(examination.to_dict())
    else:
        print_text(in_shell_words(examination.to_text()))


@app.command("list")
@guarded
def list_(
    name: Annotated[
        str | None, typer.Argument(help="Show one data set in full: address, licence, citation.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the public data sets that can be downloaded.

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
            ("content", one.what),
            ("shape", f"{samples:,} samples x {features:,} features, {classes} classes"),
            ("address", one.url),
            ("licence", one.licence),
            ("citation", one.citation),
            ("SHA-256", one.sha256 or "not known; that of the first download is kept"),
            ("file", f"{file}{'' if file.exists() else ' (not downloaded)'}"),
        ):
            print_text(f"{word:<10}{text}")
        return
    known = list_datasets()
    if as_json:
        print_json([asdict(one) for one in known])
        return
    rows = [[one.name, *(f"{size:,}" for size in one.shape), one.what] for one in known]
    print_table("public data sets", ["name", "samples", "features", "classes", "content"], rows)


@app.command()
@guarded
def fetch(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of a data set in `ratoon data list`, or accession of a series of GEO, such"
            " as GSE2034."
        ),
    ],
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Download again, and accept another version.")
    ] = False,
) -> None:
    """Download a public data set or a series of GEO, and check it.

    An interrupted download continues where it was.  Commands that read a data
    file then take its name: `ratoon train GLI-85`.

    For example:

      ratoon data fetch GLI-85

      ratoon data fetch GSE2034

      ratoon data fetch GSE12417-GPL96
    """
    from ratoon.datasets import fetch as fetch_file

    with warnings.catch_warnings():
        # The note says that the checksum is new.
        warnings.simplefilter("ignore", UnverifiedDownloadWarning)
        path = fetch_file(name, refresh=refresh)
    print_note(f"{name} is in {path}; `ratoon data show {name}` describes it.")


@app.command()
@guarded
def make(
    output: Annotated[Path, typer.Argument(help="File to write: .npz, .csv or .tsv.")],
    samples: Annotated[int, typer.Option(min=2, help="Number of samples.")] = 85,
    features: Annotated[int, typer.Option(min=1, help="Number of genes.")] = 22_283,
    classes: Annotated[int, typer.Option(min=2, help="Number of classes.")] = 2,
    informative: Annotated[
        int, typer.Option(min=0, help="Number of genes that depend on the class.")
    ] = 300,
    effect: Annotated[float, typer.Option(min=0.0, help="Strength of that dependence.")] = 3.3,
    correlation: Annotated[
        float, typer.Option(min=0.0, max=0.99, help="Correlation of genes within a block.")
    ] = 0.4,
    batch_effect: Annotated[
        float, typer.Option(min=0.0, help="Size of the shift between batches.")
    ] = 0.3,
    noise: Annotated[float, typer.Option(min=0.0, help="Standard deviation of the noise.")] = 1.0,
    shares: Annotated[
        str | None, typer.Option(help="Fraction of each class, such as 0.9,0.1; equal by default.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed. The same seed gives the same data.")
    ] = 0,
) -> None:
    """Generate microarray-like data with known informative genes.

    An .npz file lists the columns of these genes in the array `informative`.
    For a .csv or .tsv file their names are written to a second file, which
    ends in .informative.txt.

    For example:

      ratoon data make imbalanced.npz --samples 120 --shares 0.9,0.1

      ratoon data make small.csv --features 500 --informative 20
    """
    from ratoon.datasets import make_microarray, write

    weights = fractions_from(shares)
    if weights is not None and len(weights) != classes:
        raise InvalidParameterError(
            f"--shares needs one number for each of the {classes} classes; got {len(weights)}."
        )
    if samples * features > MOST_VALUES:
        raise InvalidParameterError(
            f"--samples {samples} and --features {features} are {samples * features:.3g} values; at"
            f" most {MOST_VALUES:.3g} are generated. Reduce one of them."
        )
    check_file(output)
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
        content = io.BytesIO()
        np.savez_compressed(content, allow_pickle=False, **arrays)
        write_file(output, content.getvalue())
    else:
        write(data, output)
        names = "".join(f"{data.feature_label(int(column))}\n" for column in columns)
        write_file(output.with_suffix(".informative.txt"), names.encode("utf-8"))
    print_note(
        f"{data.n_samples} samples x {data.n_features:,} genes, {data.n_classes} classes written to"
        f" {output}."
    )
