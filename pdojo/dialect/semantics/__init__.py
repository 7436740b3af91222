"""Semantics of programs: functions on NumPy arrays, interpreters, and the oracles that compare programs."""
