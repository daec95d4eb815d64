"""Parts of `benchmarks/selection.py`: rankings of features, and what they are judged by."""
