# kernel: sumpool:1x1x10x10x3,S=1,P=0 f32
# strategy: heuristic
# machine: snitch
# cycles: 1787
# cycles_of_pdojo_snitch: 1787
# arguments, in a0 and so on:
#   --arg 'f32[1,1,10,10]'
#   --arg 'f32[1,1,8,8]=out'
.text
.globl sumpool
.p2align 2
sumpool:
    fmv.w.x ft3, zero
    addi a2, a0, 320
.Lsumpool_loop4:
    addi a3, a0, 32
.Lsumpool_loop3:
    fmv.d ft4, ft3
    fmv.d ft5, ft3
    fmv.d ft6, ft3
    fmv.d ft7, ft3
    addi a4, a0, 120
.Lsumpool_loop2:
    addi a5, a0, 12
.Lsumpool_loop1:
    flw ft8, 0(a0)
    flw ft9, 40(a0)
    flw ft10, 80(a0)
    flw ft11, 120(a0)
    fadd.s ft4, ft4, ft8
    fadd.s ft5, ft5, ft9
    fadd.s ft6, ft6, ft10
    fadd.s ft7, ft7, ft11
    addi a0, a0, 4
    bne a0, a5, .Lsumpool_loop1
    addi a0, a0, 28
    bne a0, a4, .Lsumpool_loop2
    fsw ft4, 0(a1)
    fsw ft5, 32(a1)
    fsw ft6, 64(a1)
    fsw ft7, 96(a1)
    addi a0, a0, -116
    addi a1, a1, 4
    bne a0, a3, .Lsumpool_loop3
    addi a0, a0, 128
    addi a1, a1, 96
    bne a0, a2, .Lsumpool_loop4
    ret
