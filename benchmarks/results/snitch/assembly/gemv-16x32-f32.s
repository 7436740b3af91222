# kernel: gemv:16x32 f32
# strategy: heuristic
# machine: snitch
# cycles: 349
# cycles_of_pdojo_snitch: 349
# arguments, in a0 and so on:
#   --arg 'f32[16,32]'
#   --arg 'f32[32]'
#   --arg 'f32[16]=out'
.text
.globl gemv
.p2align 2
gemv:
    li a3, 3
    li a4, 128
    li a5, 15
    li a6, -376
    li a7, 8
    li t0, -120
    fmv.w.x ft3, zero
    fcvt.d.w ft4, zero
    scfgwi zero, 32
    scfgwi a3, 64
    scfgwi a4, 192
    scfgwi a5, 96
    scfgwi a6, 224
    scfgwi a3, 128
    scfgwi a7, 256
    scfgwi a0, 832
    scfgwi a3, 33
    scfgwi a5, 65
    scfgwi a7, 193
    scfgwi a3, 97
    scfgwi t0, 225
    scfgwi a1, 801
    csrrsi zero, 1984, 1
    addi a0, a2, 64
.Lgemv_loop1:
    fmv.d ft5, ft3
    fmv.d ft6, ft3
    fmv.d ft7, ft3
    fmv.d ft8, ft3
    fmv.d ft9, ft4
    fmv.d ft10, ft4
    fmv.d ft11, ft4
    fmv.d fa0, ft4
    frep.o a5, 4, 0, 0
    vfmac.s ft9, ft0, ft1
    vfmac.s ft10, ft0, ft1
    vfmac.s ft11, ft0, ft1
    vfmac.s fa0, ft0, ft1
    vfsum.s ft5, ft9
    vfsum.s ft6, ft10
    vfsum.s ft7, ft11
    vfsum.s ft8, fa0
    fsw ft5, 0(a2)
    fsw ft6, 4(a2)
    fsw ft7, 8(a2)
    fsw ft8, 12(a2)
    addi a2, a2, 16
    bne a2, a0, .Lgemv_loop1
    csrrci zero, 1984, 1
    ret
