# kernel: softmax:16x16 f32
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 4517
# cycles_of_pdojo_snitch: 4517
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]=out'
#   --arg 'i8[256]=zero'
.data
.balign 8
softmax_constants:
.word 0xff800000, 0xff800000
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
.word 0xffda6000, 0x4bd7ffff
.word 0x1b400000, 0x9b400000
.word 0xc2af0000, 0xc2af0000
.word 0x42b20000, 0x42b20000
.word 0x3f800000, 0x3f800000
.word 0x80000000, 0x80000000
.text
.globl softmax
.p2align 2
softmax:
    addi sp, sp, -176
    fsd fs0, 72(sp)
    fsd fs1, 80(sp)
    fsd fs2, 88(sp)
    fsd fs3, 96(sp)
    fsd fs4, 104(sp)
    fsd fs5, 112(sp)
    fsd fs6, 120(sp)
    fsd fs7, 128(sp)
    fsd fs8, 136(sp)
    fsd fs9, 144(sp)
    fsd fs10, 152(sp)
    fsd fs11, 160(sp)
    mv t6, a2
    li a2, -8388608
    fmv.w.x ft3, a2
    fsd ft3, 56(sp)
    fmv.w.x ft3, zero
    fsd ft3, 48(sp)
    la a2, softmax_constants
    fld ft3, 0(a2)
    fsd ft3, 40(sp)
    scfgwi zero, 32
    li a3, 3
    scfgwi a3, 64
    li a4, 64
    scfgwi a4, 192
    li a5, 6
    li a6, -184
    scfgwi a6, 224
    li a7, 7
    scfgwi zero, 33
    scfgwi a3, 65
    scfgwi a4, 193
    scfgwi a7, 97
    scfgwi a6, 225
    fcvt.d.w ft10, zero
    li a3, 1172774912
    li a4, 1
    li a6, 1065353216
    fmv.w.x ft3, a6
    fsd ft3, 32(sp)
    addi a6, a0, 1024
.Lsoftmax_loop9:
    fld ft3, 0(a0)
    fld ft4, 64(a0)
    fld ft5, 128(a0)
    fld ft6, 192(a0)
    fld ft7, 56(sp)
    fmv.d fa0, ft7
    fld ft7, 56(sp)
    fmv.d fa1, ft7
    fld ft7, 56(sp)
    fmv.d fa2, ft7
    fld ft7, 56(sp)
    fmv.d fa3, ft7
    fld ft7, 48(sp)
    fmv.d fa4, ft7
    fld ft7, 48(sp)
    fmv.d fa5, ft7
    fld ft7, 48(sp)
    fmv.d fa6, ft7
    fld ft7, 48(sp)
    fmv.d fa7, ft7
    fld ft7, 40(sp)
    vfmax.s ft3, ft7, ft3
    fld ft7, 40(sp)
    vfmax.s ft4, ft7, ft4
    fld ft7, 40(sp)
    vfmax.s ft5, ft7, ft5
    fld ft7, 40(sp)
    vfmax.s ft6, ft7, ft6
    scfgwi a5, 96
.Lsoftmax_written1:
    scfgr t0, zero
    bge t0, zero, .Lsoftmax_written1
    addi t0, a0, 8
    scfgwi t0, 800
    csrrsi zero, 1984, 1
    frep.o a5, 4, 0, 0
    vfmax.s ft3, ft3, ft0
    vfmax.s ft4, ft4, ft0
    vfmax.s ft5, ft5, ft0
    vfmax.s ft6, ft6, ft0
    csrrci zero, 1984, 1
    fsd ft3, 0(sp)
    fsd ft4, 8(sp)
    fsd ft5, 16(sp)
    fsd ft6, 24(sp)
    flw ft3, 0(sp)
    flw ft4, 4(sp)
    flw ft5, 8(sp)
    flw ft6, 12(sp)
    flw ft7, 16(sp)
    flw ft8, 20(sp)
    flw ft9, 24(sp)
    flw ft11, 28(sp)
    fmax.s ft3, ft3, ft4
    fmax.s ft4, ft5, ft6
    fmax.s ft5, ft7, ft8
    fmax.s ft6, ft9, ft11
    fmax.s fa0, fa0, ft3
    fmax.s fa1, fa1, ft4
    fmax.s fa2, fa2, ft5
    fmax.s fa3, fa3, ft6
    scfgwi a7, 96
    scfgwi a0, 800
    scfgwi t6, 929
    csrrsi zero, 1984, 1
    li t0, 8
