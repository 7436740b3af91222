# kernel: transpose:16x16 f64
# strategy: greedy
# machine: snitch
# cycles: 286
# cycles_of_pdojo_snitch: 285
# arguments, in a0 and so on:
#   --arg 'f64[16,16]'
#   --arg 'f64[16,16]=out'
.text
.globl transpose
.p2align 2
transpose:
    li a2, 255
    li a3, 8
    li a4, 15
    li a5, 128
    li a6, -1912
    scfgwi zero, 63
    scfgwi a2, 65
    scfgwi a3, 193
    scfgwi a0, 769
    scfgwi a4, 64
    scfgwi a5, 192
    scfgwi a4, 96
    scfgwi a6, 224
    scfgwi a1, 928
    csrrsi zero, 1984, 1
    frep.o a2, 1, 0, 0
    fmv.d ft0, ft1
    csrrci zero, 1984, 1
.Ltranspose_written1:
    scfgr a0, zero
    bge a0, zero, .Ltranspose_written1
    ret
