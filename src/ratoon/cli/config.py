"""TOML files: every flag of a command is also a key of the table named after it."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer


def use_config(context: typer.Context, value: Path | None) -> Any:
    """Take a command's defaults from a file; flags on the command line win.

    Keys may be written as the flags are, with dashes or underscores: ``batch-size = 5`` under
    ``[train]`` is ``--batch-size 5``.  Tables of other commands may stand beside it.
    """
    if value is None:
        return value
    try:
        document = tomllib.loads(value.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{value}: not a TOML file: {error}.") from None
    command = context.command
    top = {key: entry for key, entry in document.items() if not isinstance(entry, dict)}
    table = document.get(command.name or "", top)
    if not isinstance(table, dict):
        raise typer.BadParameter(f"{value}: [{command.name}] must be a table.")
    names = _names(command)
    several = {one.name for one in command.params if getattr(one, "multiple", False)}
    defaults = {}
    for key, entry in table.items():
        name = names.get(key.replace("-", "_"))
        if name is None:
            meant = get_close_matches(key.replace("-", "_"), names, n=1)
            hint = f"did you mean `{meant[0]}`?" if meant else f"known: {', '.join(sorted(names))}."
            raise typer.BadParameter(
                f"{value}: `{key}` is not an option of `{command.name}`; {hint}"
            )
        if isinstance(entry, list) and name not in several:
            entry = ",".join(str(item) for item in entry)
        defaults[name] = entry
    context.default_map = {**(context.default_map or {}), **defaults}
    return value


def _names(command: Any) -> dict[str, str]:
    """Map every way an option may be spelt to the name of its parameter."""
    names = {}
    for parameter in command.params:
        if not parameter.name or parameter.name in ("config", "help"):
            continue
        names[parameter.name] = parameter.name
        for flag in parameter.opts:
            if flag.startswith("--"):
                names[flag.removeprefix("--").replace("-", "_")] = parameter.name
    return names
