"""Backends: from the IR to code, to a callable, to a measurement."""
