# kernel: relu:16x16 f32
# strategy: greedy
# machine: snitch
# cycles: 151
# cycles_of_pdojo_snitch: 151
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]=out'
.text
.globl relu
.p2align 2
relu:
    li a2, 127
    li a3, 8
    fcvt.d.w ft3, zero
    scfgwi zero, 63
    scfgwi a2, 95
    scfgwi a3, 223
    scfgwi a0, 769
    scfgwi a1, 896
    csrrsi zero, 1984, 1
    frep.o a2, 1, 0, 0
    vfmax.s ft0, ft1, ft3
    csrrci zero, 1984, 1
.Lrelu_written1:
    scfgr a0, zero
    bge a0, zero, .Lrelu_written1
    ret
