"""Frontends: programs of other systems, read as kernels."""
