"""Moves of values: computed elsewhere, again, or otherwise."""
