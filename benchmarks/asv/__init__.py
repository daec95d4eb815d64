"""Benchmarks for airspeed velocity: the same measurement on every commit."""
