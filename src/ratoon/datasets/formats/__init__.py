"""One module per file format, and the registry of formats."""
