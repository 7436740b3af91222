"""Expressions of C as text."""

from __future__ import annotations


def strip(expression: str) -> str:
    """The expression without parentheses around all of it."""
    if not expression.startswith("("):
        return expression
    depth = 0
    for position, character in enumerate(expression):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return expression[1:-1] if position == len(expression) - 1 else expression
    raise AssertionError(expression)
