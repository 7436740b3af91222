"""Modules that every generated wheel has: calls of C functions with arrays. They import NumPy and nothing of pdojo."""
