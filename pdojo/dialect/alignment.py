"""Alignment of interface arrays in bytes; a module without imports, so that command lines start quickly."""

ALIGNMENT = 64
"""Default alignment: a cache line, or a vector."""
LARGEST = 1 << 30
"""Largest alignment."""
