"""Verification that moves keep the meaning of a kernel: exactly, at reduced sizes, and by running its code."""
