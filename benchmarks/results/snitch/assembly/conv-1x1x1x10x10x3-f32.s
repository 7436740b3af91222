# kernel: conv:1x1x1x10x10x3 f32
# strategy: heuristic
# machine: snitch
# cycles: 669
# cycles_of_pdojo_snitch: 669
# arguments, in a0 and so on:
#   --arg 'f32[1,1,10,10]'
#   --arg 'f32[1,1,3,3]'
#   --arg 'f32[1,1,8,8]=out'
.text
.globl conv
.p2align 2
conv:
    addi sp, sp, -80
    fsd fs0, 0(sp)
    fsd fs1, 8(sp)
    fsd fs2, 16(sp)
    fsd fs3, 24(sp)
    fsd fs4, 32(sp)
    fsd fs5, 40(sp)
    fsd fs6, 48(sp)
    fsd fs7, 56(sp)
    fsd fs8, 64(sp)
    fsd fs9, 72(sp)
    li a3, 3
    li a4, 32
    li a5, -88
    li a6, 1
    li a7, 8
    fcvt.d.w fa2, zero
    scfgwi zero, 32
    scfgwi a3, 64
    scfgwi a4, 192
    scfgwi a3, 96
    scfgwi a5, 224
    scfgwi a6, 128
    scfgwi a7, 256
    scfgwi a2, 960
    csrrsi zero, 1984, 1
    addi a2, a0, 320
.Lconv_loop2:
    flw ft3, 0(a1)
    flw ft4, 4(a1)
    flw ft5, 8(a1)
    flw ft6, 12(a1)
    flw ft7, 16(a1)
    flw ft8, 20(a1)
    flw ft9, 24(a1)
    flw ft10, 28(a1)
    flw ft11, 32(a1)
    fmv.d fa3, ft3
    fmv.d fa4, ft4
    fmv.d fa5, ft5
    fmv.d fa6, ft6
    fmv.d fa7, ft7
    fmv.d fs0, ft8
    fmv.d fs1, ft9
    fmv.d fs2, ft10
    addi a3, a0, 32
