# kernel: reducesum:16x16 f64
# strategy: heuristic
# machine: snitch
# cycles: 291
# cycles_of_pdojo_snitch: 291
# arguments, in a0 and so on:
#   --arg 'f64[16,16]'
#   --arg 'f64[16]=out'
.text
.globl reducesum
.p2align 2
reducesum:
    li a2, 3
    li a3, 128
    li a4, 15
    li a5, -376
    li a6, 8
    fcvt.d.w ft3, zero
    li a7, 13
    li t0, 1
    scfgwi zero, 63
    scfgwi a2, 64
    scfgwi a3, 192
    scfgwi a4, 96
    scfgwi a5, 224
    scfgwi a2, 128
    scfgwi a6, 256
    scfgwi a0, 832
    scfgwi a4, 65
    scfgwi a6, 193
    scfgwi a1, 897
    csrrsi zero, 1984, 1
    frep.o a2, 12, 0, 0
    fadd.d ft4, ft3, ft0
    fadd.d ft5, ft3, ft0
    fadd.d ft6, ft3, ft0
    fadd.d ft7, ft3, ft0
    frep.o a7, 4, 0, 0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    fadd.d ft7, ft7, ft0
    fadd.d ft1, ft4, ft0
    fadd.d ft1, ft5, ft0
    fadd.d ft1, ft6, ft0
    fadd.d ft1, ft7, ft0
    csrrci zero, 1984, 1
.Lreducesum_written1:
    scfgr a0, t0
    bge a0, zero, .Lreducesum_written1
    ret
