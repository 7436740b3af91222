"""`python -m benchmarks.perfllm`: the agent of PerfLLM against the other searches (docs/perfllm.md)."""
