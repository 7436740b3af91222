# kernel: sigmoid:16x16 f32
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 5593
# cycles_of_pdojo_snitch: 5593
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]=out'
.data
.balign 8
sigmoid_constants:
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
.globl sigmoid
.p2align 2
sigmoid:
    addi sp, sp, -128
    fsd fs0, 32(sp)
    fsd fs1, 40(sp)
    fsd fs2, 48(sp)
    fsd fs3, 56(sp)
    fsd fs4, 64(sp)
    fsd fs5, 72(sp)
    fsd fs6, 80(sp)
    fsd fs7, 88(sp)
    fsd fs8, 96(sp)
    fsd fs9, 104(sp)
    fsd fs10, 112(sp)
    fsd fs11, 120(sp)
    li a2, 127
    li a3, 8
    la a4, sigmoid_constants
    fld ft8, 0(a4)
    fld ft9, 8(a4)
    fld ft10, 16(a4)
    fld ft11, 24(a4)
    fld fa0, 32(a4)
    fld fa1, 40(a4)
    fld fa2, 48(a4)
    fld fa3, 56(a4)
    fld fa4, 64(a4)
    fld fa5, 72(a4)
    fld fa6, 80(a4)
    fld fa7, 88(a4)
    fld fs0, 96(a4)
    li a5, 3
    fld fs1, 104(a4)
    fld fs2, 112(a4)
    li a4, 1
    scfgwi zero, 63
    scfgwi a2, 95
    scfgwi a3, 223
    scfgwi a0, 768
    scfgwi a1, 897
    csrrsi zero, 1984, 1
    li a0, 32
.Lsigmoid_loop5:
    vfsgnjn.s fs3, ft0, ft0
    vfsgnjn.s fs4, ft0, ft0
    vfsgnjn.s fs5, ft0, ft0
    vfmax.s ft3, fs3, ft8
    vfsgnjn.s fs6, ft0, ft0
    vfmin.s ft3, ft3, ft9
    fmv.d fs7, ft11
    fmv.d ft7, ft3
    vfmac.s fs7, ft3, ft10
    vfmax.s ft3, fs4, ft8
    fmv.d fs8, ft11
    vfmin.s ft3, ft3, ft9
    vfsub.s ft5, fs7, ft11
    vfmac.s fs8, ft3, ft10
    fmv.d fs9, fa3
    fmv.d ft4, ft3
    vfmac.s ft7, ft5, fa0
    vfsub.s ft6, fs8, ft11
    vfmax.s ft3, fs5, ft8
    fmv.d fs10, fa4
    vfmac.s ft4, ft6, fa0
    vfmac.s ft7, ft5, fa1
    vfmin.s ft5, ft3, ft9
    fmv.d fs11, ft11
    fmv.d ft3, ft4
    vfmac.s fs9, fa2, ft7
    vfmac.s fs11, ft5, ft10
    fmv.d ft4, fa5
    vfmac.s ft3, ft6, fa1
    vfmac.s fs10, fs9, ft7
    fsd fs7, 0(sp)
    flw fs7, 0(sp)
    vfsub.s fs9, fs11, ft11
    vfmac.s ft4, fs10, ft7
    flw ft6, 4(sp)
    fmv.d fs10, fa3
    vfmac.s fs10, fa2, ft3
    fcvt.d.s fs7, fs7
    fcvt.d.s ft6, ft6
    vfmac.s ft5, fs9, fa0
    vfeq.s a1, fs3, fs3
    fadd.d fs7, fs7, fs0
    fadd.d ft6, ft6, fs0
    fsd fs8, 8(sp)
    fmv.d fs8, fa6
    vfmac.s ft5, fs9, fa1
    vfmac.s fs8, ft4, ft7
    vfmax.s ft4, fs6, ft8
    fmv.d fs9, fa4
    vfmin.s ft4, ft4, ft9
    vfmac.s fs9, fs10, ft3
    fmv.d fs10, fa7
    vfcpka.s.s ft6, fs7, ft6
    fmv.d fs7, ft11
    vfmac.s fs10, fs8, ft7
    vfmac.s fs7, ft4, ft10
    fmv.d ft7, fa5
    flw fs8, 8(sp)
    vfmac.s ft7, fs9, ft3
    vfsub.s fs9, fs7, ft11
    vfmul.s ft6, fs10, ft6
    flw fs10, 12(sp)
    fcvt.d.s fs8, fs8
    fcvt.d.s fs10, fs10
    vfmac.s ft4, fs9, fa0
    vfeq.s a2, fs4, fs4
    fadd.d fs8, fs8, fs0
    fadd.d fs10, fs10, fs0
    fsd fs11, 16(sp)
    fmv.d fs11, fa3
    vfmac.s ft4, fs9, fa1
    fmv.d fs9, fa6
    vfmac.s fs11, fa2, ft5
    vfmac.s fs9, ft7, ft3
    fmv.d ft7, fa4
    vfcpka.s.s fs8, fs8, fs10
    fmv.d fs10, fa7
    vfmac.s ft7, fs11, ft5
    vfmac.s fs10, fs9, ft3
    beq a1, a5, .Lsigmoid_ordered1
    vfsgnjx.s ft3, fs3, fs3
    vfadd.s ft3, ft3, fs1
    vfdiv.s ft3, fs2, ft3
    vfadd.s ft6, ft6, ft3
