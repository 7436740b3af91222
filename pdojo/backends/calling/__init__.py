"""Calls of kernels: NumPy, PyTorch and DLPack arrays, matched with a kernel's interface."""
