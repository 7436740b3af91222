# kernel: reducemean:16x16 f32
# strategy: heuristic
# machine: snitch
# cycles: 567
# cycles_of_pdojo_snitch: 567
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16]=out'
.text
.globl reducemean
.p2align 2
reducemean:
    addi sp, sp, -16
    fmv.w.x ft8, zero
    fcvt.d.w ft9, zero
    scfgwi zero, 32
    li a2, 3
    scfgwi a2, 64
    li a2, 64
    scfgwi a2, 192
    li a2, 7
    scfgwi a2, 96
    li a3, -184
    scfgwi a3, 224
    li a3, 1031798784
    fmv.w.x ft10, a3
    addi a3, a1, 64
.Lreducemean_loop1:
    fsw ft8, 0(a1)
    fsw ft8, 4(a1)
    fsw ft8, 8(a1)
    fsw ft8, 12(a1)
    fmv.d ft3, ft9
    fmv.d ft4, ft9
    fmv.d ft5, ft9
    fmv.d ft6, ft9
    scfgwi a0, 800
    csrrsi zero, 1984, 1
    frep.o a2, 4, 0, 0
    vfadd.s ft3, ft3, ft0
    vfadd.s ft4, ft4, ft0
    vfadd.s ft5, ft5, ft0
    vfadd.s ft6, ft6, ft0
    csrrci zero, 1984, 1
    fsd ft3, 0(sp)
    flw ft3, 0(sp)
    flw ft7, 4(sp)
    fadd.s ft3, ft3, ft7
    flw ft7, 0(a1)
    fadd.s ft3, ft7, ft3
    fsw ft3, 0(a1)
    fsd ft4, 0(sp)
    flw ft3, 0(sp)
    flw ft4, 4(sp)
    fadd.s ft3, ft3, ft4
    flw ft4, 4(a1)
    fadd.s ft3, ft4, ft3
    fsw ft3, 4(a1)
    fsd ft5, 0(sp)
    flw ft3, 0(sp)
    flw ft4, 4(sp)
    fadd.s ft3, ft3, ft4
    flw ft4, 8(a1)
    fadd.s ft3, ft4, ft3
    fsw ft3, 8(a1)
    fsd ft6, 0(sp)
    flw ft3, 0(sp)
    flw ft4, 4(sp)
    fadd.s ft3, ft3, ft4
    flw ft4, 12(a1)
    fadd.s ft3, ft4, ft3
    fsw ft3, 12(a1)
    flw ft3, 0(a1)
    fmul.s ft3, ft3, ft10
    fsw ft3, 0(a1)
    flw ft3, 4(a1)
    fmul.s ft3, ft3, ft10
    fsw ft3, 4(a1)
    flw ft3, 8(a1)
    fmul.s ft3, ft3, ft10
    fsw ft3, 8(a1)
    flw ft3, 12(a1)
    fmul.s ft3, ft3, ft10
    fsw ft3, 12(a1)
    addi a1, a1, 16
    addi a0, a0, 256
    bne a1, a3, .Lreducemean_loop1
    addi sp, sp, 16
    ret
