// A kernel without temporaries, for flows that have no allocation.
pdojo.kernel @axpy(in a %a : memref<1xf64>, in x %x : memref<64xf64>, inout y %y : memref<64xf64>) {
  pdojo.scope %i = 64 {
    pdojo.op %y[%i] += arith.mulf(%a[0], %x[%i])
  }
}
