"""Nearly correct texts for all readers of users' texts: `python -m qa.fuzz_inputs`."""
