"""How the quality of the project is assured: fuzzing, mutation, completeness. Run from a checkout; not installed."""
