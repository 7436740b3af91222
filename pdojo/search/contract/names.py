"""Names for command lines; a module without imports, so that a tool can list them before it loads any search."""

EXPERT_PASSES = ("naive", "greedy", "heuristic")
"""Names of the expert passes that every kind of machine has, weakest first."""
STRATEGIES = ("sample", "anneal", "evolve", "elites", "model", "perfllm")
"""Names of the strategies."""
NEIGHBOURHOODS = ("edges", "mutate", "heuristic")
"""Names of the neighbourhoods."""
EVALUATORS = ("runtime", "analytical", "cycles")
"""Names of the evaluators of all targets."""
