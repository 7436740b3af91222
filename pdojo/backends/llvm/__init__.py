"""Kernels on CPUs: machine code in this process, through xDSL's llvm dialect and llvmlite."""
