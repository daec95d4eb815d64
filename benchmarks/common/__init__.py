"""What all benchmarks share: machine facts, models, timers, fresh processes, tables."""
