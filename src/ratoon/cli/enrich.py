"""`ratoon enrich`: which gene sets are high in the ranking of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ratoon.cli.options import JsonOption, ModelFile, QuietOption, input_errors
from ratoon.cli.output import check_file, write_csv
from ratoon.cli.samples import load_model
from ratoon.cli.terminal import print_json, print_note, print_table
from ratoon.datasets import read_groups, read_id_map
from ratoon.datasets.files import Limits, read_lines
from ratoon.errors import InvalidInputError

GeneSets = Annotated[
    Path, typer.Argument(help="Gene sets: .gmt, or an edge list.", show_default=False)
]


def enrich(
    model: ModelFile,
    gene_sets: GeneSets,
    background: Annotated[
        Path | None,
        typer.Option(help="Names of the features that count, one per line. Default: all."),
    ] = None,
    id_map: Annotated[
        Path | None,
        typer.Option(help="From the names of the model to those of the gene sets: two columns."),
    ] = None,
    top: Annotated[
        int, typer.Option(min=1, help="Number of first features for over-representation.")
    ] = 100,
    least: Annotated[int, typer.Option(min=1, help="Fewest members of a set.")] = 5,
    most: Annotated[int, typer.Option(min=1, help="Most members of a set.")] = 500,
    permutations: Annotated[
        int, typer.Option(min=0, help="Random sets of every size; 0 leaves the running sum out.")
    ] = 1000,
    show: Annotated[int, typer.Option(min=1, help="Number of sets to print.")] = 20,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file for all sets.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Test which gene sets are high in a model's ranking of features.

    Two tests: whether the first features hold more members of a set than
    random ones would (hypergeometric), and whether the running sum of gene set
    enrichment analysis over the whole ranking is higher than for random sets.
    FDR is that of Benjamini and Hochberg over the sets.  Names are compared
    exactly, then ignoring case.

    For example:

      ratoon enrich lung.ratoon hallmark.gmt

      ratoon enrich lung.ratoon hallmark.gmt --id-map probes.csv -o sets.csv
    """
    if output is not None:
        check_file(output)
    estimator = load_model(model)
    check_named(getattr(estimator, "feature_names_in_", None), gene_sets)
    with input_errors():
        found, note = enrichment_of(
            estimator.ranking_,
            gene_sets,
            background=background,
            id_map=id_map,
            k=top,
            least=least,
            most=most,
            n_permutations=permutations,
            seed=seed,
        )
    if as_json:
        print_json(
            {
                "ranking": found.rows_of_ranking,
                "first": found.k,
                "background": found.n_background,
                "permutations": found.n_permutations,
                "sets": list(found.rows),
            }
        )
        return
    if not quiet:
        print_note(note)
    if output is not None:
        write_csv(
            output,
            list(found.rows[0]),
            [(*list(row.values())[:-1], " ".join(row["leading"])) for row in found.rows],
            delimiter="\t" if output.suffix.lower() in (".tsv", ".txt") else ",",
        )
    columns = ["set", "size", f"in top {found.k}", "expected", "FDR"]
    if found.n_permutations:
        columns += ["running sum", "FDR"]
    if found.signed:
        columns.append("direction")
    rows = [
        [
            row["set"],
            row["size"],
            row["found"],
            f"{row['expected']:.1f}",
            f"{row['fdr_over']:.2g}",
            *(
                [f"{row['normalised']:.2f}", f"{row['fdr_rank']:.2g}"]
                if found.n_permutations
                else []
            ),
            *([row["direction"]] if found.signed else []),
        ]
        for row in found.top(show)
    ]
    print_table("gene sets", columns, rows)
    if not quiet:
        print_note(
            f"Ranking {found.rows_of_ranking}; {found.n_background:,} features count. Features of a"
            f" set are correlated, so p values are too small."
        )
        if output is not None:
            print_note(f"All {len(found.rows)} sets are in {output}.")


def check_named(names: Any, gene_sets: Path) -> None:
    """Raise unless the features of a model have names."""
    if names is None:
        raise InvalidInputError(
            f"{gene_sets} names features, and the model was trained without names.\n"
            f"  Train it on a format with names, such as CSV with a header."
        )


def enrichment_of(
    ranking: Any,
    gene_sets: Path,
    *,
    background: Path | None = None,
    id_map: Path | None = None,
    **how: Any,
) -> tuple[Any, str]:
    """Return the enrichment of the sets in a file, and in words how names were matched."""
    from ratoon.explain import enrichment, renamed

    check_named(ranking.feature_names, gene_sets)
    if id_map is not None:
        ranking = renamed(ranking, read_id_map(id_map))
    names = ranking.feature_names
    groups = read_groups(gene_sets, names)
    mask = None if background is None else _background(background, names)
    unknown = f"; {groups.n_unknown:,} members are not features" if groups.n_unknown else ""
    return enrichment(ranking, groups, background=mask, **how), f"{gene_sets}: {groups!r}{unknown}."


def _background(path: Path, names: tuple[str, ...]) -> Any:
    known = {
        line.decode("utf-8", errors="replace").strip().casefold()
        for line in read_lines(path, Limits())
    }
    mask = np.array([name.casefold() in known for name in names])
    if not mask.any():
        raise InvalidInputError(
            f"{path}: none of its names is a feature of the model.\n"
            f"  The file needs one name per line, such as {names[0]}."
        )
    return mask
