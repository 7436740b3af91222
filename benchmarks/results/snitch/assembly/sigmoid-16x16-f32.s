# kernel: sigmoid:16x16 f32
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 4034
# cycles_of_pdojo_snitch: 4034
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]=out'
.data
.balign 8
sigmoid_constants:
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
.globl sigmoid
.p2align 2
sigmoid:
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
    li a2, 127
    li a3, 8
    la a4, sigmoid_constants
    fld ft8, 0(a4)
    fld ft9, 8(a4)
    fld ft10, 16(a4)
    fld ft11, 24(a4)
    fld fa0, 32(a4)
    fld fa1, 80(a4)
    fld fa2, 88(a4)
    fcvt.d.w fa3, zero
    li a5, 1172774912
    fld fa4, 112(a4)
    li a6, 1
    scfgwi zero, 63
    scfgwi a2, 95
    scfgwi a3, 223
    scfgwi a0, 768
    scfgwi a1, 897
    csrrsi zero, 1984, 1
    vfsgnjn.s fa5, ft0, ft0
    fld fs1, 8(a4)
    fld fs2, 8(a4)
    fld fs3, 8(a4)
    fld fs4, 8(a4)
    vfsgnjn.s fa6, ft0, ft0
    vfsgnjn.s fa7, ft0, ft0
    vfsgnjn.s fs0, ft0, ft0
    vfmac.s fs1, fa5, ft8
    vfmac.s fs2, fa6, ft8
    vfmac.s fs3, fa7, ft8
    fmv.d ft3, fa5
    vfsub.s fs5, fs1, ft9
    vfsub.s fs6, fs2, ft9
    vfsub.s fs7, fs3, ft9
    fmv.d ft4, fa6
    fmv.d ft5, fa7
    vfmac.s ft3, fs5, ft10
    vfmac.s ft4, fs6, ft10
    vfmac.s ft5, fs7, ft10
    fld fs8, 40(a4)
    fmv.d fs9, ft3
    fmv.d fs10, ft4
    fld ft3, 40(a4)
    vfmac.s fs4, fs0, ft8
    fld ft4, 40(a4)
    fmv.d ft6, fs0
    fld ft7, 40(a4)
    vfsub.s fs11, fs4, ft9
    vfmac.s fs9, fs5, ft11
    vfmac.s fs10, fs6, ft11
    vfmac.s ft5, fs7, ft11
    vfmac.s ft6, fs11, ft10
    fld fs5, 48(a4)
    fld fs6, 48(a4)
    fld fs7, 48(a4)
    vfmac.s fs8, fa0, fs9
    vfmac.s ft6, fs11, ft11
    fld fs11, 48(a4)
    vfmac.s ft3, fa0, fs10
    vfmac.s ft4, fa0, ft5
    vfmac.s ft7, fa0, ft6
    vfmac.s fs5, fs8, fs9
    fld fs8, 56(a4)
    vfmac.s fs6, ft3, fs10
    vfmul.s ft3, fa5, fa5
    vfmac.s fs7, ft4, ft5
    fld ft4, 56(a4)
    vfmac.s fs11, ft7, ft6
    fld ft7, 56(a4)
    vfmac.s ft3, fa6, fa6
    vfmac.s fs8, fs5, fs9
    fld fs5, 56(a4)
    vfmac.s ft4, fs6, fs10
    fld fs6, 64(a4)
    vfmac.s ft7, fs7, ft5
    fld fs7, 64(a4)
    vfmac.s fs5, fs11, ft6
    fld fs11, 64(a4)
    vfmac.s ft3, fa7, fa7
    vfmac.s fs6, fs8, fs9
    fld fs8, 64(a4)
    vfmac.s fs7, ft4, fs10
    vfcpka.s.s ft4, fs1, fa2
    vfmac.s fs11, ft7, ft5
    vfcpka.s.s ft7, fs2, fa2
    vfmac.s fs8, fs5, ft6
    vfcpka.s.s fs5, fs3, fa2
    vfmac.s ft3, fs0, fs0
    fadd.d fs1, fs1, fa1
    fadd.d ft4, ft4, fa2
    fadd.d fs2, fs2, fa1
    fadd.d ft7, ft7, fa2
    fadd.d fs3, fs3, fa1
    fadd.d fs5, fs5, fa2
    vfcpka.s.s ft4, ft4, fs1
    vfcpka.s.s fs1, fs4, fa2
    fadd.d fs4, fs4, fa1
    vfcpka.s.s ft7, ft7, fs2
    fld fs2, 72(a4)
    fadd.d fs1, fs1, fa2
    vfcpka.s.s fs3, fs5, fs3
    fld fs5, 72(a4)
    li a0, 32
    vfmac.s fs2, fs6, fs9
    fld fs6, 72(a4)
    fld fs9, 72(a4)
    vfmac.s fs5, fs7, fs10
    fmv.d fs7, fa3
    vfcpka.s.s fs1, fs1, fs4
    vfmac.s fs6, fs11, ft5
    vfmac.s fs9, fs8, ft6
    vfsum.s fs7, ft3
    vfmul.s ft5, fs2, ft4
    vfmul.s ft4, fs5, ft7
    vfmul.s fs2, fs6, fs3
    vfmul.s ft3, fs9, fs1
    fmv.x.w a1, fs7
    addi a0, a0, -1
    bltu a1, a5, .Lsigmoid_moderate1_apart
    fld ft3, 96(a4)
    vfeq.s a1, fa5, fa5
    vfeq.s a2, fa6, fa6
    vfeq.s a3, fa7, fa7
    vfeq.s a7, fs0, fs0
    vfmax.s ft4, fa5, ft3
    vfmax.s ft5, fa6, ft3
    vfmax.s ft6, fa7, ft3
    vfmax.s ft3, fs0, ft3
    fld ft7, 104(a4)
    vfmin.s fs6, ft4, ft7
    vfmin.s fs7, ft5, ft7
    vfmin.s ft5, ft6, ft7
    vfmin.s ft6, ft3, ft7
    fld ft3, 0(a4)
    fld ft4, 8(a4)
    fld fs1, 8(a4)
    fld fs2, 8(a4)
    fld fs3, 8(a4)
    fld fs4, 8(a4)
    vfmac.s fs1, fs6, ft3
    vfmac.s fs2, fs7, ft3
    vfmac.s fs3, ft5, ft3
    vfmac.s fs4, ft6, ft3
    vfsub.s ft7, fs1, ft4
    vfsub.s fs5, fs2, ft4
    vfsub.s fs8, fs3, ft4
    vfsub.s fs9, fs4, ft4
    fld ft3, 16(a4)
    fmv.d ft4, ft6
    vfmac.s fs6, ft7, ft3
    vfmac.s fs7, fs5, ft3
    vfmac.s ft5, fs8, ft3
    vfmac.s ft4, fs9, ft3
    fld ft3, 24(a4)
    fmv.d ft6, ft4
    vfmac.s fs6, ft7, ft3
    vfmac.s fs7, fs5, ft3
    vfmac.s ft5, fs8, ft3
    vfmac.s ft6, fs9, ft3
    fld ft3, 32(a4)
    fld fs5, 40(a4)
    fld fs8, 40(a4)
    fld fs9, 40(a4)
    fld fs10, 40(a4)
    vfmac.s fs5, ft3, fs6
    vfmac.s fs8, ft3, fs7
    vfmac.s fs9, ft3, ft5
    vfmac.s fs10, ft3, ft6
    fld ft3, 48(a4)
    fld ft4, 48(a4)
    fld ft7, 48(a4)
    fld fs11, 48(a4)
    vfmac.s ft3, fs5, fs6
    vfmac.s ft4, fs8, fs7
    vfmac.s ft7, fs9, ft5
    vfmac.s fs11, fs10, ft6
    fld fs5, 56(a4)
    fld fs8, 56(a4)
    fld fs9, 56(a4)
    fld fs10, 56(a4)
    vfmac.s fs5, ft3, fs6
    vfmac.s fs8, ft4, fs7
    vfmac.s fs9, ft7, ft5
    vfmac.s fs10, fs11, ft6
    fld ft3, 64(a4)
    fld ft4, 64(a4)
    fld ft7, 64(a4)
    fld fs11, 64(a4)
    vfmac.s ft3, fs5, fs6
    vfmac.s ft4, fs8, fs7
    vfmac.s ft7, fs9, ft5
    vfmac.s fs11, fs10, ft6
    fld fs5, 72(a4)
    fld fs8, 72(a4)
    fld fs9, 72(a4)
    fld fs10, 72(a4)
    vfmac.s fs5, ft3, fs6
    vfmac.s fs8, ft4, fs7
    vfmac.s fs9, ft7, ft5
    vfmac.s fs10, fs11, ft6
    fld ft3, 80(a4)
    fadd.d ft7, fs1, ft3
    fadd.d fs6, fs2, ft3
    fadd.d fs7, fs3, ft3
    fadd.d ft6, fs4, ft3
    fld fs11, 88(a4)
    vfcpka.s.s ft3, fs1, fs11
    vfcpka.s.s ft4, fs2, fs11
    vfcpka.s.s ft5, fs3, fs11
    vfcpka.s.s fs1, fs4, fs11
    fadd.d ft3, ft3, fs11
    fadd.d ft4, ft4, fs11
    fadd.d ft5, ft5, fs11
    fadd.d fs1, fs1, fs11
    vfcpka.s.s ft3, ft3, ft7
    vfcpka.s.s ft4, ft4, fs6
    vfcpka.s.s ft5, ft5, fs7
    vfcpka.s.s ft6, fs1, ft6
    vfmul.s ft3, fs5, ft3
    vfmul.s ft4, fs8, ft4
    vfmul.s ft5, fs9, ft5
    vfmul.s ft6, fs10, ft6
    li t0, 3
    fld ft7, 112(a4)
    fld fs1, 120(a4)
    fmv.d fs2, ft5
    beq a1, t0, .Lsigmoid_ordered2_apart
    vfsgnjx.s ft5, fa5, fa5
    vfadd.s ft5, ft5, ft7
    vfdiv.s ft5, fs1, ft5
    vfadd.s ft3, ft3, ft5