.Lsoftmax_loop7:
    fld ft3, 8(a2)
    fld ft6, 16(a2)
    fld ft7, 24(a2)
    fld ft8, 32(a2)
    fld ft9, 40(a2)
    fld ft11, 88(a2)
    vfsub.r.s fs0, ft0, fa0
    fld fs1, 16(a2)
    fld fs2, 16(a2)
    fld fs3, 16(a2)
    fld fs4, 16(a2)
    vfsub.r.s fs5, ft0, fa1
    vfsub.r.s fs6, ft0, fa2
    vfsub.r.s fs7, ft0, fa3
    fmv.d fs8, fs0
    vfmac.s fs1, fs0, ft3
    vfmac.s fs2, fs5, ft3
    fmv.d fs9, fs5
    vfmac.s fs3, fs6, ft3
    fmv.d fs10, fs6
    vfmac.s fs4, fs7, ft3
    fmv.d ft3, fs7
    vfsub.s ft4, fs1, ft6
    vfsub.s ft5, fs2, ft6
    vfsub.s fs11, fs3, ft6
    vfsub.s ft6, fs4, ft6
    vfmac.s fs8, ft4, ft7
    vfmac.s fs9, ft5, ft7
    vfmac.s fs10, fs11, ft7
    vfmac.s ft3, ft6, ft7
    fld ft7, 96(a2)
    vfmac.s fs8, ft4, ft8
    vfmul.s ft4, fs0, fs0
    vfmac.s fs9, ft5, ft8
    fld ft5, 48(a2)
    vfmac.s ft4, fs5, fs5
    vfmac.s fs10, fs11, ft8
    fadd.d fs11, fs1, ft11
    vfcpka.s.s fs1, fs1, ft7
    vfmac.s ft3, ft6, ft8
    fadd.d ft8, fs2, ft11
    vfcpka.s.s ft6, fs2, ft7
    fadd.d fs2, fs3, ft11
    vfcpka.s.s fs3, fs3, ft7
    fadd.d ft11, fs4, ft11
    vfcpka.s.s fs4, fs4, ft7
    fadd.d fs1, fs1, ft7
    fadd.d ft6, ft6, ft7
    fadd.d fs3, fs3, ft7
    fadd.d ft7, fs4, ft7
    fld fs4, 56(a2)
    vfmac.s ft4, fs6, fs6
    vfcpka.s.s fs1, fs1, fs11
    fld fs11, 64(a2)
    vfcpka.s.s ft6, ft6, ft8
    vfmac.s ft4, fs7, fs7
    fmv.d ft8, ft10
    vfcpka.s.s fs2, fs3, fs2
    fld fs3, 48(a2)
    vfsum.s ft8, ft4
    fld ft4, 48(a2)
    vfcpka.s.s ft7, ft7, ft11
    fld ft11, 48(a2)
    fmv.x.w t1, ft8
    fld ft8, 56(a2)
    vfmac.s ft5, ft9, fs8
    vfmac.s fs3, ft9, fs9
    vfmac.s ft4, ft9, fs10
    vfmac.s ft11, ft9, ft3
    fld ft9, 56(a2)
    vfmac.s fs4, ft5, fs8
    fld ft5, 56(a2)
    vfmac.s ft8, fs3, fs9
    fld fs3, 72(a2)
    vfmac.s ft9, ft4, fs10
    fld ft4, 64(a2)
    vfmac.s ft5, ft11, ft3
    fld ft11, 64(a2)
    vfmac.s fs11, fs4, fs8
    fld fs4, 64(a2)
    vfmac.s ft4, ft8, fs9
    fld ft8, 80(a2)
    vfmac.s ft11, ft9, fs10
    fld ft9, 72(a2)
    vfmac.s fs4, ft5, ft3
    fld ft5, 72(a2)
    vfmac.s fs3, fs11, fs8
    fld fs11, 72(a2)
    vfmac.s ft9, ft4, fs9
    fld ft4, 80(a2)
    vfmac.s ft5, ft11, fs10
    fld ft11, 80(a2)
    vfmac.s fs11, fs4, ft3
    fld fs4, 80(a2)
    vfmac.s ft8, fs3, fs8
    vfmac.s ft4, ft9, fs9
    vfmac.s ft11, ft5, fs10
    vfmac.s fs4, fs11, ft3
    vfmul.s ft5, ft8, fs1
    vfmul.s fs1, ft4, ft6
    vfmul.s ft3, ft11, fs2
    vfmul.s ft4, fs4, ft7
    bltu t1, a3, .Lsoftmax_moderate2
    fld ft3, 104(a2)
    vfeq.s t1, fs0, fs0
    vfeq.s t2, fs5, fs5
    vfeq.s t3, fs6, fs6
    vfeq.s t4, fs7, fs7
    vfmax.s ft4, fs0, ft3
    vfmax.s ft5, fs5, ft3
    vfmax.s ft11, fs6, ft3
    vfmax.s ft3, fs7, ft3
    fld fs1, 112(a2)
    vfmin.s fs4, ft4, fs1
    vfmin.s fs8, ft5, fs1
    vfmin.s ft5, ft11, fs1
    vfmin.s ft11, ft3, fs1
    fld ft3, 8(a2)
    fld ft4, 16(a2)
    fld fs1, 16(a2)
    fld fs2, 16(a2)
    fld fs3, 16(a2)
    fld ft7, 16(a2)
    vfmac.s fs1, fs4, ft3
    vfmac.s fs2, fs8, ft3
    vfmac.s fs3, ft5, ft3
    vfmac.s ft7, ft11, ft3
    vfsub.s ft6, fs1, ft4
    vfsub.s ft8, fs2, ft4
    vfsub.s ft9, fs3, ft4
    vfsub.s fs9, ft7, ft4
    fld ft3, 24(a2)
    fmv.d ft4, ft11
    vfmac.s fs4, ft6, ft3
    vfmac.s fs8, ft8, ft3
    vfmac.s ft5, ft9, ft3
    vfmac.s ft4, fs9, ft3
    fld ft3, 32(a2)
    vfmac.s fs4, ft6, ft3
    vfmac.s fs8, ft8, ft3
    vfmac.s ft5, ft9, ft3
    vfmac.s ft4, fs9, ft3
    fld ft3, 40(a2)
    fld ft8, 48(a2)
    fld ft9, 48(a2)
    fld ft11, 48(a2)
    fld fs9, 48(a2)
    vfmac.s ft8, ft3, fs4
    vfmac.s ft9, ft3, fs8
    vfmac.s ft11, ft3, ft5
    vfmac.s fs9, ft3, ft4
    fld ft3, 56(a2)
    fsd ft3, 64(sp)
    fld ft6, 56(a2)
    fld fs10, 56(a2)
    fld fs11, 56(a2)
    fld ft3, 64(sp)
    vfmac.s ft3, ft8, fs4
    fsd ft3, 64(sp)
    vfmac.s ft6, ft9, fs8
    vfmac.s fs10, ft11, ft5
    vfmac.s fs11, fs9, ft4
    fld ft8, 64(a2)
    fld ft9, 64(a2)
    fld ft11, 64(a2)
    fld fs9, 64(a2)
    fld ft3, 64(sp)
    vfmac.s ft8, ft3, fs4
    vfmac.s ft9, ft6, fs8
    vfmac.s ft11, fs10, ft5
    vfmac.s fs9, fs11, ft4
    fld ft3, 72(a2)
    fld ft6, 72(a2)
    fld fs10, 72(a2)
    fld fs11, 72(a2)
    vfmac.s ft3, ft8, fs4
    vfmac.s ft6, ft9, fs8
    vfmac.s fs10, ft11, ft5
    vfmac.s fs11, fs9, ft4
    fld ft8, 80(a2)
    fld ft9, 80(a2)
    fld ft11, 80(a2)
    fld fs9, 80(a2)
    vfmac.s ft8, ft3, fs4
    vfmac.s ft9, ft6, fs8
    vfmac.s ft11, fs10, ft5
    vfmac.s fs9, fs11, ft4
    fld ft3, 88(a2)
    fadd.d fs4, fs1, ft3
    fadd.d fs8, fs2, ft3
    fadd.d fs10, fs3, ft3
    fadd.d ft6, ft7, ft3
    fld fs11, 96(a2)
    vfcpka.s.s ft3, fs1, fs11
    vfcpka.s.s ft4, fs2, fs11
    vfcpka.s.s ft5, fs3, fs11
    vfcpka.s.s ft7, ft7, fs11
    fadd.d ft3, ft3, fs11
    fadd.d ft4, ft4, fs11
    fadd.d ft5, ft5, fs11
    fadd.d ft7, ft7, fs11
    vfcpka.s.s ft3, ft3, fs4
    vfcpka.s.s ft4, ft4, fs8
    vfcpka.s.s ft5, ft5, fs10
    vfcpka.s.s ft6, ft7, ft6
    vfmul.s ft3, ft8, ft3
    vfmul.s ft4, ft9, ft4
    vfmul.s ft5, ft11, ft5
    vfmul.s ft6, fs9, ft6
    li t5, 3
    fld ft7, 120(a2)
    fld ft8, 128(a2)
    fmv.d ft9, ft5
    beq t1, t5, .Lsoftmax_ordered3
    vfsgnjx.s ft5, fs0, fs0
    vfadd.s ft5, ft5, ft7
    vfdiv.s ft5, ft8, ft5
    vfadd.s ft3, ft3, ft5
