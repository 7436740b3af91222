"""Planted defects: is each noticed by the test suite? The command is `python -m qa.mutants`."""
