"""Kernels on a GPU against PyTorch."""
