"""Code for graphics processors: CUDA, HIP, and the same text for fibers on a CPU."""
