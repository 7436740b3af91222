"""Learned proposals: the moves, places and positions of a trace that edits are drawn from. See docs/proposals.md."""
