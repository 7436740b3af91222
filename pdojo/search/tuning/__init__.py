"""Tuning of one kernel: pass, variants, search, verification and last measurement."""