.Lsigmoid_ordered2_apart:
    fmv.d ft5, ft3
    beq a2, t0, .Lsigmoid_ordered3_apart
    vfsgnjx.s ft3, fa6, fa6
    vfadd.s ft3, ft3, ft7
    vfdiv.s ft3, fs1, ft3
    vfadd.s ft4, ft4, ft3
.Lsigmoid_ordered3_apart:
    beq a3, t0, .Lsigmoid_ordered4_apart
    vfsgnjx.s ft3, fa7, fa7
    vfadd.s ft3, ft3, ft7
    vfdiv.s ft3, fs1, ft3
    vfadd.s fs2, fs2, ft3
.Lsigmoid_ordered4_apart:
    beq a7, t0, .Lsigmoid_ordered5_apart
    vfsgnjx.s ft3, fs0, fs0
    vfadd.s ft3, ft3, ft7
    vfdiv.s ft3, fs1, ft3
    vfadd.s ft6, ft6, ft3
.Lsigmoid_ordered5_apart:
    fmv.d ft3, ft6
.Lsigmoid_moderate1_apart:
.Lsigmoid_loop6:
    vfadd.s fa5, ft5, fa4
    vfadd.s fa6, ft4, fa4
    vfadd.s fa7, fs2, fa4
    vfadd.s fs0, ft3, fa4
    vfdiv.s ft1, fa4, fa5
    vfdiv.s ft1, fa4, fa6
    vfsgnjn.s fa5, ft0, ft0
    fld fs2, 8(a4)
    fld fs4, 8(a4)
    fld fs6, 8(a4)
    fld fs3, 8(a4)
    vfsgnjn.s fa6, ft0, ft0
    vfmac.s fs2, fa5, ft8
    vfmac.s fs4, fa6, ft8
    fmv.d fs7, fa5
    fmv.d ft3, fa6
    vfdiv.s ft1, fa4, fa7
    vfsgnjn.s fa7, ft0, ft0
    vfsub.s ft5, fs2, ft9
    vfmac.s fs6, fa7, ft8
    vfsub.s fs8, fs4, ft9
    fmv.d ft4, fa7
    vfmac.s fs7, ft5, ft10
    vfsub.s fs10, fs6, ft9
    vfmac.s ft3, fs8, ft10
    fld ft6, 40(a4)
    vfmac.s ft4, fs10, ft10
    vfdiv.s ft1, fa4, fs0
    vfsgnjn.s fs0, ft0, ft0
    vfmac.s fs3, fs0, ft8
    fld fs1, 40(a4)
    fmv.d fs9, fs0
    vfsub.s ft7, fs3, ft9
    fld fs11, 40(a4)
    fld fs5, 40(a4)
    vfmac.s fs7, ft5, ft11
    vfmac.s fs9, ft7, ft10
    vfmac.s ft3, fs8, ft11
    vfmac.s ft4, fs10, ft11
    fld fs10, 48(a4)
    fmv.d ft5, fs9
    fld fs8, 48(a4)
    vfmac.s ft5, ft7, ft11
    fld fs9, 48(a4)
    fld ft7, 48(a4)
    vfmac.s ft6, fa0, fs7
    vfmac.s fs1, fa0, ft3
    vfmac.s fs11, fa0, ft4
    vfmac.s fs5, fa0, ft5
    vfmac.s fs10, ft6, fs7
    vfmul.s ft6, fa5, fa5
    vfmac.s fs8, fs1, ft3
    fld fs1, 56(a4)
    vfmac.s fs9, fs11, ft4
    fld fs11, 56(a4)
    vfmac.s ft7, fs5, ft5
    fld fs5, 56(a4)
    vfmac.s ft6, fa6, fa6
    vfmac.s fs1, fs10, fs7
    fld fs10, 56(a4)
    vfmac.s fs11, fs8, ft3
    fld fs8, 64(a4)
    vfmac.s fs5, fs9, ft4
    fld fs9, 64(a4)
    vfmac.s fs10, ft7, ft5
    fld ft7, 64(a4)
    vfmac.s ft6, fa7, fa7
    vfmac.s fs8, fs1, fs7
    fld fs1, 64(a4)
    vfmac.s fs9, fs11, ft3
    vfcpka.s.s fs11, fs2, fa2
    vfmac.s ft7, fs5, ft4
    vfcpka.s.s fs5, fs4, fa2
    vfmac.s fs1, fs10, ft5
    vfcpka.s.s fs10, fs6, fa2
    vfmac.s ft6, fs0, fs0
    fadd.d fs2, fs2, fa1
    fadd.d fs11, fs11, fa2
    fadd.d fs4, fs4, fa1
    fadd.d fs5, fs5, fa2
    fadd.d fs6, fs6, fa1
    fadd.d fs10, fs10, fa2
    vfcpka.s.s fs2, fs11, fs2
    vfcpka.s.s fs11, fs3, fa2
    fadd.d fs3, fs3, fa1
    vfcpka.s.s fs5, fs5, fs4
    fld fs4, 72(a4)
    fadd.d fs11, fs11, fa2
    vfcpka.s.s fs6, fs10, fs6
    fld fs10, 72(a4)
    addi a0, a0, -1
    vfmac.s fs4, fs8, fs7
    fld fs7, 72(a4)
    fld fs8, 72(a4)
    vfmac.s fs10, fs9, ft3
    fmv.d fs9, fa3
    vfcpka.s.s ft3, fs11, fs3
    vfmac.s fs7, ft7, ft4
    vfmac.s fs8, fs1, ft5
    vfsum.s fs9, ft6
    vfmul.s ft5, fs4, fs2
    vfmul.s ft4, fs10, fs5
    vfmul.s fs2, fs7, fs6
    vfmul.s ft3, fs8, ft3
    fmv.x.w a1, fs9
    bltu a1, a5, .Lsigmoid_moderate1
    fld ft3, 96(a4)
    vfeq.s a1, fa5, fa5
    vfeq.s a2, fa6, fa6
    vfeq.s a3, fa7, fa7
    vfeq.s a7, fs0, fs0
    vfmax.s ft4, fa5, ft3
    vfmax.s ft5, fa6, ft3
    vfmax.s ft6, fa7, ft3
    vfmax.s ft3, fs0, ft3
    fld ft7, 104(a4)
    vfmin.s fs6, ft4, ft7
    vfmin.s fs7, ft5, ft7
    vfmin.s ft5, ft6, ft7
    vfmin.s ft6, ft3, ft7
    fld ft3, 0(a4)
    fld ft4, 8(a4)
    fld fs1, 8(a4)
    fld fs2, 8(a4)
    fld fs3, 8(a4)
    fld fs4, 8(a4)
    vfmac.s fs1, fs6, ft3
    vfmac.s fs2, fs7, ft3
    vfmac.s fs3, ft5, ft3
    vfmac.s fs4, ft6, ft3
    vfsub.s ft7, fs1, ft4
    vfsub.s fs5, fs2, ft4
    vfsub.s fs8, fs3, ft4
    vfsub.s fs9, fs4, ft4
    fld ft3, 16(a4)
    fmv.d ft4, ft6
    vfmac.s fs6, ft7, ft3
    vfmac.s fs7, fs5, ft3
    vfmac.s ft5, fs8, ft3
    vfmac.s ft4, fs9, ft3
    fld ft3, 24(a4)
    fmv.d ft6, ft4
    vfmac.s fs6, ft7, ft3
    vfmac.s fs7, fs5, ft3
    vfmac.s ft5, fs8, ft3
    vfmac.s ft6, fs9, ft3
    fld ft3, 32(a4)
    fld fs5, 40(a4)
    fld fs8, 40(a4)
    fld fs9, 40(a4)
    fld fs10, 40(a4)
    vfmac.s fs5, ft3, fs6
    vfmac.s fs8, ft3, fs7
    vfmac.s fs9, ft3, ft5
    vfmac.s fs10, ft3, ft6
    fld ft3, 48(a4)
    fld ft4, 48(a4)
    fld ft7, 48(a4)
    fld fs11, 48(a4)
    vfmac.s ft3, fs5, fs6
    vfmac.s ft4, fs8, fs7
    vfmac.s ft7, fs9, ft5
    vfmac.s fs11, fs10, ft6
    fld fs5, 56(a4)
    fld fs8, 56(a4)
    fld fs9, 56(a4)
    fld fs10, 56(a4)
    vfmac.s fs5, ft3, fs6
    vfmac.s fs8, ft4, fs7
    vfmac.s fs9, ft7, ft5
    vfmac.s fs10, fs11, ft6
    fld ft3, 64(a4)
    fld ft4, 64(a4)
    fld ft7, 64(a4)
    fld fs11, 64(a4)
    vfmac.s ft3, fs5, fs6
    vfmac.s ft4, fs8, fs7
    vfmac.s ft7, fs9, ft5
    vfmac.s fs11, fs10, ft6
    fld fs5, 72(a4)
    fld fs8, 72(a4)
    fld fs9, 72(a4)
    fld fs10, 72(a4)
    vfmac.s fs5, ft3, fs6
    vfmac.s fs8, ft4, fs7
    vfmac.s fs9, ft7, ft5
    vfmac.s fs10, fs11, ft6
    fld ft3, 80(a4)
    fadd.d ft7, fs1, ft3
    fadd.d fs6, fs2, ft3
    fadd.d fs7, fs3, ft3
    fadd.d ft6, fs4, ft3
    fld fs11, 88(a4)
    vfcpka.s.s ft3, fs1, fs11
    vfcpka.s.s ft4, fs2, fs11
    vfcpka.s.s ft5, fs3, fs11
    vfcpka.s.s fs1, fs4, fs11
    fadd.d ft3, ft3, fs11
    fadd.d ft4, ft4, fs11
    fadd.d ft5, ft5, fs11
    fadd.d fs1, fs1, fs11
    vfcpka.s.s ft3, ft3, ft7
    vfcpka.s.s ft4, ft4, fs6
    vfcpka.s.s ft5, ft5, fs7
    vfcpka.s.s ft6, fs1, ft6
    vfmul.s ft3, fs5, ft3
    vfmul.s ft4, fs8, ft4
    vfmul.s ft5, fs9, ft5
    vfmul.s ft6, fs10, ft6
    li t0, 3
    fld ft7, 112(a4)
    fld fs1, 120(a4)
    fmv.d fs2, ft5
    beq a1, t0, .Lsigmoid_ordered2
    vfsgnjx.s ft5, fa5, fa5
    vfadd.s ft5, ft5, ft7
    vfdiv.s ft5, fs1, ft5
    vfadd.s ft3, ft3, ft5
