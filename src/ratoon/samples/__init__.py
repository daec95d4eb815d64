"""Samples as they are given: in memory, sparse, or on disk."""
