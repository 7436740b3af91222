"""Limits of texts in both syntaxes, the notation and MLIR."""

MOST_DIGITS = 400
"""Most characters of a number; the largest number of 64 bits has 309 digits before its point."""
MOST_PARTS = 200
"""Most variables and numbers of an index expression."""
MOST_NESTED = 50
"""Most open parentheses and signs at once."""
