"""The command line: `ratoon --help`."""

from __future__ import annotations

from ratoon.cli.app import main as main
