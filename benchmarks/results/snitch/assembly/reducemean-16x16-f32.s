# kernel: reducemean:16x16 f32
# strategy: heuristic
# machine: snitch
# cycles: 369
# cycles_of_pdojo_snitch: 369
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16]=out'
.text
.globl reducemean
.p2align 2
reducemean:
    addi sp, sp, -32
    fmv.w.x ft11, zero
    fcvt.d.w fa0, zero
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
    fmv.w.x fa1, a3
    addi a3, a1, 64
.Lreducemean_loop1:
    fmv.d ft3, fa0
    fmv.d ft4, fa0
    fmv.d ft5, fa0
    fmv.d ft6, fa0
    fsw ft11, 0(a1)
    fsw ft11, 4(a1)
    fsw ft11, 8(a1)
    fsw ft11, 12(a1)
    scfgwi a0, 800
    csrrsi zero, 1984, 1
    frep.o a2, 4, 0, 0
    vfadd.s ft3, ft3, ft0
    vfadd.s ft4, ft4, ft0
    vfadd.s ft5, ft5, ft0
    vfadd.s ft6, ft6, ft0
    csrrci zero, 1984, 1
    fsd ft3, 0(sp)
    fsd ft4, 8(sp)
    fsd ft5, 16(sp)
    fsd ft6, 24(sp)
    flw ft3, 0(sp)
    flw ft4, 4(sp)
    flw ft5, 8(sp)
    flw ft6, 12(sp)
    flw ft7, 16(sp)
    flw ft8, 20(sp)
    flw ft9, 24(sp)
    flw ft10, 28(sp)
    fadd.s ft3, ft3, ft4
    fadd.s ft4, ft5, ft6
    fadd.s ft5, ft7, ft8
    fadd.s ft6, ft9, ft10
    flw ft7, 0(a1)
    flw ft8, 4(a1)
    flw ft9, 8(a1)
    flw ft10, 12(a1)
    fadd.s ft3, ft7, ft3
    fadd.s ft4, ft8, ft4
    fadd.s ft5, ft9, ft5
    fadd.s ft6, ft10, ft6
    fsw ft3, 0(a1)
    fsw ft4, 4(a1)
    fsw ft5, 8(a1)
    fsw ft6, 12(a1)
    flw ft3, 0(a1)
    flw ft4, 4(a1)
    flw ft5, 8(a1)
    flw ft6, 12(a1)
    fmul.s ft3, ft3, fa1
    fmul.s ft4, ft4, fa1
    fmul.s ft5, ft5, fa1
    fmul.s ft6, ft6, fa1
    fsw ft3, 0(a1)
    fsw ft4, 4(a1)
    fsw ft5, 8(a1)
    fsw ft6, 12(a1)
    addi a1, a1, 16
    addi a0, a0, 256
    bne a1, a3, .Lreducemean_loop1
    addi sp, sp, 32
    ret
