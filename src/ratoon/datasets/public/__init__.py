"""Public data sets: the registry, downloading, checksums."""
