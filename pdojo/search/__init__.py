"""Choosing moves: expert passes and searches."""
