"""The fixtures of the soak tests: how long a test may run, and a way to print what it found."""

from tests.soak.conftest import minutes, say

__all__ = ["minutes", "say"]
