# kernel: reducesum:1x128 f32
# strategy: heuristic
# machine: snitch
# cycles: 115
# cycles_of_pdojo_snitch: 115
# arguments, in a0 and so on:
#   --arg 'f32[1,128]'
#   --arg 'f32[1]=out'
.text
.globl reducesum
.p2align 2
reducesum:
    addi sp, sp, -32
    li a2, 63
    li a3, 8
    fmv.w.x ft3, zero
    fcvt.d.w ft4, zero
    li a4, 15
    scfgwi zero, 32
    scfgwi a2, 64
    scfgwi a3, 192
    scfgwi a0, 768
    csrrsi zero, 1984, 1
    fmv.d ft5, ft4
    fmv.d ft6, ft4
    fmv.d ft7, ft4
    frep.o a4, 4, 0, 0
    vfadd.s ft4, ft4, ft0
    vfadd.s ft5, ft5, ft0
    vfadd.s ft6, ft6, ft0
    vfadd.s ft7, ft7, ft0
    fsd ft4, 0(sp)
    flw ft4, 0(sp)
    flw ft8, 4(sp)
    fsd ft5, 8(sp)
    flw ft5, 8(sp)
    fadd.s ft4, ft4, ft8
    flw ft8, 12(sp)
    fsd ft6, 16(sp)
    flw ft6, 16(sp)
    fadd.s ft3, ft3, ft4
    fadd.s ft4, ft5, ft8
    flw ft5, 20(sp)
    fsd ft7, 24(sp)
    fadd.s ft5, ft6, ft5
    fadd.s ft3, ft3, ft4
    flw ft4, 24(sp)
    flw ft6, 28(sp)
    fadd.s ft4, ft4, ft6
    fadd.s ft3, ft3, ft5
    fadd.s ft3, ft3, ft4
    csrrci zero, 1984, 1
    fsw ft3, 0(a1)
    addi sp, sp, 32
    ret
