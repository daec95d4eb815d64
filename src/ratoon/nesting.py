"""The depth of nested brackets in JSON and TOML text, measured before it is parsed.

Parsers call themselves for every level, so a file of brackets alone could exhaust the stack and
end the process.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

MAX_DEPTH = 16

_JSON = re.compile(r'[\[{]++|[\]}]++|"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_TOML = re.compile(
    r'[\[{]++|[\]}]++|#[^\n]*+|"""(?:[^"\\]++|\\.|"(?!""))*+(?:""")?'
    r'|"(?:[^"\\\n]++|\\.)*+"?'
    r"|'''(?:[^']++|'(?!''))*+(?:''')?|'[^'\n]*+'?",
    re.DOTALL,
)


def check_json_depth(text: str, max_depth: int = MAX_DEPTH) -> None:
    """Raise ValueError if brackets of JSON text are nested too deeply; nothing else is checked.

    Examples
    --------
    >>> check_json_depth('{"[[[": [1]}', max_depth=2)
    >>> check_json_depth('{"a": [[1]]}', max_depth=2)
    Traceback (most recent call last):
    ...
    ValueError: nested more than 2 deep
    """
    _check(text, _JSON, max_depth)


def parse_json(text: str, max_depth: int = MAX_DEPTH) -> Any:
    """Parse JSON text of a limited depth; ValueError if it is not such text.

    Examples
    --------
    >>> parse_json('{"a": [1]}')
    {'a': [1]}
    """
    check_json_depth(text, max_depth)
    return json.loads(text)


def parse_toml(text: str, max_depth: int = MAX_DEPTH) -> dict[str, Any]:
    """Parse TOML text of a limited depth; ValueError if it is not such text.

    Examples
    --------
    >>> parse_toml('a = [1, "[["]')
    {'a': [1, '[[']}
    """
    _check(text, _TOML, max_depth)
    return tomllib.loads(text)


def _check(text: str, tokens: re.Pattern[str], max_depth: int) -> None:
    depth = 0
    for found in tokens.finditer(text):
        first = text[found.start()]
        if first in "[{":
            depth += found.end() - found.start()
            if depth > max_depth:
                raise ValueError(f"nested more than {max_depth} deep")
        elif first in "]}":
            depth = max(depth - (found.end() - found.start()), 0)
