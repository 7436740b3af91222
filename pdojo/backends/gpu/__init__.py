"""Code for GPUs: CUDA, HIP, and the same text for fibers on a CPU."""
