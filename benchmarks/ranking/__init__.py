"""Parts of `benchmarks/selection.py`: rankings of features, and their scores."""
