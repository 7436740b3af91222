"""Experiments with PerfLLM."""
