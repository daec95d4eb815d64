"""Doctests of modules behind an extra run only where the extra is installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/ratoon/torch/*"]
