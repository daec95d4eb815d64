"""Dynamic sparse training beside dense training: accuracy against CPU seconds; see `dynamic.py`."""
