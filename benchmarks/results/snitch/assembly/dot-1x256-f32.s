# kernel: dot:1x256 f32
# strategy: heuristic
# machine: snitch
# cycles: 183
# cycles_of_pdojo_snitch: 183
# arguments, in a0 and so on:
#   --arg 'f32[1,256]'
#   --arg 'f32[1,256]'
#   --arg 'f32[1]=out'
.text
.globl dot
.p2align 2
dot:
    addi sp, sp, -32
    fmv.w.x ft3, zero
    fsw ft3, 0(a2)
    fcvt.d.w ft3, zero
    fmv.d ft4, ft3
    fmv.d ft5, ft3
    fmv.d ft6, ft3
    li a3, 127
    li a4, 8
    li a5, 31
    scfgwi zero, 63
    scfgwi a3, 95
    scfgwi a4, 223
    scfgwi a0, 768
    scfgwi a1, 769
    csrrsi zero, 1984, 1
    frep.o a5, 4, 0, 0
    vfmac.s ft3, ft0, ft1
    vfmac.s ft4, ft0, ft1
    vfmac.s ft5, ft0, ft1
    vfmac.s ft6, ft0, ft1
    csrrci zero, 1984, 1
    fsd ft3, 0(sp)
    flw ft3, 0(sp)
    flw ft7, 4(sp)
    flw ft8, 0(a2)
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
    fsw ft8, 0(a2)
    addi sp, sp, 32
    ret
