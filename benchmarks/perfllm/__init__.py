<<<<<<< HEAD
"""`python -m benchmarks.perfllm`: the agent of PerfLLM beside the other searches (docs/perfllm.md)."""
=======
"""Experiments with PerfLLM."""
>>>>>>> 35412172c64f2374c481811513c6a48fc73b645e
