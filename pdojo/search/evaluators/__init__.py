"""Evaluators of costs."""
