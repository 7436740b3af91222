# kernel: matmul:8x8x8 f64
# strategy: heuristic
# machine: snitch
# cycles: 547
# cycles_of_pdojo_snitch: 547
# arguments, in a0 and so on:
#   --arg 'f64[8,8]'
#   --arg 'f64[8,8]'
#   --arg 'f64[8,8]=out'
.text
.globl matmul
.p2align 2
matmul:
    li a3, 7
    li a4, 64
    li a5, -440
    li a6, -504
    fcvt.d.w ft3, zero
    li a7, 5
    li t0, 2
    scfgwi a3, 95
    scfgwi a3, 127
    scfgwi a4, 223
    scfgwi a5, 255
    scfgwi zero, 32
    scfgwi a3, 128
    scfgwi a6, 256
    scfgwi a0, 832
    scfgwi a3, 33
    scfgwi a1, 801
    scfgwi zero, 34
    scfgwi a2, 930
    csrrsi zero, 1984, 1
    frep.o a3, 24, 0, 0
    fmadd.d ft4, ft0, ft1, ft3
    fmadd.d ft5, ft0, ft1, ft3
    fmadd.d ft6, ft0, ft1, ft3
    fmadd.d ft7, ft0, ft1, ft3
    fmadd.d ft8, ft0, ft1, ft3
    fmadd.d ft9, ft0, ft1, ft3
    fmadd.d ft10, ft0, ft1, ft3
    fmadd.d ft11, ft0, ft1, ft3
    frep.o a7, 8, 0, 0
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft8, ft0, ft1, ft8
    fmadd.d ft9, ft0, ft1, ft9
    fmadd.d ft10, ft0, ft1, ft10
    fmadd.d ft11, ft0, ft1, ft11
    fmadd.d ft2, ft0, ft1, ft4
    fmadd.d ft2, ft0, ft1, ft5
    fmadd.d ft2, ft0, ft1, ft6
    fmadd.d ft2, ft0, ft1, ft7
    fmadd.d ft2, ft0, ft1, ft8
    fmadd.d ft2, ft0, ft1, ft9
    fmadd.d ft2, ft0, ft1, ft10
    fmadd.d ft2, ft0, ft1, ft11
    csrrci zero, 1984, 1
.Lmatmul_written1:
    scfgr a0, t0
    bge a0, zero, .Lmatmul_written1
    ret
