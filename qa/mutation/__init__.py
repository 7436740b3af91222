"""Planted defects, which the test suite must notice. The command is `python -m qa.mutants`."""
