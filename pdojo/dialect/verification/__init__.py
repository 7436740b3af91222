"""Verification of kernels, cheap enough for every move: structure, names, types, bounds, places of mappings."""
