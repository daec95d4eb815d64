"""Parts of the study of predictive quality, `benchmarks/quality.py`."""
