"""Kernels on a GPU beside PyTorch."""
