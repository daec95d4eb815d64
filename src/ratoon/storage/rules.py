"""The rules a file must obey, in the order in which they are looked at.

`docs/file-format.md` tells them in full.  Code that finds one broken raises `Violation`; whoever
knows the file's name turns that into a `ratoon.errors.FormatError`.
"""

from __future__ import annotations

RULES = {
    1: "a regular file of bearable size",
    2: "header length",
    3: "strict JSON",
    4: "metadata, version and digest",
    5: "configuration",
    6: "set of tensors",
    7: "type, shape and place of each tensor",
    8: "tensors fill the file",
    9: "number of connections",
    10: "tile starts",
    11: "packed indices",
    12: "values",
    13: "the native check",
    14: "connections within a limit",
}


class Violation(Exception):
    """A rule is broken; not yet known in which file.

    Examples
    --------
    >>> print(Violation(2, "the header is 7 bytes long"))
    the header is 7 bytes long (rule 2, header length)
    """

    def __init__(self, rule: int, what: str) -> None:
        super().__init__(f"{what} (rule {rule}, {RULES[rule]})")
        self.rule = rule


def require(holds: bool, rule: int, what: str) -> None:
    """Raise `Violation` unless ``holds``."""
    if not holds:
        raise Violation(rule, what)
