"""Tuning for graphics processors: passes for blocks, threads and shared memory, and a cost model."""
