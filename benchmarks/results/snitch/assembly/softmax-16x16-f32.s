# kernel: softmax:16x16 f32
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 10140
# cycles_of_pdojo_snitch: 10140
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]=out'
#   --arg 'i8[256]=zero'
.data
.balign 8
softmax_constants:
.word 0xff800000, 0xff800000
.word 0xc2af0000, 0xc2af0000
.word 0x42b20000, 0x42b20000
.word 0x3fb8aa3b, 0x3fb8aa3b
.word 0x4b40007e, 0x4b40007e
.word 0xbf317218, 0xbf317218
.word 0x3102e308, 0x3102e308
.word 0x3c87cf54, 0x3c87cf54
.word 0x3dab9d6e, 0x3dab9d6e
.word 0x3eaaad41, 0x3eaaad41
.word 0x3f7ffee2, 0x3f7ffee2
.word 0x3ffffffb, 0x3ffffffb
.word 0x40000000, 0x40000000
.word 0x00000000, 0x41c7a000
.word 0x3f800000, 0x3f800000
.word 0x80000000, 0x80000000
.text
.globl softmax
.p2align 2
softmax:
    addi sp, sp, -256
    fsd fs0, 152(sp)
    fsd fs1, 160(sp)
    fsd fs2, 168(sp)
    fsd fs3, 176(sp)
    fsd fs4, 184(sp)
    fsd fs5, 192(sp)
    fsd fs6, 200(sp)
    fsd fs7, 208(sp)
    fsd fs8, 216(sp)
    fsd fs9, 224(sp)
    fsd fs10, 232(sp)
    fsd fs11, 240(sp)
    li a3, -8388608
    fmv.w.x ft3, a3
    fsd ft3, 112(sp)
    fmv.w.x ft3, zero
    fsd ft3, 104(sp)
    fcvt.d.w ft3, zero
    fsd ft3, 96(sp)
    la a3, softmax_constants
    fld ft3, 0(a3)
    fsd ft3, 88(sp)
    scfgwi zero, 32
    li a4, 3
    scfgwi a4, 64
    li a5, 64
    scfgwi a5, 192
    li a6, 7
    scfgwi a6, 96
    li a7, -184
    scfgwi a7, 224
    scfgwi zero, 33
    scfgwi a4, 65
    scfgwi a5, 193
    scfgwi a6, 97
    scfgwi a7, 225
    fld ft4, 8(a3)
    fld ft5, 16(a3)
    fld ft6, 24(a3)
    fld ft7, 32(a3)
    fld ft8, 40(a3)
    fld ft9, 48(a3)
    fld ft10, 56(a3)
    fld ft11, 64(a3)
    fld fa0, 72(a3)
    fld fa1, 80(a3)
    fld fa2, 88(a3)
    fld fa3, 96(a3)
    fld fa4, 104(a3)
    fld fa5, 112(a3)
    fld fa6, 120(a3)
    li a3, 1
    li a5, 1065353216
    fmv.w.x ft3, a5
    fsd ft3, 80(sp)
    addi a5, a0, 1024
.Lsoftmax_loop8:
    fld ft3, 112(sp)
    fsd ft3, 72(sp)
    fld ft3, 112(sp)
    fsd ft3, 64(sp)
    fld ft3, 112(sp)
    fmv.d fa7, ft3
    fld ft3, 112(sp)
    fmv.d fs0, ft3
    fld ft3, 104(sp)
    fsd ft3, 144(sp)
    fld ft3, 104(sp)
    fsd ft3, 136(sp)
    fld ft3, 104(sp)
    fsd ft3, 128(sp)
    fld ft3, 104(sp)
    fsd ft3, 120(sp)
    fld ft3, 96(sp)
    fmv.d fs4, ft3
    fld ft3, 96(sp)
    fmv.d fs5, ft3
    fld ft3, 96(sp)
    fmv.d fs6, ft3
    fld ft3, 96(sp)
    fmv.d fs7, ft3
    fld ft3, 88(sp)
    fld ft0, 88(sp)
    fmv.d fs1, ft0
    fld ft0, 88(sp)
    fmv.d fs2, ft0
    fld ft0, 88(sp)
    fmv.d fs3, ft0
