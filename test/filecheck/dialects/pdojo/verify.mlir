// RUN: pdojo-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: array 'x' is an input of the kernel and cannot be written
pdojo.kernel @input(in x %x: memref<8xf32>) {
  pdojo.scope %i = 8 {
    pdojo.op %x[%i] = 1.000000e+00 : f32
  }
}

// -----

// CHECK: array 'x' has the layout strided<[16, 1]>, which pdojo does not know: arrays are in row-major order, and dense, but for interface arrays such as memref<?x8xf32, strided<[?, 1], offset: ?>>
pdojo.kernel @begins(in x %x: memref<2x8xf32, strided<[16, 1]>>, out y %y: memref<8xf32>) {
  pdojo.scope %i = 8 {
    pdojo.op %y[%i] = %x[1, %i]
  }
}

// -----

// CHECK: array 'x' has the layout strided<[16, 2], offset: ?>, which pdojo does not know
pdojo.kernel @apart(in x %x: memref<2x8xf32, strided<[16, 2], offset: ?>>, out y %y: memref<8xf32>) {
  pdojo.scope %i = 8 {
    pdojo.op %y[%i] = %x[1, %i]
  }
}

// -----

// CHECK: strided array 'y': its elements overlap in memory, and the kernel writes them
pdojo.kernel @overlap(in x %x: memref<2x8xf32>, out y %y: memref<2x8xf32, strided<[7, 1], offset: ?>>) {
  pdojo.scope %i = 2 {
    pdojo.scope %j = 8 {
      pdojo.op %y[%i, %j] = %x[%i, %j]
    }
  }
}

// -----

// CHECK: array 'y' has the extent '?', but the kernel says no size for it
pdojo.kernel @extents(out y %y: memref<?xf32>) {
  pdojo.scope %i = 8 {
    pdojo.op %y[%i] = 1.000000e+00 : f32
  }
}

// -----

// CHECK: array 'y' is declared twice
pdojo.kernel @names(out y %y: memref<8xf32>) {
  %y_1 = pdojo.buffer y : f32[8] heap
  pdojo.scope %i = 8 {
    pdojo.op %y[%i] = 1.000000e+00 : f32
  }
}

// -----

// CHECK: kernel has no statements
pdojo.kernel @empty(out y %y: memref<8xf32>) {
}

// -----

// CHECK: buffer 't' has 9 slots for 8 indices
pdojo.kernel @slots(out y %y: memref<8xf32>) {
  %t = pdojo.buffer t : f32[8:N9] heap
  pdojo.scope %i = 8 {
    pdojo.op %y[%i] = 1.000000e+00 : f32
  }
}

// -----

// CHECK: access has 1 indices for an array of 2 dimensions
pdojo.kernel @rank(out y %y: memref<8x8xf32>) {
  pdojo.scope %i = 8 {
    pdojo.op %y[%i] = 1.000000e+00 : f32
  }
}

// -----

// CHECK: vector scope {0} of extent 8:v must wrap exactly one op
pdojo.kernel @vector(out y %y: memref<8xf32>, out z %z: memref<8xf32>) {
  pdojo.scope %i = 8 : v {
    pdojo.op %y[%i] = 1.000000e+00 : f32
    pdojo.op %z[%i] = 1.000000e+00 : f32
  }
}

// -----

// CHECK: parallel scope {1} of extent 8:p cannot be inside scope {0} of extent 8:p
pdojo.kernel @parallel(out y %y: memref<8x8xf32>) {
  pdojo.scope %i = 8 : p {
    pdojo.scope %j = 8 : p {
      pdojo.op %y[%i, %j] = 1.000000e+00 : f32
    }
  }
}

// -----

