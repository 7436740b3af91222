"""Moves of values: computing them elsewhere, again, or by other functions."""
