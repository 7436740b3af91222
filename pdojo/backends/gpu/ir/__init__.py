"""Device code as operations of the standard dialects: gpu, func, scf, arith, math and memref."""
