"""Types that all parts of a search share: evaluations, nodes, progress, candidates."""
