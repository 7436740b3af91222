"""Quality assurance: fuzzing, mutation, completeness. Run from a checkout; not installed."""
