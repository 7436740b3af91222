# kernel: reducemean:16x16 f64
# strategy: heuristic
# machine: snitch
# cycles: 339
# cycles_of_pdojo_snitch: 339
# arguments, in a0 and so on:
#   --arg 'f64[16,16]'
#   --arg 'f64[16]=out'
.data
.balign 8
reducemean_constants:
.word 0x00000000, 0x40300000
.word 0x00000000, 0x3fb00000
.text
.globl reducemean
.p2align 2
reducemean:
    li a2, 15
    li a3, 128
    li a4, 3
    li a5, 14
    li a6, -376
    li a7, 16
    li t0, 8
    fcvt.d.w ft3, zero
    la t1, reducemean_constants
    fld ft4, 8(t1)
    li t1, 2
    scfgwi zero, 63
    scfgwi a2, 64
    scfgwi a3, 192
    scfgwi a0, 768
    scfgwi a4, 65
    scfgwi a3, 193
    scfgwi a5, 97
    scfgwi a6, 225
    scfgwi a4, 129
    scfgwi a7, 257
    addi a0, a0, 8
    scfgwi a0, 833
    scfgwi a2, 66
    scfgwi t0, 194
    scfgwi a1, 898
    csrrsi zero, 1984, 1
    frep.o a4, 16, 0, 0
    fadd.d ft5, ft3, ft0
    fadd.d ft6, ft3, ft0
    fadd.d ft7, ft3, ft0
    fadd.d ft8, ft3, ft0
    frep.o a5, 4, 0, 0
    fadd.d ft5, ft5, ft1
    fadd.d ft6, ft6, ft1
    fadd.d ft7, ft7, ft1
    fadd.d ft8, ft8, ft1
    fmul.d ft5, ft5, ft4
    fmul.d ft6, ft6, ft4
    fmul.d ft7, ft7, ft4
    fmul.d ft8, ft8, ft4
    fmv.d ft2, ft5
    fmv.d ft2, ft6
    fmv.d ft2, ft7
    fmv.d ft2, ft8
    csrrci zero, 1984, 1
.Lreducemean_written1:
    scfgr a0, t1
    bge a0, zero, .Lreducemean_written1
    ret
