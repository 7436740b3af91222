"""Benchmarks beside other libraries, and the demo. Run from a checkout; not installed."""
