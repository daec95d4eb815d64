"""Sparse neural networks that rewire while they learn.

A network is a list of sparse layers; a layer is a topology (which connections exist) plus arrays
of values aligned with it.  Training changes the values; evolution changes the topology and
carries the values along.  Time and memory grow with the number of connections, never with the
product of the layers' widths.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
