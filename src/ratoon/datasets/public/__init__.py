"""Public data sets: registry, download and checksums."""