.Lconv_loop1:
    fld ft3, 0(a0)
    fmv.d fa0, fa2
    fld ft7, 40(a0)
    flw ft4, 4(a0)
    fld fs8, 8(a0)
    fmv.d fa1, fa2
    fld ft8, 80(a0)
    flw ft5, 44(a0)
    fld ft9, 48(a0)
    fmv.d fs3, fa2
    vfmac.r.s fa0, ft3, fa3
    fld fs6, 120(a0)
    flw ft3, 84(a0)
    fld ft10, 88(a0)
    fmv.d fs4, fa2
    vfmac.r.s fa1, ft7, fa3
    vfcpka.s.s ft4, ft4, fs8
    flw ft6, 124(a0)
    fld fs5, 128(a0)
    vfmac.r.s fs3, ft8, fa3
    vfcpka.s.s ft5, ft5, ft9
    vfmac.r.s fs4, fs6, fa3
    vfcpka.s.s fs7, ft3, ft10
    vfmac.r.s fa0, ft4, fa4
    vfcpka.s.s fs9, ft6, fs5
    vfmac.r.s fa1, ft5, fa4
    vfmac.r.s fs3, fs7, fa4
    vfmac.r.s fs4, fs9, fa4
    vfmac.r.s fa0, fs8, fa5
    vfmac.r.s fa1, ft9, fa5
    vfmac.r.s fs3, ft10, fa5
    vfmac.r.s fs4, fs5, fa5
    vfmac.r.s fa0, ft7, fa6
    fld ft3, 160(a0)
    vfmac.r.s fa1, ft8, fa6
    flw ft4, 164(a0)
    fld fs8, 168(a0)
    vfmac.r.s fs3, fs6, fa6
    vfmac.r.s fs4, ft3, fa6
    vfmac.r.s fa0, ft5, fa7
    vfcpka.s.s ft4, ft4, fs8
    vfmac.r.s fa1, fs7, fa7
    vfmac.r.s fs3, fs9, fa7
    vfmac.r.s fs4, ft4, fa7
    vfmac.r.s fa0, ft9, fs0
    vfmac.r.s fa1, ft10, fs0
    vfmac.r.s fs3, fs5, fs0
    vfmac.r.s fs4, fs8, fs0
    vfmac.r.s fa0, ft8, fs1
    fld ft5, 200(a0)
    vfmac.r.s fa1, fs6, fs1
    flw ft6, 204(a0)
    fld ft7, 208(a0)
    vfmac.r.s fs3, ft3, fs1
    vfmac.r.s fs4, ft5, fs1
    vfmac.r.s fa0, fs7, fs2
    vfcpka.s.s ft3, ft6, ft7
    vfmac.r.s fa1, fs9, fs2
    vfmac.r.s fs3, ft4, fs2
    vfmac.r.s fs4, ft3, fs2
    vfmac.r.s fa0, ft10, ft11
    vfmac.r.s fa1, fs5, ft11
    vfmac.r.s fs3, fs8, ft11
    vfmac.r.s fs4, ft7, ft11
    fmv.d ft0, fa0
    fld ft3, 8(a0)
    fmv.d ft0, fa1
    fmv.d fa0, fa2
    fld ft7, 48(a0)
    flw ft4, 12(a0)
    fld fs8, 16(a0)
    fmv.d ft0, fs3
    fmv.d fa1, fa2
    fld ft8, 88(a0)
    flw ft5, 52(a0)
    fld ft9, 56(a0)
    fmv.d ft0, fs4
    fmv.d fs3, fa2
    vfmac.r.s fa0, ft3, fa3
    fld fs6, 128(a0)
    flw ft3, 92(a0)
    fld ft10, 96(a0)
    fmv.d fs4, fa2
    vfmac.r.s fa1, ft7, fa3
    vfcpka.s.s ft4, ft4, fs8
    flw ft6, 132(a0)
    fld fs5, 136(a0)
    vfmac.r.s fs3, ft8, fa3
    vfcpka.s.s ft5, ft5, ft9
    vfmac.r.s fs4, fs6, fa3
    vfcpka.s.s fs7, ft3, ft10
    vfmac.r.s fa0, ft4, fa4
    vfcpka.s.s fs9, ft6, fs5
    vfmac.r.s fa1, ft5, fa4
    vfmac.r.s fs3, fs7, fa4
    vfmac.r.s fs4, fs9, fa4
    vfmac.r.s fa0, fs8, fa5
    vfmac.r.s fa1, ft9, fa5
    vfmac.r.s fs3, ft10, fa5
    vfmac.r.s fs4, fs5, fa5
    vfmac.r.s fa0, ft7, fa6
    fld ft3, 168(a0)
    vfmac.r.s fa1, ft8, fa6
    flw ft4, 172(a0)
    fld fs8, 176(a0)
    vfmac.r.s fs3, fs6, fa6
    vfmac.r.s fs4, ft3, fa6
    vfmac.r.s fa0, ft5, fa7
    vfcpka.s.s ft4, ft4, fs8
    vfmac.r.s fa1, fs7, fa7
    vfmac.r.s fs3, fs9, fa7
    vfmac.r.s fs4, ft4, fa7
    vfmac.r.s fa0, ft9, fs0
    vfmac.r.s fa1, ft10, fs0
    vfmac.r.s fs3, fs5, fs0
    vfmac.r.s fs4, fs8, fs0
    vfmac.r.s fa0, ft8, fs1
    fld ft5, 208(a0)
    vfmac.r.s fa1, fs6, fs1
    flw ft6, 212(a0)
    fld ft7, 216(a0)
    vfmac.r.s fs3, ft3, fs1
    vfmac.r.s fs4, ft5, fs1
    vfmac.r.s fa0, fs7, fs2
    vfcpka.s.s ft3, ft6, ft7
    vfmac.r.s fa1, fs9, fs2
    vfmac.r.s fs3, ft4, fs2
    vfmac.r.s fs4, ft3, fs2
    vfmac.r.s fa0, ft10, ft11
    vfmac.r.s fa1, fs5, ft11
    vfmac.r.s fs3, fs8, ft11
    vfmac.r.s fs4, ft7, ft11
    fmv.d ft0, fa0
    fmv.d ft0, fa1
    fmv.d ft0, fs3
    fmv.d ft0, fs4
    addi a0, a0, 16
    bne a0, a3, .Lconv_loop1
    addi a0, a0, 128
    bne a0, a2, .Lconv_loop2
    csrrci zero, 1984, 1
.Lconv_written3:
    scfgr a0, zero
    bge a0, zero, .Lconv_written3
    fld fs0, 0(sp)
    fld fs1, 8(sp)
    fld fs2, 16(sp)
    fld fs3, 24(sp)
    fld fs4, 32(sp)
    fld fs5, 40(sp)
    fld fs6, 48(sp)
    fld fs7, 56(sp)
    fld fs8, 64(sp)
    fld fs9, 72(sp)
    addi sp, sp, 80
    ret
