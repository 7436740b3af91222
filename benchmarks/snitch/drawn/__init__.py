"""Kernels drawn by a fixed seed, which no pass was tuned for, beside the same computation in plain C.

The forms, the ranges and the seed were fixed before any kernel was measured, and do not change.
"""
