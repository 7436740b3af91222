"""Moves of arrays' memory: location, dimensions, slots, sharing, names."""
