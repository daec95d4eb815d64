"""Tables of results, as Markdown and JSON."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def figure(value: Any) -> str:
    """Return a number as a reader wants it: three digits that matter.

    >>> figure(0.0012345), figure(12345.6), figure(None), figure("fits"), figure(3)
    ('0.00123', '12,346', '-', 'fits', '3')
    """
    if value is None:
        return "-"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return a table with one column per key of the first row.

    >>> print(markdown([{"model": "a", "seconds": 1.234}]))
    | model | seconds |
    |---|---|
    | a | 1.23 |
    """
    if not rows:
        return "(no rows)"
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(figure(row.get(name)) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def rounded(value: Any, digits: int = 5) -> Any:
    """Return the same with every number cut to the digits that carry something.

    >>> rounded({"seconds": [1.23456789]})
    {'seconds': [1.2346]}
    """
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item, digits) for item in value]
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.{digits}g}")
    return value


def write_json(path: str | Path | None, content: dict[str, Any]) -> None:
    """Write a small JSON file, where a path is given."""
    if path is not None:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(rounded(content), indent=1) + "\n")


def parser(description: str, examples: str) -> argparse.ArgumentParser:
    """Return a parser whose help ends in examples, with the options every benchmark has."""
    made = argparse.ArgumentParser(
        description=description,
        epilog="examples:\n" + examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--json", metavar="OUT", help="write the figures to this file as well")
    return made


def numbers(text: str) -> list[int]:
    """Read ``1,2`` as a list; for argparse.

    >>> numbers("1,2"), numbers("1e4")
    ([1, 2], [10000])
    """
    return [int(float(word)) for word in text.split(",") if word]