.Lsigmoid_ordered2:
    fmv.d ft5, ft3
    beq a2, t0, .Lsigmoid_ordered3
    vfsgnjx.s ft3, fa6, fa6
    vfadd.s ft3, ft3, ft7
    vfdiv.s ft3, fs1, ft3
    vfadd.s ft4, ft4, ft3
.Lsigmoid_ordered3:
    beq a3, t0, .Lsigmoid_ordered4
    vfsgnjx.s ft3, fa7, fa7
    vfadd.s ft3, ft3, ft7
    vfdiv.s ft3, fs1, ft3
    vfadd.s fs2, fs2, ft3
.Lsigmoid_ordered4:
    beq a7, t0, .Lsigmoid_ordered5
    vfsgnjx.s ft3, fs0, fs0
    vfadd.s ft3, ft3, ft7
    vfdiv.s ft3, fs1, ft3
    vfadd.s ft6, ft6, ft3
.Lsigmoid_ordered5:
    fmv.d ft3, ft6
.Lsigmoid_moderate1:
    bne a0, zero, .Lsigmoid_loop6
    vfadd.s fa5, ft5, fa4
    vfadd.s fa6, ft4, fa4
    vfadd.s fa7, fs2, fa4
    vfadd.s fs0, ft3, fa4
    vfdiv.s ft1, fa4, fa5
    vfdiv.s ft1, fa4, fa6
    vfdiv.s ft1, fa4, fa7
    vfdiv.s ft1, fa4, fs0
    csrrci zero, 1984, 1
.Lsigmoid_written7:
    scfgr a0, a6
    bge a0, zero, .Lsigmoid_written7
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