.Lsoftmax_written1:
    scfgr a7, zero
    bge a7, zero, .Lsoftmax_written1
    scfgwi a0, 800
    csrrsi zero, 1984, 1
    frep.o a6, 4, 0, 0
    vfmax.s ft3, ft3, ft0
    vfmax.s fs1, fs1, ft0
    vfmax.s fs2, fs2, ft0
    vfmax.s fs3, fs3, ft0
    csrrci zero, 1984, 1
    fsd ft3, 0(sp)
    fsd fs1, 8(sp)
    fsd fs2, 16(sp)
    fsd fs3, 24(sp)
    flw ft3, 0(sp)
    flw ft0, 4(sp)
    flw ft1, 8(sp)
    flw ft2, 12(sp)
    flw fs1, 16(sp)
    fmax.s ft3, ft3, ft0
    flw ft0, 20(sp)
    fmax.s ft1, ft1, ft2
    flw ft2, 24(sp)
    fmax.s ft0, fs1, ft0
    flw fs1, 28(sp)
    fld fs2, 72(sp)
    fmax.s ft3, fs2, ft3
    fld fs2, 64(sp)
    fmax.s ft1, fs2, ft1
    fmax.s ft2, ft2, fs1
    fmax.s fa7, fa7, ft0
    fmax.s fs0, fs0, ft2
    fsd ft3, 72(sp)
    fsd ft1, 64(sp)
    scfgwi a0, 800
    scfgwi a2, 929
    csrrsi zero, 1984, 1
    li a7, 8
.Lsoftmax_loop6:
    fld ft3, 72(sp)
    vfsub.r.s fs3, ft0, ft3
    fld ft3, 64(sp)
    vfsub.r.s fs1, ft0, ft3
    vfsub.r.s fs2, ft0, fa7
    vfsub.r.s fs8, ft0, fs0
    vfeq.s t0, fs3, fs3
    vfmax.s ft3, fs3, ft4
    vfmin.s ft3, ft3, ft5
    fmv.d fs9, ft7
    vfmac.s fs9, ft3, ft6
    vfsub.s fs10, fs9, ft7
    vfmac.s ft3, fs10, ft8
    fmv.d fs11, ft3
    vfmac.s fs11, fs10, ft9
    fmv.d ft3, ft11
    vfmac.s ft3, ft10, fs11
    fmv.d fs10, fa0
    vfmac.s fs10, ft3, fs11
    fmv.d ft3, fa1
    vfmac.s ft3, fs10, fs11
    fmv.d fs10, fa2
    vfmac.s fs10, ft3, fs11
    fmv.d ft3, fa3
    vfmac.s ft3, fs10, fs11
    fsd fs9, 32(sp)
    flw fs9, 32(sp)
    flw fs10, 36(sp)
    fcvt.d.s fs9, fs9
    fadd.d fs11, fs9, fa4
    fcvt.d.s fs9, fs10
    fadd.d fs9, fs9, fa4
    vfcpka.s.s fs9, fs11, fs9
    vfmul.s ft3, ft3, fs9
    beq t0, a4, .Lsoftmax_ordered2
    vfsgnjx.s fs3, fs3, fs3
    vfadd.s fs3, fs3, fa5
    vfdiv.s fs3, fa6, fs3
    vfadd.s ft3, ft3, fs3
.Lsoftmax_ordered2:
    fmv.d fs3, ft3
    vfeq.s t0, fs1, fs1
    vfmax.s ft3, fs1, ft4
    vfmin.s ft3, ft3, ft5
    fmv.d fs9, ft7
    vfmac.s fs9, ft3, ft6
    vfsub.s fs10, fs9, ft7
    vfmac.s ft3, fs10, ft8
    fmv.d fs11, ft3
    vfmac.s fs11, fs10, ft9
    fmv.d ft3, ft11
    vfmac.s ft3, ft10, fs11
    fmv.d fs10, fa0
    vfmac.s fs10, ft3, fs11
    fmv.d ft3, fa1
    vfmac.s ft3, fs10, fs11
    fmv.d fs10, fa2
    vfmac.s fs10, ft3, fs11
    fmv.d ft3, fa3
    vfmac.s ft3, fs10, fs11
    fsd fs9, 40(sp)
    flw fs9, 40(sp)
    flw fs10, 44(sp)
    fcvt.d.s fs9, fs9
    fadd.d fs11, fs9, fa4
    fcvt.d.s fs9, fs10
    fadd.d fs9, fs9, fa4
    vfcpka.s.s fs9, fs11, fs9
    vfmul.s ft3, ft3, fs9
    beq t0, a4, .Lsoftmax_ordered3
    vfsgnjx.s fs1, fs1, fs1
    vfadd.s fs1, fs1, fa5
    vfdiv.s fs1, fa6, fs1
    vfadd.s ft3, ft3, fs1
.Lsoftmax_ordered3:
    fmv.d fs1, ft3
    vfeq.s t0, fs2, fs2
    vfmax.s ft3, fs2, ft4
    vfmin.s ft3, ft3, ft5
    fmv.d fs9, ft7
    vfmac.s fs9, ft3, ft6
    vfsub.s fs10, fs9, ft7
    vfmac.s ft3, fs10, ft8
    fmv.d fs11, ft3
    vfmac.s fs11, fs10, ft9
    fmv.d ft3, ft11
    vfmac.s ft3, ft10, fs11
    fmv.d fs10, fa0
    vfmac.s fs10, ft3, fs11
    fmv.d ft3, fa1
    vfmac.s ft3, fs10, fs11
    fmv.d fs10, fa2
    vfmac.s fs10, ft3, fs11
    fmv.d ft3, fa3
    vfmac.s ft3, fs10, fs11
    fsd fs9, 48(sp)
    flw fs9, 48(sp)
    flw fs10, 52(sp)
    fcvt.d.s fs9, fs9
    fadd.d fs11, fs9, fa4
    fcvt.d.s fs9, fs10
    fadd.d fs9, fs9, fa4
    vfcpka.s.s fs9, fs11, fs9
    vfmul.s ft3, ft3, fs9
    beq t0, a4, .Lsoftmax_ordered4
    vfsgnjx.s fs2, fs2, fs2
    vfadd.s fs2, fs2, fa5
    vfdiv.s fs2, fa6, fs2
    vfadd.s ft3, ft3, fs2
