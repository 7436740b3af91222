# kernel: copy:16x16 f64
# strategy: greedy
# machine: snitch
# cycles: 278
# cycles_of_pdojo_snitch: 278
# arguments, in a0 and so on:
#   --arg 'f64[16,16]'
#   --arg 'f64[16,16]=out'
.text
.globl copy
.p2align 2
copy:
    li a2, 255
    li a3, 8
    scfgwi zero, 63
    scfgwi a2, 95
    scfgwi a3, 223
    scfgwi a0, 769
    scfgwi a1, 896
    csrrsi zero, 1984, 1
    frep.o a2, 1, 0, 0
    fmv.d ft0, ft1
    csrrci zero, 1984, 1
.Lcopy_written1:
    scfgr a0, zero
    bge a0, zero, .Lcopy_written1
    ret
