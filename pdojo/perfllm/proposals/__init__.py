"""Training of proposal models on the best traces that searches found. docs/proposals.md describes it."""
