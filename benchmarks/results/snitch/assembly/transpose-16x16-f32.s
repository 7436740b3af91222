# kernel: transpose:16x16 f32
# strategy: heuristic
# machine: snitch
# cycles: 722
# cycles_of_pdojo_snitch: 722
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]=out'
.text
.globl transpose
.p2align 2
transpose:
    addi a2, a0, 1024
.Ltranspose_loop2:
    addi a3, a0, 64
.Ltranspose_loop1:
    flw ft3, 0(a0)
    flw ft4, 64(a0)
    flw ft5, 128(a0)
    flw ft6, 192(a0)
    fsw ft3, 0(a1)
    fsw ft4, 4(a1)
    fsw ft5, 8(a1)
    fsw ft6, 12(a1)
    addi a0, a0, 4
    addi a1, a1, 64
    bne a0, a3, .Ltranspose_loop1
    addi a0, a0, 192
    addi a1, a1, -1008
    bne a0, a2, .Ltranspose_loop2
    ret
