"""Texts that are nearly right, for everything that reads texts of people: `python -m qa.fuzz_inputs`."""
