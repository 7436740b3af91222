# kernel: reducesum:16x16 f32
# strategy: heuristic
# machine: snitch
# cycles: 437
# cycles_of_pdojo_snitch: 437
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16]=out'
.text
.globl reducesum
.p2align 2
reducesum:
    addi sp, sp, -16
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
    fsw ft3, 0(a1)
    fsw ft3, 4(a1)
    fsw ft3, 8(a1)
    fsw ft3, 12(a1)
    fmv.d ft5, ft4
    fmv.d ft6, ft4
    fmv.d ft7, ft4
    fmv.d ft8, ft4
    scfgwi a0, 800
    csrrsi zero, 1984, 1
    frep.o a2, 4, 0, 0
    vfadd.s ft5, ft5, ft0
    vfadd.s ft6, ft6, ft0
    vfadd.s ft7, ft7, ft0
    vfadd.s ft8, ft8, ft0
    csrrci zero, 1984, 1
    fsd ft5, 0(sp)
    flw ft5, 0(sp)
    flw ft9, 4(sp)
    fadd.s ft5, ft5, ft9
    flw ft9, 0(a1)
    fadd.s ft5, ft9, ft5
    fsw ft5, 0(a1)
    fsd ft6, 0(sp)
    flw ft5, 0(sp)
    flw ft6, 4(sp)
    fadd.s ft5, ft5, ft6
    flw ft6, 4(a1)
    fadd.s ft5, ft6, ft5
    fsw ft5, 4(a1)
    fsd ft7, 0(sp)
    flw ft5, 0(sp)
    flw ft6, 4(sp)
    fadd.s ft5, ft5, ft6
    flw ft6, 8(a1)
    fadd.s ft5, ft6, ft5
    fsw ft5, 8(a1)
    fsd ft8, 0(sp)
    flw ft5, 0(sp)
    flw ft6, 4(sp)
    fadd.s ft5, ft5, ft6
    flw ft6, 12(a1)
    fadd.s ft5, ft6, ft5
    fsw ft5, 12(a1)
    addi a1, a1, 16
    addi a0, a0, 256
    bne a1, a3, .Lreducesum_loop1
    addi sp, sp, 16
    ret
