"""`python -m benchmarks.perfllm`: the agent of PerfLLM beside the other searches (docs/perfllm.md)."""
