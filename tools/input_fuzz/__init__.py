"""Texts that are nearly right, for everything that reads texts of people: `python -m pdojo_tools.fuzz_inputs`."""
