"""`python -m benchmarks.bench --machine snitch`: micro-kernels on the simulator, the paper's Figures 8 and 9."""
