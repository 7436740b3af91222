"""Modules that every generated wheel has: calls of the C functions with arrays. They import NumPy and nothing of pdojo."""
