"""Training an agent over many kernels: workers play episodes, and one process learns from them."""
