"""Moves of data: copies of parts of arrays."""
