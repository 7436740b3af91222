"""Choosing moves: expert passes, and what turns their traces into tuned kernels."""
