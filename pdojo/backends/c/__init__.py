"""C code: the header for object files, and kernels as readable C."""
