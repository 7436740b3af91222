// A kernel to RISC-V assembly by xDSL's own backend.
// RUN: xdsl-opt %S/../../../examples/embedding/axpy.mlir -t riscv-asm -p 'convert-pdojo-to-loops{sequential=true},canonicalize,convert-func-to-riscv-func,convert-memref-to-riscv,convert-arith-to-riscv,convert-scf-to-riscv-scf,reconcile-unrealized-casts,canonicalize,riscv-allocate-registers,riscv-lower-parallel-mov,canonicalize,lower-riscv-func,convert-riscv-scf-to-riscv-cf' | filecheck %s

// CHECK:       axpy:
// CHECK:         [[BODY:scf_body_0_for]]:
// CHECK:         fld
// CHECK:         fmul.d [[P:ft[0-9]+]], {{.*}}
// CHECK:         fadd.d {{.*}}[[P]]
// CHECK:         fsd
// CHECK:         blt {{.*}}, [[BODY]]
// CHECK:         ret
