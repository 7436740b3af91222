# kernel: conv:1x1x1x10x10x3 f32
# strategy: heuristic
# machine: snitch
# cycles: 2091
# cycles_of_pdojo_snitch: 2091
# arguments, in a0 and so on:
#   --arg 'f32[1,1,10,10]'
#   --arg 'f32[1,1,3,3]'
#   --arg 'f32[1,1,8,8]=out'
.text
.globl conv
.p2align 2
conv:
    fmv.w.x ft3, zero
    addi a3, a0, 320
.Lconv_loop4:
    addi a4, a0, 32
.Lconv_loop3:
    fmv.d ft4, ft3
    fmv.d ft5, ft3
    fmv.d ft6, ft3
    fmv.d ft7, ft3
    mv a5, a1
    addi a6, a0, 120
.Lconv_loop2:
    addi a7, a0, 12
.Lconv_loop1:
    flw ft8, 0(a0)
    flw ft9, 0(a5)
    flw ft10, 40(a0)
    flw ft11, 80(a0)
    flw fa0, 120(a0)
    fmadd.s ft4, ft8, ft9, ft4
    fmadd.s ft5, ft10, ft9, ft5
    fmadd.s ft6, ft11, ft9, ft6
    fmadd.s ft7, fa0, ft9, ft7
    addi a0, a0, 4
    addi a5, a5, 4
    bne a0, a7, .Lconv_loop1
    addi a0, a0, 28
    bne a0, a6, .Lconv_loop2
    fsw ft4, 0(a2)
    fsw ft5, 32(a2)
    fsw ft6, 64(a2)
    fsw ft7, 96(a2)
    addi a0, a0, -116
    addi a2, a2, 4
    bne a0, a4, .Lconv_loop3
    addi a0, a0, 128
    addi a2, a2, 96
    bne a0, a3, .Lconv_loop4
    ret
