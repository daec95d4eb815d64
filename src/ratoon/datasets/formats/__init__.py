"""Readers, one module per file format, and the registry that selects one."""
