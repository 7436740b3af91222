"""Calls of kernels: arrays of NumPy, PyTorch and DLPack, matched with a kernel's interface."""
