# kernel: gemv:16x32 f32
# strategy: heuristic
# machine: snitch
# cycles: 570
# cycles_of_pdojo_snitch: 571
# arguments, in a0 and so on:
#   --arg 'f32[16,32]'
#   --arg 'f32[32]'
#   --arg 'f32[16]=out'
.text
.globl gemv
.p2align 2
gemv:
    addi sp, sp, -16
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
    fsw ft3, 0(a2)
    fsw ft3, 4(a2)
    fsw ft3, 8(a2)
    fsw ft3, 12(a2)
    fmv.d ft5, ft4
    fmv.d ft6, ft4
    fmv.d ft7, ft4
    fmv.d ft8, ft4
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
    flw ft5, 0(sp)
    flw ft9, 4(sp)
    fadd.s ft5, ft5, ft9
    flw ft9, 0(a2)
    fadd.s ft5, ft9, ft5
    fsw ft5, 0(a2)
    fsd ft6, 0(sp)
    flw ft5, 0(sp)
    flw ft6, 4(sp)
    fadd.s ft5, ft5, ft6
    flw ft6, 4(a2)
    fadd.s ft5, ft6, ft5
    fsw ft5, 4(a2)
    fsd ft7, 0(sp)
    flw ft5, 0(sp)
    flw ft6, 4(sp)
    fadd.s ft5, ft5, ft6
    flw ft6, 8(a2)
    fadd.s ft5, ft6, ft5
    fsw ft5, 8(a2)
    fsd ft8, 0(sp)
    flw ft5, 0(sp)
    flw ft6, 4(sp)
    fadd.s ft5, ft5, ft6
    flw ft6, 12(a2)
    fadd.s ft5, ft6, ft5
    fsw ft5, 12(a2)
    addi a2, a2, 16
    addi a0, a0, 512
    bne a2, a3, .Lgemv_loop1
    addi sp, sp, 16
    ret