.Lsoftmax_ordered4:
    fmv.d fs2, ft3
    vfeq.s t0, fs8, fs8
    vfmax.s ft3, fs8, ft4
    vfmin.s ft3, ft3, ft5
    fmv.d fs9, ft7
    vfmac.s fs9, ft3, ft6
    vfsub.s fs10, fs9, ft7
    vfmac.s ft3, fs10, ft8
    fmv.d fs11, ft3
    vfmac.s fs11, fs10, ft9
    fmv.d ft3, ft11
    vfmac.s ft3, ft10, fs11
    fmv.d fs10, fa0
    vfmac.s fs10, ft3, fs11
    fmv.d ft3, fa1
    vfmac.s ft3, fs10, fs11
    fmv.d fs10, fa2
    vfmac.s fs10, ft3, fs11
    fmv.d ft3, fa3
    vfmac.s ft3, fs10, fs11
    fsd fs9, 56(sp)
    flw fs9, 56(sp)
    flw fs10, 60(sp)
    fcvt.d.s fs9, fs9
    fadd.d fs11, fs9, fa4
    fcvt.d.s fs9, fs10
    fadd.d fs9, fs9, fa4
    vfcpka.s.s fs9, fs11, fs9
    vfmul.s ft3, ft3, fs9
    beq t0, a4, .Lsoftmax_ordered5
    vfsgnjx.s fs8, fs8, fs8
    vfadd.s fs8, fs8, fa5
    vfdiv.s fs8, fa6, fs8
    vfadd.s ft3, ft3, fs8
.Lsoftmax_ordered5:
    fmv.d fs8, ft3
    vfadd.s fs4, fs4, fs3
    vfadd.s fs5, fs5, fs1
    vfadd.s fs6, fs6, fs2
    vfadd.s fs7, fs7, fs8
    fmv.d ft1, fs3
    fmv.d ft1, fs1
    fmv.d ft1, fs2
    fmv.d ft1, fs8
    addi a7, a7, -1
    bne a7, zero, .Lsoftmax_loop6
    csrrci zero, 1984, 1
.Lsoftmax_written7:
    scfgr a7, a3
    bge a7, zero, .Lsoftmax_written7
    fld ft3, 144(sp)
    vfsum.s ft3, fs4
    fsd ft3, 144(sp)
    fld ft3, 136(sp)
    vfsum.s ft3, fs5
    fsd ft3, 136(sp)
    fld ft3, 128(sp)
    vfsum.s ft3, fs6
    fsd ft3, 128(sp)
    fld ft3, 120(sp)
    vfsum.s ft3, fs7
    fsd ft3, 120(sp)
    fld ft3, 80(sp)
    fld fa7, 144(sp)
    fdiv.s ft3, ft3, fa7
    fld fa7, 80(sp)
    fld ft0, 136(sp)
    fdiv.s fa7, fa7, ft0
    fld ft0, 80(sp)
    fld ft1, 128(sp)
    fdiv.s fs0, ft0, ft1
    fld ft0, 80(sp)
    fld ft1, 120(sp)
    fdiv.s fs1, ft0, ft1
    scfgwi a2, 801
    scfgwi a1, 928
    csrrsi zero, 1984, 1
    frep.o a6, 4, 0, 0
    vfmul.r.s ft0, ft1, ft3
    vfmul.r.s ft0, ft1, fa7
    vfmul.r.s ft0, ft1, fs0
    vfmul.r.s ft0, ft1, fs1
    csrrci zero, 1984, 1
    addi a0, a0, 256
    addi a1, a1, 256
    bne a0, a5, .Lsoftmax_loop8
.Lsoftmax_written9:
    scfgr a0, zero
    bge a0, zero, .Lsoftmax_written9
    fld fs0, 152(sp)
    fld fs1, 160(sp)
    fld fs2, 168(sp)
    fld fs3, 176(sp)
    fld fs4, 184(sp)
    fld fs5, 192(sp)
    fld fs6, 200(sp)
    fld fs7, 208(sp)
    fld fs8, 216(sp)
    fld fs9, 224(sp)
    fld fs10, 232(sp)
    fld fs11, 240(sp)
    addi sp, sp, 256
    ret
