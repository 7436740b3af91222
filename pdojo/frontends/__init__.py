"""What other programs wrote, as kernels."""
