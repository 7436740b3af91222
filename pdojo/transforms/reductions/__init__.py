"""Moves of reductions: partial results, first and last steps, products summed in one operation."""
