"""Gene sets: enrichment of the ranking; left out unless sets are given."""

from __future__ import annotations

from typing import Any

from ratoon.report.context import ReportContext

N_SETS = 25
N_LEADING = 6


def build(context: ReportContext) -> dict[str, Any] | None:
    """Return the sets with the smallest p values of ``context.extras["pathways"]``."""
    found = context.extras.get("pathways")
    if found is None:
        return None
    has_sum = bool(found.n_permutations)
    first = found.top(N_SETS)
    largest = max([abs(row["normalised"] or 0.0) for row in first] + [1e-300])
    return {
        "rows": [
            {
                "name": row["set"],
                "size": row["size"],
                "found": row["found"],
                "expected": f"{row['expected']:.1f}",
                "fdr_over": f"{row['fdr_over']:.2g}",
                "score": f"{row['normalised']:+.2f}" if has_sum else "",
                "x": f"{100 + min(0.0, 100 * (row['normalised'] or 0.0) / largest):.1f}",
                "width": f"{100 * abs(row['normalised'] or 0.0) / largest:.1f}",
                "css": "up" if (row["normalised"] or 0.0) >= 0 else "down",
                "fdr_rank": f"{row['fdr_rank']:.2g}" if has_sum else "",
                "direction": row["direction"],
                "leading": ", ".join(row["leading"][:N_LEADING]),
            }
            for row in first
        ],
        "n": len(found.rows),
        "k": found.k,
        "n_background": f"{found.n_background:,}",
        "n_permutations": f"{found.n_permutations:,}",
        "has_sum": has_sum,
        "signed": found.signed,
        "on": found.rows_of_ranking,
    }
