"""Kernels on CPUs: through xDSL's llvm dialect and llvmlite to machine code in this process."""
