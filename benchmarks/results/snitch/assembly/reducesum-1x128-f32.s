# kernel: reducesum:1x128 f32
# strategy: heuristic
# machine: snitch
# cycles: 118
# cycles_of_pdojo_snitch: 118
# arguments, in a0 and so on:
#   --arg 'f32[1,128]'
#   --arg 'f32[1]=out'
.text
.globl reducesum
.p2align 2
reducesum:
    addi sp, sp, -32
    fmv.w.x ft3, zero
    fsw ft3, 0(a1)
    fcvt.d.w ft3, zero
    fmv.d ft4, ft3
    fmv.d ft5, ft3
    fmv.d ft6, ft3
    li a2, 63
    li a3, 8
    li a4, 15
    scfgwi zero, 32
    scfgwi a2, 64
    scfgwi a3, 192
    scfgwi a0, 768
    csrrsi zero, 1984, 1
    frep.o a4, 4, 0, 0
    vfadd.s ft3, ft3, ft0
    vfadd.s ft4, ft4, ft0
    vfadd.s ft5, ft5, ft0
    vfadd.s ft6, ft6, ft0
    csrrci zero, 1984, 1
    fsd ft3, 0(sp)
    flw ft3, 0(sp)
    flw ft7, 4(sp)
    flw ft8, 0(a1)
    fsd ft4, 8(sp)
    fadd.s ft3, ft3, ft7
    flw ft4, 8(sp)
    flw ft7, 12(sp)
    fadd.s ft8, ft8, ft3
    fsd ft5, 16(sp)
    fadd.s ft3, ft4, ft7
    flw ft4, 16(sp)
    flw ft5, 20(sp)
    fadd.s ft8, ft8, ft3
    fsd ft6, 24(sp)
    fadd.s ft3, ft4, ft5
    flw ft4, 24(sp)
    flw ft5, 28(sp)
    fadd.s ft8, ft8, ft3
    fadd.s ft3, ft4, ft5
    fadd.s ft8, ft8, ft3
    fsw ft8, 0(a1)
    addi sp, sp, 32
    ret