.Lsoftmax_ordered3:
    fmv.d ft5, ft3
    beq t2, t5, .Lsoftmax_ordered4
    vfsgnjx.s ft3, fs5, fs5
    vfadd.s ft3, ft3, ft7
    vfdiv.s ft3, ft8, ft3
    vfadd.s ft4, ft4, ft3
.Lsoftmax_ordered4:
    fmv.d fs1, ft4
    beq t3, t5, .Lsoftmax_ordered5
    vfsgnjx.s ft3, fs6, fs6
    vfadd.s ft3, ft3, ft7
    vfdiv.s ft3, ft8, ft3
    vfadd.s ft9, ft9, ft3
.Lsoftmax_ordered5:
    fmv.d ft3, ft9
    beq t4, t5, .Lsoftmax_ordered6
    vfsgnjx.s ft4, fs7, fs7
    vfadd.s ft4, ft4, ft7
    vfdiv.s ft4, ft8, ft4
    vfadd.s ft6, ft6, ft4
.Lsoftmax_ordered6:
    fmv.d ft4, ft6
.Lsoftmax_moderate2:
    addi t0, t0, -1
    vfsum.s fa4, ft5
    vfsum.s fa5, fs1
    vfsum.s fa6, ft3
    vfsum.s fa7, ft4
    fmv.d ft1, ft5
    fmv.d ft1, fs1
    fmv.d ft1, ft3
    fmv.d ft1, ft4
    bne t0, zero, .Lsoftmax_loop7
    csrrci zero, 1984, 1
