"""Evaluators: where costs come from."""
