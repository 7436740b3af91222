"""Features of programs, for cost models and for agents."""
