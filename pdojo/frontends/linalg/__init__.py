"""Programs of MLIR's linalg, tensor and memref dialects, read as kernels: one nest for each structured operation."""