// CHECK: 'fma=' must add a floating-point product
"pdojo.kernel"() <{sym_name = "k", arg_names = ["y"], arg_intents = [#pdojo<intent inout>], numerics = []}> ({
^bb0(%y: memref<8xf32>):
  "pdojo.scope"() <{extent = 8 : index, mapping = #pdojo<mapping seq>}> ({
  ^bb1(%i: index):
    "pdojo.op"(%y, %i) <{accumulate = "arith.addf", contracted, output_map = affine_map<(d0) -> (d0)>, inputs = [1.000000e+00 : f32], operandSegmentSizes = array<i32: 1, 0, 1>}> : (memref<8xf32>, index) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: table 'idx' must be an array of entries: array<i64: 7, 0, 7>
pdojo.kernel @entries(in x %x: memref<8xf32>, out y %y: memref<3xf32>) attributes {tables = {idx = array<i32: 7, 0, 7>}} {
  pdojo.scope %i = 3 {
    pdojo.op %y[%i] = %x[%i]
  }
}

// -----

// CHECK: table 'idx' has an entry that is negative or at least 2^62
pdojo.kernel @negative(in x %x: memref<8xf32>, out y %y: memref<3xf32>) attributes {tables = {idx = array<i64: 7, -1, 7>}} {
  pdojo.scope %i = 3 {
    pdojo.op %y[%i] = %x[%i]
  }
}

// -----

// CHECK: array 'y' is declared twice
pdojo.kernel @twice(in x %x: memref<8xf32>, out y %y: memref<3xf32>) attributes {tables = {y = array<i64: 7, 1, 7>}} {
  pdojo.scope %i = 3 {
    pdojo.op %y[%i] = %x[%i]
  }
}

// -----

// CHECK: indirection is not supported: an index may read tables, and inputs with a range of indices, and 'idx' is neither
pdojo.kernel @unknown(in x %x: memref<8xf32>, out y %y: memref<3xf32>) {
  pdojo.scope %i = 3 {
    pdojo.op %y[%i] = %x[idx[%i]]
  }
}

// -----

// CHECK: table 'idx' has no entry 3
pdojo.kernel @constant(in x %x: memref<8xf32>, out y %y: memref<3xf32>) attributes {tables = {idx = array<i64: 7, 0, 7>}} {
  pdojo.scope %i = 3 {
    pdojo.op %y[%i] = %x[idx[3]]
  }
}

// -----

// CHECK: table 'idx' has 3 entries, but y[{0}] is computed with entries 0 to 3
pdojo.kernel @beyond(in x %x: memref<8xf32>, out y %y: memref<4xf32>) attributes {tables = {idx = array<i64: 7, 0, 7>}} {
  pdojo.scope %i = 4 {
    pdojo.op %y[%i] = %x[idx[%i]]
  }
}

// -----

// CHECK: a lookup in 'idx' has 1 place, of variables and earlier lookups only
"pdojo.kernel"() <{sym_name = "k", arg_names = ["x", "y"], arg_intents = [#pdojo<intent in>, #pdojo<intent out>], tables = {idx = array<i64: 1, 0, 2>}}> ({
^bb0(%x: memref<8xf32>, %y: memref<3xf32>):
  "pdojo.scope"() <{extent = 3 : index, mapping = #pdojo<mapping seq>}> ({
  ^bb1(%i: index):
    "pdojo.op"(%y, %x, %i) <{output_map = affine_map<(d0, d1) -> (d0)>, inputs = [affine_map<(d0, d1) -> (d1)>], lookups = [#pdojo.lookup<"idx", affine_map<(d0, d1) -> (d1)>>], operandSegmentSizes = array<i32: 1, 1, 1>}> : (memref<3xf32>, memref<8xf32>, index) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: array 'y' is constant, but no input of the kernel
"pdojo.kernel"() <{sym_name = "k", arg_names = ["y"], arg_intents = [#pdojo<intent out>], constants = ["y"]}> ({
^bb0(%y: memref<8xf32>):
  "pdojo.scope"() <{extent = 8 : index, mapping = #pdojo<mapping seq>}> ({
  ^bb1(%i: index):
    "pdojo.op"(%y, %i) <{output_map = affine_map<(d0) -> (d0)>, inputs = [1.000000e+00 : f32], operandSegmentSizes = array<i32: 1, 0, 1>}> : (memref<8xf32>, index) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: 's' lives in the caller's memory, so it is not constant
pdojo.kernel @guest(out y %y: memref<8xf32>) {
  %s = "pdojo.buffer"(%y) <{array_names = ["s"], memory = #pdojo<memory heap>, constant}> : (memref<8xf32>) -> memref<8xf32>
  pdojo.scope %i = 8 {
    pdojo.op %y[%i] = 1.000000e+00 : f32
  }
}

// -----

// CHECK: 't' has hints; a constant has none
pdojo.kernel @hints(out y %y: memref<8xf32>) {
  %t = pdojo.buffer t : f32[8] heap hints{persistent} const
  pdojo.scope %i = 8 {
    pdojo.op %y[%i] = 1.000000e+00 : f32
  }
}
