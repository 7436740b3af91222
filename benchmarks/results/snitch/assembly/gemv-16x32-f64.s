# kernel: gemv:16x32 f64
# strategy: heuristic
# machine: snitch
# cycles: 556
# cycles_of_pdojo_snitch: 556
# arguments, in a0 and so on:
#   --arg 'f64[16,32]'
#   --arg 'f64[32]'
#   --arg 'f64[16]=out'
.text
.globl gemv
.p2align 2
gemv:
    li a3, 3
    li a4, 256
    li a5, 31
    li a6, -760
    li a7, 8
    li t0, -248
    li t1, 15
    fcvt.d.w ft3, zero
    li t2, 29
    li t3, 2
    scfgwi zero, 32
    scfgwi a3, 64
    scfgwi a4, 192
    scfgwi a5, 96
    scfgwi a6, 224
    scfgwi a3, 128
    scfgwi a7, 256
    scfgwi a0, 832
    scfgwi a3, 33
    scfgwi a5, 65
    scfgwi a7, 193
    scfgwi a3, 97
    scfgwi t0, 225
    scfgwi a1, 801
    scfgwi zero, 34
    scfgwi t1, 66
    scfgwi a7, 194
    scfgwi a2, 898
    csrrsi zero, 1984, 1
    frep.o a3, 12, 0, 0
    fmadd.d ft4, ft0, ft1, ft3
    fmadd.d ft5, ft0, ft1, ft3
    fmadd.d ft6, ft0, ft1, ft3
    fmadd.d ft7, ft0, ft1, ft3
    frep.o t2, 4, 0, 0
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft2, ft0, ft1, ft4
    fmadd.d ft2, ft0, ft1, ft5
    fmadd.d ft2, ft0, ft1, ft6
    fmadd.d ft2, ft0, ft1, ft7
    csrrci zero, 1984, 1
.Lgemv_written1:
    scfgr a0, t3
    bge a0, zero, .Lgemv_written1
    ret
