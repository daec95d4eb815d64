"""Shared by all benchmarks: machine facts, models, timers, processes, tables."""
