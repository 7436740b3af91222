"""Lowering to func, scf, arith, math and memref, for any other MLIR flow."""
