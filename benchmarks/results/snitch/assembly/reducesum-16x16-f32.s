# kernel: reducesum:16x16 f32
# strategy: heuristic
# machine: snitch
# cycles: 319
# cycles_of_pdojo_snitch: 319
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16]=out'
.text
.globl reducesum
.p2align 2
reducesum:
    addi sp, sp, -32
    fmv.w.x ft3, zero
    fcvt.d.w ft4, zero
    scfgwi zero, 32
    li a2, 3
    scfgwi a2, 64
    li a2, 64
    scfgwi a2, 192
    li a2, 7
    scfgwi a2, 96
    li a3, -184
    scfgwi a3, 224
    addi a3, a1, 64
.Lreducesum_loop1:
    fmv.d ft5, ft4
    fmv.d ft6, ft4
    fmv.d ft7, ft4
    fmv.d ft8, ft4
    fsw ft3, 0(a1)
    fsw ft3, 4(a1)
    fsw ft3, 8(a1)
    fsw ft3, 12(a1)
    scfgwi a0, 800
    csrrsi zero, 1984, 1
    frep.o a2, 4, 0, 0
    vfadd.s ft5, ft5, ft0
    vfadd.s ft6, ft6, ft0
    vfadd.s ft7, ft7, ft0
    vfadd.s ft8, ft8, ft0
    csrrci zero, 1984, 1
    fsd ft5, 0(sp)
    fsd ft6, 8(sp)
    fsd ft7, 16(sp)
    fsd ft8, 24(sp)
    flw ft5, 0(sp)
    flw ft6, 4(sp)
    flw ft7, 8(sp)
    flw ft8, 12(sp)
    flw ft9, 16(sp)
    flw ft10, 20(sp)
    flw ft11, 24(sp)
    flw fa0, 28(sp)
    fadd.s ft5, ft5, ft6
    fadd.s ft6, ft7, ft8
    fadd.s ft7, ft9, ft10
    fadd.s ft8, ft11, fa0
    flw ft9, 0(a1)
    flw ft10, 4(a1)
    flw ft11, 8(a1)
    flw fa0, 12(a1)
    fadd.s ft5, ft9, ft5
    fadd.s ft6, ft10, ft6
    fadd.s ft7, ft11, ft7
    fadd.s ft8, fa0, ft8
    fsw ft5, 0(a1)
    fsw ft6, 4(a1)
    fsw ft7, 8(a1)
    fsw ft8, 12(a1)
    addi a1, a1, 16
    addi a0, a0, 256
    bne a1, a3, .Lreducesum_loop1
    addi sp, sp, 32
    ret
