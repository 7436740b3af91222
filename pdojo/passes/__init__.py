"""Tuning by kind of machine: a folder for each, with expert passes, proposals and a cost model."""