.Lsigmoid_ordered1:
    fmv.d fs9, fa5
    fmv.d fs3, ft6
    vfmac.s fs9, ft7, ft5
    flw ft3, 16(sp)
    flw fs11, 20(sp)
    fmv.d ft6, fa3
    fmv.d ft7, fa6
    vfmul.s fs8, fs10, fs8
    vfmac.s ft6, fa2, ft4
    vfmac.s ft7, fs9, ft5
    fcvt.d.s fs10, ft3
    fcvt.d.s ft3, fs11
    fmv.d fs9, fa4
    fmv.d fs11, fa7
    vfeq.s a1, fs5, fs5
    fadd.d fs10, fs10, fs0
    vfmac.s fs9, ft6, ft4
    fadd.d ft6, ft3, fs0
    vfmac.s fs11, ft7, ft5
    beq a2, a5, .Lsigmoid_ordered2
    vfsgnjx.s ft3, fs4, fs4
    vfadd.s ft3, ft3, fs1
    vfdiv.s ft3, fs2, ft3
    vfadd.s fs8, fs8, ft3
.Lsigmoid_ordered2:
    fmv.d ft7, fa5
    fmv.d fs4, fs8
    vfcpka.s.s ft3, fs10, ft6
    vfmac.s ft7, fs9, ft4
    fsd fs7, 24(sp)
    flw ft5, 24(sp)
    flw ft6, 28(sp)
    fmv.d fs7, fa6
    vfmul.s ft3, fs11, ft3
    vfmac.s fs7, ft7, ft4
    fcvt.d.s ft5, ft5
    fcvt.d.s ft6, ft6
    fmv.d ft7, fa7
    fmv.d fs8, ft3
    vfeq.s a2, fs6, fs6
    fadd.d ft3, ft5, fs0
    fadd.d ft5, ft6, fs0
    vfmac.s ft7, fs7, ft4
    beq a1, a5, .Lsigmoid_ordered3
    vfsgnjx.s ft4, fs5, fs5
    vfadd.s ft4, ft4, fs1
    vfdiv.s ft4, fs2, ft4
    vfadd.s fs8, fs8, ft4
.Lsigmoid_ordered3:
    fmv.d fs5, fs8
    vfcpka.s.s ft3, ft3, ft5
    vfadd.s fs3, fs3, fs1
    vfadd.s fs4, fs4, fs1
    vfmul.s ft3, ft7, ft3
    vfadd.s fs5, fs5, fs1
    vfdiv.s ft1, fs1, fs3
    vfdiv.s ft1, fs1, fs4
    beq a2, a5, .Lsigmoid_ordered4
    vfsgnjx.s ft4, fs6, fs6
    vfadd.s ft4, ft4, fs1
    vfdiv.s ft4, fs2, ft4
    vfadd.s ft3, ft3, ft4
.Lsigmoid_ordered4:
    fmv.d fs6, ft3
    vfdiv.s ft1, fs1, fs5
    vfadd.s fs6, fs6, fs1
    addi a0, a0, -1
    vfdiv.s ft1, fs1, fs6
    bne a0, zero, .Lsigmoid_loop5
    csrrci zero, 1984, 1
.Lsigmoid_written6:
    scfgr a0, a4
    bge a0, zero, .Lsigmoid_written6
    fld fs0, 32(sp)
    fld fs1, 40(sp)
    fld fs2, 48(sp)
    fld fs3, 56(sp)
    fld fs4, 64(sp)
    fld fs5, 72(sp)
    fld fs6, 80(sp)
    fld fs7, 88(sp)
    fld fs8, 96(sp)
    fld fs9, 104(sp)
    fld fs10, 112(sp)
    fld fs11, 120(sp)
    addi sp, sp, 128
    ret
