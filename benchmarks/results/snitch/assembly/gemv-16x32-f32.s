# kernel: gemv:16x32 f32
# strategy: heuristic
# machine: snitch
# cycles: 455
# cycles_of_pdojo_snitch: 459
# arguments, in a0 and so on:
#   --arg 'f32[16,32]'
#   --arg 'f32[32]'
#   --arg 'f32[16]=out'
.text
.globl gemv
.p2align 2
gemv:
    addi sp, sp, -32
    fmv.w.x ft3, zero
    fcvt.d.w ft4, zero
    scfgwi zero, 32
    li a3, 3
    scfgwi a3, 64
    li a4, 128
    scfgwi a4, 192
    li a4, 15
    scfgwi a4, 96
    li a5, -376
    scfgwi a5, 224
    scfgwi a3, 33
    scfgwi a4, 65
    li a3, 8
    scfgwi a3, 193
    addi a3, a2, 64
.Lgemv_loop1:
    fmv.d ft5, ft4
    fmv.d ft6, ft4
    fmv.d ft7, ft4
    fmv.d ft8, ft4
    fsw ft3, 0(a2)
    fsw ft3, 4(a2)
    fsw ft3, 8(a2)
    fsw ft3, 12(a2)
    scfgwi a0, 800
    scfgwi a1, 769
    csrrsi zero, 1984, 1
    frep.o a4, 4, 0, 0
    vfmac.s ft5, ft0, ft1
    vfmac.s ft6, ft0, ft1
    vfmac.s ft7, ft0, ft1
    vfmac.s ft8, ft0, ft1
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
    flw ft9, 0(a2)
    flw ft10, 4(a2)
    flw ft11, 8(a2)
    flw fa0, 12(a2)
    fadd.s ft5, ft9, ft5
    fadd.s ft6, ft10, ft6
    fadd.s ft7, ft11, ft7
    fadd.s ft8, fa0, ft8
    fsw ft5, 0(a2)
    fsw ft6, 4(a2)
    fsw ft7, 8(a2)
    fsw ft8, 12(a2)
    addi a2, a2, 16
    addi a0, a0, 512
    bne a2, a3, .Lgemv_loop1
    addi sp, sp, 32
    ret