.Lsoftmax_written8:
    scfgr t0, a4
    bge t0, zero, .Lsoftmax_written8
    fld ft3, 32(sp)
    fdiv.s ft3, ft3, fa4
    fld ft4, 32(sp)
    fdiv.s ft4, ft4, fa5
    fld ft5, 32(sp)
    fdiv.s ft5, ft5, fa6
    fld ft6, 32(sp)
    fdiv.s ft6, ft6, fa7
    scfgwi a7, 96
    scfgwi t6, 801
    scfgwi a1, 928
    csrrsi zero, 1984, 1
    frep.o a7, 4, 0, 0
    vfmul.r.s ft0, ft1, ft3
    vfmul.r.s ft0, ft1, ft4
    vfmul.r.s ft0, ft1, ft5
    vfmul.r.s ft0, ft1, ft6
    csrrci zero, 1984, 1
    addi a0, a0, 256
    addi a1, a1, 256
    bne a0, a6, .Lsoftmax_loop9
.Lsoftmax_written10:
    scfgr a0, zero
    bge a0, zero, .Lsoftmax_written10
    fld fs0, 72(sp)
    fld fs1, 80(sp)
    fld fs2, 88(sp)
    fld fs3, 96(sp)
    fld fs4, 104(sp)
    fld fs5, 112(sp)
    fld fs6, 120(sp)
    fld fs7, 128(sp)
    fld fs8, 136(sp)
    fld fs9, 144(sp)
    fld fs10, 152(sp)
    fld fs11, 160(sp)
    addi sp, sp, 176
    ret
