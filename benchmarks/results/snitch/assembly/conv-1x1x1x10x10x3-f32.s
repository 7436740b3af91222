# kernel: conv:1x1x1x10x10x3 f32
# strategy: heuristic
# machine: snitch
# cycles: 527
# cycles_of_pdojo_snitch: 523
# arguments, in a0 and so on:
#   --arg 'f32[1,1,10,10]'
#   --arg 'f32[1,1,3,3]'
#   --arg 'f32[1,1,8,8]=out'
#   --arg 'i8[320]=zero'
.text
.globl conv
.p2align 2
conv:
    mv t4, a2
    mv t5, a3
    flw ft3, 0(a1)
    flw ft4, 12(a1)
    flw ft5, 24(a1)
    flw ft6, 8(a1)
    flw ft7, 20(a1)
    flw ft8, 32(a1)
    fcvt.d.w ft9, zero
    li a2, 8
    li a3, 3
    li a4, 2
    li a5, 16
    li a6, 1
    li a7, -96
    li t0, 7
    li t1, -72
    li t2, 31
    scfgwi zero, 63
    scfgwi a2, 223
    scfgwi a3, 65
    scfgwi a4, 97
    scfgwi a5, 225
    scfgwi a6, 129
    scfgwi a7, 257
    scfgwi t0, 161
    scfgwi t1, 289
    scfgwi a0, 865
    scfgwi t2, 64
    scfgwi t4, 896
    csrrsi zero, 1984, 1
    frep.o t0, 32, 0, 0
    fmv.d ft10, ft9
    fmv.d ft11, ft9
    fmv.d fa0, ft9
    fmv.d fa1, ft9
    vfmac.r.s ft10, ft1, ft3
    vfmac.r.s ft11, ft1, ft3
    vfmac.r.s fa0, ft1, ft3
    vfmac.r.s fa1, ft1, ft3
    vfmac.r.s ft10, ft1, ft4
    vfmac.r.s ft11, ft1, ft4
    vfmac.r.s fa0, ft1, ft4
    vfmac.r.s fa1, ft1, ft4
    vfmac.r.s ft10, ft1, ft5
    vfmac.r.s ft11, ft1, ft5
    vfmac.r.s fa0, ft1, ft5
    vfmac.r.s fa1, ft1, ft5
    vfmac.r.s ft10, ft1, ft6
    vfmac.r.s ft11, ft1, ft6
    vfmac.r.s fa0, ft1, ft6
    vfmac.r.s fa1, ft1, ft6
    vfmac.r.s ft10, ft1, ft7
    vfmac.r.s ft11, ft1, ft7
    vfmac.r.s fa0, ft1, ft7
    vfmac.r.s fa1, ft1, ft7
    vfmac.r.s ft10, ft1, ft8
    vfmac.r.s ft11, ft1, ft8
    vfmac.r.s fa0, ft1, ft8
    vfmac.r.s fa1, ft1, ft8
    fmv.d ft0, ft10
    fmv.d ft0, ft11
    fmv.d ft0, fa0
    fmv.d ft0, fa1
    csrrci zero, 1984, 1
    addi a0, a0, 4
    mv a2, t5
    addi a3, a0, 400
.Lconv_loop1:
    lw a4, 0(a0)
    lw a5, 4(a0)
    lw a6, 8(a0)
    lw a7, 12(a0)
    lw t0, 16(a0)
    lw t1, 20(a0)
    lw t2, 24(a0)
    lw t3, 28(a0)
    sw a4, 0(a2)
    sw a5, 4(a2)
    sw a6, 8(a2)
    sw a7, 12(a2)
    sw t0, 16(a2)
    sw t1, 20(a2)
    sw t2, 24(a2)
    sw t3, 28(a2)
    addi a0, a0, 40
    addi a2, a2, 32
    bne a0, a3, .Lconv_loop1
    flw ft3, 4(a1)
    flw ft4, 16(a1)
    flw ft5, 28(a1)
    li a0, 8
    li a1, 31
    li a2, 11
    li a3, 7
    li a4, -56
    li a5, 2
.Lconv_written2:
    scfgr a6, zero
    bge a6, zero, .Lconv_written2
    fence
    scfgwi zero, 63
    scfgwi a0, 223
    scfgwi a1, 64
    scfgwi t4, 768
    scfgwi a2, 65
    scfgwi a3, 97
    scfgwi a4, 225
    scfgwi t5, 801
    scfgwi a1, 66
    scfgwi t4, 898
    csrrsi zero, 1984, 1
    frep.o a3, 20, 0, 0
    fmv.d ft6, ft0
    fmv.d ft7, ft0
    fmv.d ft8, ft0
    fmv.d ft9, ft0
    vfmac.r.s ft6, ft1, ft3
    vfmac.r.s ft7, ft1, ft3
    vfmac.r.s ft8, ft1, ft3
    vfmac.r.s ft9, ft1, ft3
    vfmac.r.s ft6, ft1, ft4
    vfmac.r.s ft7, ft1, ft4
    vfmac.r.s ft8, ft1, ft4
    vfmac.r.s ft9, ft1, ft4
    vfmac.r.s ft6, ft1, ft5
    vfmac.r.s ft7, ft1, ft5
    vfmac.r.s ft8, ft1, ft5
    vfmac.r.s ft9, ft1, ft5
    fmv.d ft2, ft6
    fmv.d ft2, ft7
    fmv.d ft2, ft8
    fmv.d ft2, ft9
    csrrci zero, 1984, 1
.Lconv_written3:
    scfgr a0, a5
    bge a0, zero, .Lconv_written3
    ret
