"""Files that commands write: checked before the work, replaced as a whole or not at all."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ratoon.cli.terminal import require_stdout, visible_name
from ratoon.datasets.optional import require
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.report.style import picture_bytes, picture_formats
from ratoon.storage.atomic import check_folder, check_target, write_file

# ----------------------------------------------------------------------- checks before the work


def check_file(path: Path) -> None:
    """Raise unless a text file can be written there; a device or pipe is accepted."""
    check_target(path, stream=True)


def check_picture(path: Path) -> None:
    """Raise unless a picture can be written there and its format is known."""
    if path.suffix.lower().removeprefix(".") not in picture_formats():
        raise InvalidParameterError(
            f"{path}: the name of a picture must end in .png, .svg, .pdf or another format of"
            f" Matplotlib."
        )
    check_target(path)


def check_report(path: Path) -> None:
    """Raise unless a report can be written there, and the packages for it are installed."""
    require("jinja2", "to write reports", extra="report")
    picture_formats()
    check_file(path)


def check_new_folder(path: Path, n_bytes: int = 0, what: str = "the files will have") -> None:
    """Raise unless files of this size in sum can be written to a folder, which may be absent."""
    folder = path.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise InvalidInputError(f"{path}: {folder} is a file, and a folder is needed.")
    check_folder(folder, n_bytes, named=path, what=what)


# --------------------------------------------------------------------------------------- writing


def save_picture(figure: Any, path: Path, *, dpi: int) -> None:
    """Write a figure in the format of its name."""
    write_file(path, picture_bytes(figure, path.suffix, dpi=dpi))


def write_csv(
    path: Path,
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    delimiter: str = ",",
    escape_formulas: bool = True,
) -> None:
    """Write a table to a file."""
    text = csv_text(header, rows, delimiter=delimiter, escape_formulas=escape_formulas)
    write_file(path, text.encode("utf-8", "backslashreplace"))


def print_csv(
    header: Sequence[str], rows: Iterable[Sequence[Any]], *, escape_formulas: bool = True
) -> None:
    """Print a table to stdout, on a terminal without control characters."""
    stream = require_stdout()
    if stream.isatty():
        header = [visible_name(name) for name in header]
        rows = [[visible_name(c) if isinstance(c, str) else c for c in row] for row in rows]
    text = csv_text(header, rows, escape_formulas=escape_formulas)
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError as error:
        if not stream.isatty():  # data must not be changed; what is only looked at may be
            raise InvalidInputError(
                f"a name has the character {error.object[error.start]!a}, which the encoding"
                f" of stdout ({stream.encoding}) lacks.\n"
                f"  Write to a file with -o FILE, or set PYTHONIOENCODING=utf-8."
            ) from None
    stream.write(text)


_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_text(
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    delimiter: str = ",",
    escape_formulas: bool = True,
) -> str:
    r"""Return a table as CSV.

    Examples
    --------
    >>> csv_text(["sample", "@x"], [("=1+1", -0.5), ("-1", "-a")])
    "sample,'@x\n'=1+1,-0.5\n-1,'-a\n"
    """
    file = io.StringIO(newline="")
    # The writer quotes a name with a character of the line end, and a carriage return needs it.
    lines = csv.writer(file, delimiter=delimiter, lineterminator="\r\n")
    parts = []
    for row in (header, *rows):
        lines.writerow([_as_text(cell) for cell in row] if escape_formulas else row)
        parts.append(file.getvalue().removesuffix("\r\n"))
        file.seek(0)
        file.truncate()
    return "\n".join([*parts, ""])


def _as_text(cell: Any) -> Any:
    """Return a name so that a spreadsheet shows it as text; numbers are returned unchanged."""
    if isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell
