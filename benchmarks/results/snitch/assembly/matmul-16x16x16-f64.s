# kernel: matmul:16x16x16 f64
# strategy: transformed
# machine: snitch
# cycles: 4147
# cycles_of_pdojo_snitch: 4147
# arguments, in a0 and so on:
#   --arg 'f64[16,16]'
#   --arg 'f64[16,16]'
#   --arg 'f64[16,16]=out'
.text
.globl matmul
.p2align 2
matmul:
    addi sp, sp, -16
    li a3, 8
    li a4, 7
    li a5, 15
    li a6, 1
    li a7, -120
    li t0, 72
    li t1, -1912
    li t2, -2040
    li t3, 255
    fcvt.d.w ft3, zero
    li t4, 13
    li t5, 31
    li t6, 2
    scfgwi a3, 223
    scfgwi a4, 32
    scfgwi a5, 64
    scfgwi a6, 96
    scfgwi a7, 224
    scfgwi a5, 128
    scfgwi a3, 256
    scfgwi a0, 832
    scfgwi zero, 33
    scfgwi a4, 65
    scfgwi a5, 97
    scfgwi t0, 225
    scfgwi a6, 129
    scfgwi t1, 257
    scfgwi a5, 161
    scfgwi t2, 289
    scfgwi a1, 865
    scfgwi zero, 34
    scfgwi t3, 66
    scfgwi a2, 898
    csrrsi zero, 1984, 1
    frep.o t5, 24, 0, 0
    fmadd.d ft4, ft0, ft1, ft3
    fmadd.d ft5, ft0, ft1, ft3
    fmadd.d ft6, ft0, ft1, ft3
    fmadd.d ft7, ft0, ft1, ft3
    fmadd.d ft8, ft0, ft1, ft3
    fmadd.d ft9, ft0, ft1, ft3
    fmadd.d ft10, ft0, ft1, ft3
    fmadd.d ft11, ft0, ft1, ft3
    frep.o t4, 8, 0, 0
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
    scfgr a0, t6
    bge a0, zero, .Lmatmul_written1
    addi sp, sp, 16
    ret
