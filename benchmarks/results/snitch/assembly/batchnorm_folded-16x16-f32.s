# kernel: batchnorm_folded:16x16 f32
# strategy: heuristic
# machine: snitch
# cycles: 586
# cycles_of_pdojo_snitch: 586
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16]'
#   --arg 'f32[16]'
#   --arg 'f32[16,16]=out'
.text
.globl batchnorm_folded
.p2align 2
batchnorm_folded:
    addi sp, sp, -96
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
    fsd fs10, 80(sp)
    fsd fs11, 88(sp)
    addi a4, a0, 1024
.Lbatchnorm_folded_loop1:
    fld ft3, 0(a0)
    fld ft9, 0(a1)
    fld ft4, 0(a2)
    fld ft5, 64(a0)
    fld ft6, 128(a0)
    fld ft10, 192(a0)
    fld ft11, 8(a0)
    fld fa0, 8(a1)
    fld fa1, 8(a2)
    fld fa2, 72(a0)
    fld fa3, 136(a0)
    fld fa4, 200(a0)
    fld fa5, 16(a0)
    fld fa7, 16(a1)
    fld ft0, 16(a2)
    fld fa6, 80(a0)
    fld ft1, 144(a0)
    fld ft2, 208(a0)
    fld fs0, 24(a0)
    fld fs1, 24(a1)
    fld fs2, 24(a2)
    fld fs3, 88(a0)
    fld fs4, 152(a0)
    fld fs5, 216(a0)
    fmv.d ft7, ft4
    fmv.d ft8, ft4
    vfmac.s ft7, ft3, ft9
    fld fs6, 32(a0)
    vfmac.s ft8, ft5, ft9
    fld fs7, 32(a1)
    fsd ft7, 0(a3)
    fld ft7, 32(a2)
    fsd ft8, 64(a3)
    fmv.d ft3, ft4
    fld ft8, 96(a0)
    vfmac.s ft3, ft6, ft9
    fld ft6, 160(a0)
    fmv.d ft5, fa1
    vfmac.s ft4, ft10, ft9
    fld fs8, 224(a0)
    vfmac.s ft5, ft11, fa0
    fsd ft3, 128(a3)
    fld fs9, 40(a0)
    fsd ft4, 192(a3)
    fld fs10, 40(a1)
    fsd ft5, 8(a3)
    fmv.d ft11, fa1
    fld fs11, 40(a2)
    vfmac.s ft11, fa2, fa0
    fmv.d ft10, fa1
    fld fa2, 104(a0)
    vfmac.s ft10, fa3, fa0
    fld fa3, 168(a0)
    vfmac.s fa1, fa4, fa0
    fld ft5, 232(a0)
    fld ft9, 48(a0)
    fmv.d fa0, ft0
    fld fa4, 48(a1)
    vfmac.s fa0, fa5, fa7
    fmv.d ft4, ft0
    fld fa5, 48(a2)
    vfmac.s ft4, fa6, fa7
    fmv.d ft3, ft0
    fld fa6, 112(a0)
    vfmac.s ft3, ft1, fa7
    fld ft1, 176(a0)
    vfmac.s ft0, ft2, fa7
    fmv.d fa7, fs2
    fmv.d ft2, fs2
    vfmac.s fa7, fs0, fs1
    fld fs0, 240(a0)
    vfmac.s ft2, fs3, fs1
    fmv.d fs3, fs2
    vfmac.s fs2, fs4, fs1
    fld fs4, 56(a0)
    vfmac.s fs3, fs5, fs1
    fmv.d fs1, ft7
    fmv.d fs5, ft7
    vfmac.s fs1, fs6, fs7
    fld fs6, 56(a1)
    vfmac.s fs5, ft8, fs7
    fmv.d ft8, ft7
    vfmac.s ft7, ft6, fs7
    fld ft6, 56(a2)
    vfmac.s ft8, fs8, fs7
    fmv.d fs7, fs11
    fmv.d fs8, fs11
    vfmac.s fs7, fs9, fs10
    fld fs9, 120(a0)
    vfmac.s fs8, fa2, fs10
    fmv.d fa2, fs11
    vfmac.s fs11, fa3, fs10
    fld fa3, 184(a0)
    vfmac.s fa2, ft5, fs10
    fld ft5, 248(a0)
    addi a0, a0, 256
    fmv.d fs10, fa5
    fsd ft11, 72(a3)
    fmv.d ft11, fa5
    fsd ft10, 136(a3)
    fmv.d ft10, fa5
    vfmac.s fs10, ft9, fa4
    fmv.d ft9, ft6
    fsd fa1, 200(a3)
    fmv.d fa1, ft6
    fsd fa0, 16(a3)
    fmv.d fa0, ft6
    vfmac.s ft11, fa6, fa4
    vfmac.s fa5, ft1, fa4
    vfmac.s ft10, fs0, fa4
    vfmac.s ft9, fs4, fs6
    vfmac.s fa1, fs9, fs6
    vfmac.s ft6, fa3, fs6
    vfmac.s fa0, ft5, fs6
    fsd ft4, 80(a3)
    fsd ft3, 144(a3)
    fsd ft0, 208(a3)
    fsd fa7, 24(a3)
    fsd ft2, 88(a3)
    fsd fs2, 152(a3)
    fsd fs3, 216(a3)
    fsd fs1, 32(a3)
    fsd fs5, 96(a3)
    fsd ft7, 160(a3)
    fsd ft8, 224(a3)
    fsd fs7, 40(a3)
    fsd fs8, 104(a3)
    fsd fs11, 168(a3)
    fsd fa2, 232(a3)
    fsd fs10, 48(a3)
    fsd ft11, 112(a3)
    fsd fa5, 176(a3)
    fsd ft10, 240(a3)
    fsd ft9, 56(a3)
    fsd fa1, 120(a3)
    fsd ft6, 184(a3)
    fsd fa0, 248(a3)
    addi a3, a3, 256
    bne a0, a4, .Lbatchnorm_folded_loop1
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
    fld fs10, 80(sp)
    fld fs11, 88(sp)
    addi sp, sp, 96
    ret
