"""Tuning for CPUs: passes for vectors, caches and threads, and a cost model."""
