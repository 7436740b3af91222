# kernel: copy:16x16 f32
# strategy: greedy
# machine: snitch
# cycles: 150
# cycles_of_pdojo_snitch: 150
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]=out'
.text
.globl copy
.p2align 2
copy:
    li a2, 127
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
