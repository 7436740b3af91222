"""Lowering to func, scf, arith, math and memref: the door to any other MLIR flow."""
