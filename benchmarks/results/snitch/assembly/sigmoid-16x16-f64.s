# kernel: sigmoid:16x16 f64
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 7600
# cycles_of_pdojo_snitch: 7600
# arguments, in a0 and so on:
#   --arg 'f64[16,16]'
#   --arg 'f64[16,16]=out'
.data
.balign 8
sigmoid_constants:
.word 0x652b82fe, 0x3ff71547
.word 0x000003ff, 0x43380000
.word 0xfefa39ef, 0xbfe62e42
.word 0x3b39803f, 0xbc7abc9e
.word 0x3d7a8584, 0x3e5adce5
.word 0x6898a2e8, 0x3e928aec
.word 0x88bd750d, 0x3ec71def
.word 0x8982b125, 0x3efa0199
.word 0x13bbd3d8, 0x3f2a01a0
.word 0x184b3cff, 0x3f56c16c
.word 0x11125148, 0x3f811111
.word 0x55550607, 0x3fa55555
.word 0x55555502, 0x3fc55555
.word 0x0000000a, 0x3fe00000
.word 0x00000000, 0x3ff00000
.word 0x80000000, 0xc337fffe
.word 0x00000000, 0x411e9840
.word 0x00000000, 0x7fe00000
.word 0x00000000, 0x40862000
.word 0x00000000, 0x40875000
.word 0x00000000, 0xc0875000
.word 0x00000000, 0x40863000
.word 0x00000000, 0x40500000
.word 0x3ff00000, 0x41f80000
.text
.globl sigmoid
.p2align 2
sigmoid:
    addi sp, sp, -112
    fsd fs0, 16(sp)
    fsd fs1, 24(sp)
    fsd fs2, 32(sp)
    fsd fs3, 40(sp)
    fsd fs4, 48(sp)
    fsd fs5, 56(sp)
    fsd fs6, 64(sp)
    fsd fs7, 72(sp)
    fsd fs8, 80(sp)
    fsd fs9, 88(sp)
    fsd fs10, 96(sp)
    fsd fs11, 104(sp)
    li a2, 255
    li a3, 8
    la a4, sigmoid_constants
    fld ft6, 0(a4)
    fld ft7, 8(a4)
    fld ft8, 16(a4)
    fld ft9, 24(a4)
    fld ft10, 32(a4)
    fld ft11, 40(a4)
    fld fa0, 48(a4)
    fld fa1, 56(a4)
    fld fa2, 64(a4)
    fld fa3, 72(a4)
    fld fa4, 80(a4)
    fld fa5, 88(a4)
    fld fa6, 96(a4)
    fld fa7, 104(a4)
    fld fs0, 112(a4)
    fld fs1, 120(a4)
    fld fs2, 128(a4)
    li a5, 1
    scfgwi zero, 63
    scfgwi a2, 95
    scfgwi a3, 223
    scfgwi a0, 768
    scfgwi a1, 897
    csrrsi zero, 1984, 1
    fsgnjn.d fs3, ft0, ft0
    fmadd.d fs4, fs3, ft6, ft7
    fsub.d ft3, fs4, ft7
    fmadd.d ft4, ft3, ft8, fs3
    fsgnjn.d fs5, ft0, ft0
    fmadd.d fs6, ft3, ft9, ft4
    fmadd.d fs7, fs5, ft6, ft7
    fmadd.d ft3, ft10, fs6, ft11
    fsub.d ft4, fs7, ft7
    fmadd.d ft3, ft3, fs6, fa0
    fmadd.d ft5, ft4, ft8, fs5
    fmadd.d ft3, ft3, fs6, fa1
    fmadd.d ft5, ft4, ft9, ft5
    fmadd.d ft3, ft3, fs6, fa2
    fmadd.d ft4, ft10, ft5, ft11
    fmadd.d ft3, ft3, fs6, fa3
    fmadd.d ft4, ft4, ft5, fa0
    fmadd.d ft3, ft3, fs6, fa4
    fmadd.d ft4, ft4, ft5, fa1
    fmadd.d ft3, ft3, fs6, fa5
    fmadd.d ft4, ft4, ft5, fa2
    fmadd.d ft3, ft3, fs6, fa6
    fmadd.d ft4, ft4, ft5, fa3
    fmadd.d ft3, ft3, fs6, fa7
    fmadd.d ft4, ft4, ft5, fa4
    fsgnjn.d fs8, ft0, ft0
    fadd.d fs4, fs4, fs1
    fmadd.d ft3, ft3, fs6, fs0
    fmadd.d ft4, ft4, ft5, fa5
    fmadd.d fs9, fs8, ft6, ft7
    vfcpka.s.s fs4, fs0, fs4
    fmadd.d ft3, ft3, fs6, fs0
    fmadd.d ft4, ft4, ft5, fa6
    fsub.d fs10, fs9, ft7
    fsgnjn.d fs6, ft0, ft0
    fmul.d fs4, ft3, fs4
    fmadd.d ft3, ft4, ft5, fa7
    fmadd.d fs11, fs10, ft8, fs8
    fmadd.d ft4, fs6, ft6, ft7
    fmadd.d ft3, ft3, ft5, fs0
    fmadd.d ft6, fs10, ft9, fs11
    fsub.d fs10, ft4, ft7
    fmadd.d ft5, ft3, ft5, fs0
    fmadd.d ft3, fs10, ft8, fs6
    fmadd.d ft9, fs10, ft9, ft3
    fmadd.d ft3, ft10, ft6, ft11
    fmadd.d ft3, ft3, ft6, fa0
    fadd.d ft8, fs7, fs1
    fmadd.d ft3, ft3, ft6, fa1
    vfcpka.s.s ft8, fs0, ft8
    fmadd.d ft3, ft3, ft6, fa2
    fmul.d ft8, ft5, ft8
    fmadd.d ft5, ft10, ft9, ft11
    fmadd.d ft3, ft3, ft6, fa3
    fmadd.d ft5, ft5, ft9, fa0
    fmadd.d ft3, ft3, ft6, fa4
    fmadd.d ft5, ft5, ft9, fa1
    fmadd.d ft3, ft3, ft6, fa5
    fmadd.d ft5, ft5, ft9, fa2
    fmadd.d ft3, ft3, ft6, fa6
    fmadd.d ft5, ft5, ft9, fa3
    fmadd.d ft3, ft3, ft6, fa7
    fmadd.d ft5, ft5, ft9, fa4
    fmadd.d ft3, ft3, ft6, fs0
    fmadd.d ft5, ft5, ft9, fa5
    fmadd.d ft6, ft3, ft6, fs0
    fmul.d ft3, fs3, fs3
    fmadd.d ft5, ft5, ft9, fa6
    fmadd.d ft3, fs5, fs5, ft3
    fmadd.d ft5, ft5, ft9, fa7
    fadd.d fs7, fs9, fs1
    fmadd.d ft3, fs8, fs8, ft3
    fmadd.d ft5, ft5, ft9, fs0
    fadd.d ft4, ft4, fs1
    vfcpka.s.s fs7, fs0, fs7
    fmadd.d ft3, fs6, fs6, ft3
    fmadd.d ft5, ft5, ft9, fs0
    vfcpka.s.s ft4, fs0, ft4
    fmul.d ft6, ft6, fs7
    flt.d a0, ft3, fs2
    fmul.d ft5, ft5, ft4
    li a6, 64
    addi a6, a6, -1
    bne a0, zero, .Lsigmoid_moderate1_apart
    fld ft9, 136(a4)
    fcvt.d.w fs2, zero
    fld fs7, 144(a4)
    fld fs9, 152(a4)
    fsgnjx.d ft3, fs3, fs3
    fsgnjx.d ft4, fs5, fs5
    flt.d a0, ft3, fs7
    flt.d a1, ft4, fs7
    flt.d a2, fs9, ft3
    flt.d a3, fs9, ft4
    bne a0, zero, .Lsigmoid_right2_apart
    fmul.d fs4, fs3, ft9
    fmax.d fs4, fs4, fs2
    bne a2, zero, .Lsigmoid_known3_apart
    fld ft3, 160(a4)
    fld fs4, 112(a4)
    flt.d a0, fs3, fs4
    fcvt.d.w ft4, zero
    flt.d a2, ft4, fs3
    or a0, a0, a2
    fmax.d ft3, fs3, ft3
    fld ft4, 168(a4)
    fmin.d ft4, ft3, ft4
    fld ft3, 176(a4)
    fsgnj.d fs10, ft3, ft4
    fld ft3, 8(a4)
    fsub.d fs11, ft3, fs10
    fld ft3, 184(a4)
    fadd.d ft3, fs10, ft3
    vfcpka.s.s ft3, fs4, ft3
    fsd ft3, 8(sp)
    fld ft3, 0(a4)
    fmadd.d fs10, ft4, ft3, fs11
    fsub.d fs11, fs10, fs11
    fld ft3, 16(a4)
    fmadd.d ft3, fs11, ft3, ft4
    fld ft4, 24(a4)
    fmadd.d fs11, fs11, ft4, ft3
    fld ft3, 32(a4)
    fld ft4, 40(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fld ft4, 48(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fld ft4, 56(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fld ft4, 64(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fld ft4, 72(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fld ft4, 80(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fld ft4, 88(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fld ft4, 96(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fld ft4, 104(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fmadd.d ft3, ft3, fs11, fs4
    fmadd.d ft4, ft3, fs11, fs4
    fld ft3, 120(a4)
    fadd.d ft3, fs10, ft3
    vfcpka.s.s ft3, fs4, ft3
    fmul.d ft3, ft4, ft3
    fld ft4, 8(sp)
    fmul.d ft3, ft3, ft4
    bne a0, zero, .Lsigmoid_ordered4_apart
    fadd.d ft3, fs3, fs3
.Lsigmoid_ordered4_apart:
    fmv.d fs4, ft3
.Lsigmoid_known3_apart:
.Lsigmoid_right2_apart:
    bne a1, zero, .Lsigmoid_right5_apart
    fmul.d ft8, fs5, ft9
    fmax.d ft8, ft8, fs2
    bne a3, zero, .Lsigmoid_known6_apart
    fld ft3, 160(a4)
    fld ft8, 112(a4)
    flt.d a0, fs5, ft8
    fcvt.d.w ft4, zero
    flt.d a1, ft4, fs5
    or a0, a0, a1
    fmax.d ft3, fs5, ft3
    fld ft4, 168(a4)
    fmin.d fs3, ft3, ft4
    fld ft3, 176(a4)
    fsgnj.d ft3, ft3, fs3
    fld ft4, 8(a4)
    fsub.d fs10, ft4, ft3
    fld ft4, 184(a4)
    fadd.d ft3, ft3, ft4
    vfcpka.s.s ft4, ft8, ft3
    fld ft3, 0(a4)
    fmadd.d fs11, fs3, ft3, fs10
    fsub.d fs10, fs11, fs10
    fld ft3, 16(a4)
    fmadd.d ft3, fs10, ft3, fs3
    fld fs3, 24(a4)
    fmadd.d fs10, fs10, fs3, ft3
    fld ft3, 32(a4)
    fld fs3, 40(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fld fs3, 48(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fld fs3, 56(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fld fs3, 64(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fld fs3, 72(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fld fs3, 80(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fld fs3, 88(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fld fs3, 96(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fld fs3, 104(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fmadd.d ft3, ft3, fs10, ft8
    fmadd.d fs3, ft3, fs10, ft8
    fld ft3, 120(a4)
    fadd.d ft3, fs11, ft3
    vfcpka.s.s ft3, ft8, ft3
    fmul.d ft3, fs3, ft3
    fmul.d ft3, ft3, ft4
    bne a0, zero, .Lsigmoid_ordered7_apart
    fadd.d ft3, fs5, fs5
.Lsigmoid_ordered7_apart:
    fmv.d ft8, ft3
.Lsigmoid_known6_apart:
.Lsigmoid_right5_apart:
    fsgnjx.d ft3, fs8, fs8
    fsgnjx.d ft4, fs6, fs6
    flt.d a0, ft3, fs7
    flt.d a1, ft4, fs7
    flt.d a2, fs9, ft3
    flt.d a3, fs9, ft4
    bne a0, zero, .Lsigmoid_right8_apart
    fmul.d ft6, fs8, ft9
    fmax.d ft6, ft6, fs2
    bne a2, zero, .Lsigmoid_known9_apart
    fld ft3, 160(a4)
    fld ft6, 112(a4)
    flt.d a0, fs8, ft6
    fcvt.d.w ft4, zero
    flt.d a2, ft4, fs8
    or a0, a0, a2
    fmax.d ft3, fs8, ft3
    fld ft4, 168(a4)
    fmin.d fs5, ft3, ft4
    fld ft3, 176(a4)
    fsgnj.d ft3, ft3, fs5
    fld ft4, 8(a4)
    fsub.d ft4, ft4, ft3
    fld fs3, 184(a4)
    fadd.d ft3, ft3, fs3
    vfcpka.s.s fs7, ft6, ft3
    fld ft3, 0(a4)
    fmadd.d fs9, fs5, ft3, ft4
    fsub.d ft3, fs9, ft4
    fld ft4, 16(a4)
    fmadd.d ft4, ft3, ft4, fs5
    fld fs3, 24(a4)
    fmadd.d fs3, ft3, fs3, ft4
    fld ft3, 32(a4)
    fld ft4, 40(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fld ft4, 48(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fld ft4, 56(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fld ft4, 64(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fld ft4, 72(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fld ft4, 80(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fld ft4, 88(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fld ft4, 96(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fld ft4, 104(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fmadd.d ft3, ft3, fs3, ft6
    fmadd.d ft3, ft3, fs3, ft6
    fld ft4, 120(a4)
    fadd.d ft4, fs9, ft4
    vfcpka.s.s ft4, ft6, ft4
    fmul.d ft3, ft3, ft4
    fmul.d ft3, ft3, fs7
    bne a0, zero, .Lsigmoid_ordered10_apart
    fadd.d ft3, fs8, fs8
.Lsigmoid_ordered10_apart:
    fmv.d ft6, ft3
.Lsigmoid_known9_apart:
.Lsigmoid_right8_apart:
    bne a1, zero, .Lsigmoid_right11_apart
    fmul.d ft5, fs6, ft9
    fmax.d ft5, ft5, fs2
    bne a3, zero, .Lsigmoid_known12_apart
    fld ft3, 160(a4)
    fld ft9, 112(a4)
    flt.d a0, fs6, ft9
    fcvt.d.w ft4, zero
    flt.d a1, ft4, fs6
    or a0, a0, a1
    fmax.d ft3, fs6, ft3
    fld ft4, 168(a4)
    fmin.d fs2, ft3, ft4
    fld ft3, 176(a4)
    fsgnj.d ft3, ft3, fs2
    fld ft4, 8(a4)
    fsub.d ft4, ft4, ft3
    fld ft5, 184(a4)
    fadd.d ft3, ft3, ft5
    vfcpka.s.s fs3, ft9, ft3
    fld ft3, 0(a4)
    fmadd.d fs5, fs2, ft3, ft4
    fsub.d ft3, fs5, ft4
    fld ft4, 16(a4)
    fmadd.d ft4, ft3, ft4, fs2
    fld ft5, 24(a4)
    fmadd.d ft5, ft3, ft5, ft4
    fld ft3, 32(a4)
    fld ft4, 40(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 48(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 56(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 64(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 72(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 80(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 88(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 96(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 104(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fmadd.d ft3, ft3, ft5, ft9
    fmadd.d ft3, ft3, ft5, ft9
    fld ft4, 120(a4)
    fadd.d ft4, fs5, ft4
    vfcpka.s.s ft4, ft9, ft4
    fmul.d ft3, ft3, ft4
    fmul.d ft3, ft3, fs3
    bne a0, zero, .Lsigmoid_ordered13_apart
    fadd.d ft3, fs6, fs6
.Lsigmoid_ordered13_apart:
    fmv.d ft5, ft3
.Lsigmoid_known12_apart:
.Lsigmoid_right11_apart:
.Lsigmoid_moderate1_apart:
.Lsigmoid_loop14:
    fadd.d fs3, fs4, fs0
    fld ft9, 128(a4)
    fld fs2, 0(a4)
    fld fs4, 16(a4)
    fld fs7, 24(a4)
    fdiv.d ft1, fs0, fs3
    fadd.d fs5, ft8, fs0
    fadd.d fs8, ft6, fs0
    fadd.d fs6, ft5, fs0
    fsgnjn.d fs3, ft0, ft0
    fdiv.d ft1, fs0, fs5
    fsgnjn.d fs5, ft0, ft0
    fmadd.d ft3, fs3, fs2, ft7
    fmadd.d fs9, fs5, fs2, ft7
    fmul.d ft4, fs3, fs3
    addi a6, a6, -1
    fsub.d ft8, ft3, ft7
    fsub.d ft5, fs9, ft7
    fmadd.d ft6, fs5, fs5, ft4
    fadd.d ft3, ft3, fs1
    fmadd.d ft4, ft8, fs4, fs3
    fmadd.d fs11, ft5, fs4, fs5
    fadd.d fs10, fs9, fs1
    vfcpka.s.s ft3, fs0, ft3
    fdiv.d ft1, fs0, fs8
    fsgnjn.d fs8, ft0, ft0
    fmadd.d ft4, ft8, fs7, ft4
    fmadd.d fs9, fs8, fs2, ft7
    fmadd.d ft8, ft5, fs7, fs11
    fmadd.d ft5, fs8, fs8, ft6
    fmadd.d fs11, ft10, ft4, ft11
    fsub.d ft6, fs9, ft7
    fadd.d fs9, fs9, fs1
    vfcpka.s.s fs10, fs0, fs10
    fmadd.d fs11, fs11, ft4, fa0
    vfcpka.s.s fs9, fs0, fs9
    fmadd.d fs11, fs11, ft4, fa1
    fmadd.d fs11, fs11, ft4, fa2
    fdiv.d ft1, fs0, fs6
    fsgnjn.d fs6, ft0, ft0
    fmadd.d fs2, fs6, fs2, ft7
    fmadd.d fs11, fs11, ft4, fa3
    fmadd.d ft5, fs6, fs6, ft5
    fmadd.d fs11, fs11, ft4, fa4
    flt.d a0, ft5, ft9
    fsub.d ft5, fs2, ft7
    fmadd.d ft9, ft6, fs4, fs8
    fmadd.d fs11, fs11, ft4, fa5
    fadd.d fs2, fs2, fs1
    fmadd.d fs4, ft5, fs4, fs6
    fmadd.d ft6, ft6, fs7, ft9
    fmadd.d ft9, ft10, ft8, ft11
    fmadd.d fs11, fs11, ft4, fa6
    fmadd.d ft5, ft5, fs7, fs4
    fmadd.d fs4, ft10, ft6, ft11
    fmadd.d fs7, ft9, ft8, fa0
    fmadd.d ft9, fs11, ft4, fa7
    fmadd.d fs11, ft10, ft5, ft11
    fmadd.d fs4, fs4, ft6, fa0
    fmadd.d fs7, fs7, ft8, fa1
    fmadd.d ft9, ft9, ft4, fs0
    fmadd.d fs11, fs11, ft5, fa0
    fmadd.d fs4, fs4, ft6, fa1
    fmadd.d fs7, fs7, ft8, fa2
    fmadd.d ft9, ft9, ft4, fs0
    fmadd.d ft4, fs11, ft5, fa1
    fmadd.d fs4, fs4, ft6, fa2
    fmadd.d fs7, fs7, ft8, fa3
    vfcpka.s.s fs2, fs0, fs2
    fmadd.d ft4, ft4, ft5, fa2
    fmadd.d fs11, fs4, ft6, fa3
    fmadd.d fs7, fs7, ft8, fa4
    fmul.d fs4, ft9, ft3
    fmadd.d ft3, ft4, ft5, fa3
    fmadd.d ft4, fs11, ft6, fa4
    fmadd.d ft9, fs7, ft8, fa5
    fmadd.d ft3, ft3, ft5, fa4
    fmadd.d ft4, ft4, ft6, fa5
    fmadd.d ft9, ft9, ft8, fa6
    fmadd.d ft3, ft3, ft5, fa5
    fmadd.d ft4, ft4, ft6, fa6
    fmadd.d ft9, ft9, ft8, fa7
    fmadd.d ft3, ft3, ft5, fa6
    fmadd.d ft4, ft4, ft6, fa7
    fmadd.d ft9, ft9, ft8, fs0
    fmadd.d ft3, ft3, ft5, fa7
    fmadd.d ft4, ft4, ft6, fs0
    fmadd.d ft8, ft9, ft8, fs0
    fmadd.d ft3, ft3, ft5, fs0
    fmadd.d ft4, ft4, ft6, fs0
    fmul.d ft8, ft8, fs10
    fmadd.d ft3, ft3, ft5, fs0
    fmul.d ft6, ft4, fs9
    fmul.d ft5, ft3, fs2
    bne a0, zero, .Lsigmoid_moderate1
    fld ft9, 136(a4)
    fcvt.d.w fs2, zero
    fld fs7, 144(a4)
    fld fs9, 152(a4)
    fsgnjx.d ft3, fs3, fs3
    fsgnjx.d ft4, fs5, fs5
    flt.d a0, ft3, fs7
    flt.d a1, ft4, fs7
    flt.d a7, fs9, ft3
    flt.d t2, fs9, ft4
    bne a0, zero, .Lsigmoid_right2
    fmul.d fs4, fs3, ft9
    fmax.d fs4, fs4, fs2
    bne a7, zero, .Lsigmoid_known3
    fld ft3, 160(a4)
    fld fs4, 112(a4)
    flt.d a0, fs3, fs4
    fcvt.d.w ft4, zero
    flt.d a2, ft4, fs3
    or a0, a0, a2
    fmax.d ft3, fs3, ft3
    fld ft4, 168(a4)
    fmin.d ft4, ft3, ft4
    fld ft3, 176(a4)
    fsgnj.d fs10, ft3, ft4
    fld ft3, 8(a4)
    fsub.d fs11, ft3, fs10
    fld ft3, 184(a4)
    fadd.d ft3, fs10, ft3
    vfcpka.s.s ft3, fs4, ft3
    fsd ft3, 0(sp)
    fld ft3, 0(a4)
    fmadd.d fs10, ft4, ft3, fs11
    fsub.d fs11, fs10, fs11
    fld ft3, 16(a4)
    fmadd.d ft3, fs11, ft3, ft4
    fld ft4, 24(a4)
    fmadd.d fs11, fs11, ft4, ft3
    fld ft3, 32(a4)
    fld ft4, 40(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fld ft4, 48(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fld ft4, 56(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fld ft4, 64(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fld ft4, 72(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fld ft4, 80(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fld ft4, 88(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fld ft4, 96(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fld ft4, 104(a4)
    fmadd.d ft3, ft3, fs11, ft4
    fmadd.d ft3, ft3, fs11, fs4
    fmadd.d ft4, ft3, fs11, fs4
    fld ft3, 120(a4)
    fadd.d ft3, fs10, ft3
    vfcpka.s.s ft3, fs4, ft3
    fmul.d ft3, ft4, ft3
    fld ft4, 0(sp)
    fmul.d ft3, ft3, ft4
    bne a0, zero, .Lsigmoid_ordered4
    fadd.d ft3, fs3, fs3
.Lsigmoid_ordered4:
    fmv.d fs4, ft3
.Lsigmoid_known3:
.Lsigmoid_right2:
    bne a1, zero, .Lsigmoid_right5
    fmul.d ft8, fs5, ft9
    fmax.d ft8, ft8, fs2
    bne t2, zero, .Lsigmoid_known6
    fld ft3, 160(a4)
    fld ft8, 112(a4)
    flt.d a0, fs5, ft8
    fcvt.d.w ft4, zero
    flt.d a1, ft4, fs5
    or a0, a0, a1
    fmax.d ft3, fs5, ft3
    fld ft4, 168(a4)
    fmin.d fs3, ft3, ft4
    fld ft3, 176(a4)
    fsgnj.d ft3, ft3, fs3
    fld ft4, 8(a4)
    fsub.d fs10, ft4, ft3
    fld ft4, 184(a4)
    fadd.d ft3, ft3, ft4
    vfcpka.s.s ft4, ft8, ft3
    fld ft3, 0(a4)
    fmadd.d fs11, fs3, ft3, fs10
    fsub.d fs10, fs11, fs10
    fld ft3, 16(a4)
    fmadd.d ft3, fs10, ft3, fs3
    fld fs3, 24(a4)
    fmadd.d fs10, fs10, fs3, ft3
    fld ft3, 32(a4)
    fld fs3, 40(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fld fs3, 48(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fld fs3, 56(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fld fs3, 64(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fld fs3, 72(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fld fs3, 80(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fld fs3, 88(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fld fs3, 96(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fld fs3, 104(a4)
    fmadd.d ft3, ft3, fs10, fs3
    fmadd.d ft3, ft3, fs10, ft8
    fmadd.d fs3, ft3, fs10, ft8
    fld ft3, 120(a4)
    fadd.d ft3, fs11, ft3
    vfcpka.s.s ft3, ft8, ft3
    fmul.d ft3, fs3, ft3
    fmul.d ft3, ft3, ft4
    bne a0, zero, .Lsigmoid_ordered7
    fadd.d ft3, fs5, fs5
.Lsigmoid_ordered7:
    fmv.d ft8, ft3
.Lsigmoid_known6:
.Lsigmoid_right5:
    fsgnjx.d ft3, fs8, fs8
    fsgnjx.d ft4, fs6, fs6
    flt.d a0, ft3, fs7
    flt.d a1, ft4, fs7
    flt.d a2, fs9, ft3
    flt.d a7, fs9, ft4
    bne a0, zero, .Lsigmoid_right8
    fmul.d ft6, fs8, ft9
    fmax.d ft6, ft6, fs2
    bne a2, zero, .Lsigmoid_known9
    fld ft3, 160(a4)
    fld ft6, 112(a4)
    flt.d a0, fs8, ft6
    fcvt.d.w ft4, zero
    flt.d a2, ft4, fs8
    or a0, a0, a2
    fmax.d ft3, fs8, ft3
    fld ft4, 168(a4)
    fmin.d fs5, ft3, ft4
    fld ft3, 176(a4)
    fsgnj.d ft3, ft3, fs5
    fld ft4, 8(a4)
    fsub.d ft4, ft4, ft3
    fld fs3, 184(a4)
    fadd.d ft3, ft3, fs3
    vfcpka.s.s fs7, ft6, ft3
    fld ft3, 0(a4)
    fmadd.d fs9, fs5, ft3, ft4
    fsub.d ft3, fs9, ft4
    fld ft4, 16(a4)
    fmadd.d ft4, ft3, ft4, fs5
    fld fs3, 24(a4)
    fmadd.d fs3, ft3, fs3, ft4
    fld ft3, 32(a4)
    fld ft4, 40(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fld ft4, 48(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fld ft4, 56(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fld ft4, 64(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fld ft4, 72(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fld ft4, 80(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fld ft4, 88(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fld ft4, 96(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fld ft4, 104(a4)
    fmadd.d ft3, ft3, fs3, ft4
    fmadd.d ft3, ft3, fs3, ft6
    fmadd.d ft3, ft3, fs3, ft6
    fld ft4, 120(a4)
    fadd.d ft4, fs9, ft4
    vfcpka.s.s ft4, ft6, ft4
    fmul.d ft3, ft3, ft4
    fmul.d ft3, ft3, fs7
    bne a0, zero, .Lsigmoid_ordered10
    fadd.d ft3, fs8, fs8
.Lsigmoid_ordered10:
    fmv.d ft6, ft3
.Lsigmoid_known9:
.Lsigmoid_right8:
    bne a1, zero, .Lsigmoid_right11
    fmul.d ft5, fs6, ft9
    fmax.d ft5, ft5, fs2
    bne a7, zero, .Lsigmoid_known12
    fld ft3, 160(a4)
    fld ft9, 112(a4)
    flt.d a0, fs6, ft9
    fcvt.d.w ft4, zero
    flt.d a1, ft4, fs6
    or a0, a0, a1
    fmax.d ft3, fs6, ft3
    fld ft4, 168(a4)
    fmin.d fs2, ft3, ft4
    fld ft3, 176(a4)
    fsgnj.d ft3, ft3, fs2
    fld ft4, 8(a4)
    fsub.d ft4, ft4, ft3
    fld ft5, 184(a4)
    fadd.d ft3, ft3, ft5
    vfcpka.s.s fs3, ft9, ft3
    fld ft3, 0(a4)
    fmadd.d fs5, fs2, ft3, ft4
    fsub.d ft3, fs5, ft4
    fld ft4, 16(a4)
    fmadd.d ft4, ft3, ft4, fs2
    fld ft5, 24(a4)
    fmadd.d ft5, ft3, ft5, ft4
    fld ft3, 32(a4)
    fld ft4, 40(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 48(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 56(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 64(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 72(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 80(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 88(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 96(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 104(a4)
    fmadd.d ft3, ft3, ft5, ft4
    fmadd.d ft3, ft3, ft5, ft9
    fmadd.d ft3, ft3, ft5, ft9
    fld ft4, 120(a4)
    fadd.d ft4, fs5, ft4
    vfcpka.s.s ft4, ft9, ft4
    fmul.d ft3, ft3, ft4
    fmul.d ft3, ft3, fs3
    bne a0, zero, .Lsigmoid_ordered13
    fadd.d ft3, fs6, fs6
.Lsigmoid_ordered13:
    fmv.d ft5, ft3
.Lsigmoid_known12:
.Lsigmoid_right11:
.Lsigmoid_moderate1:
    bne a6, zero, .Lsigmoid_loop14
    fadd.d fs3, fs4, fs0
    fadd.d fs5, ft8, fs0
    fadd.d fs8, ft6, fs0
    fadd.d fs6, ft5, fs0
    fdiv.d ft1, fs0, fs3
    fdiv.d ft1, fs0, fs5
    fdiv.d ft1, fs0, fs8
    fdiv.d ft1, fs0, fs6
    csrrci zero, 1984, 1
.Lsigmoid_written15:
    scfgr a0, a5
    bge a0, zero, .Lsigmoid_written15
    fld fs0, 16(sp)
    fld fs1, 24(sp)
    fld fs2, 32(sp)
    fld fs3, 40(sp)
    fld fs4, 48(sp)
    fld fs5, 56(sp)
    fld fs6, 64(sp)
    fld fs7, 72(sp)
    fld fs8, 80(sp)
    fld fs9, 88(sp)
    fld fs10, 96(sp)
    fld fs11, 104(sp)
    addi sp, sp, 112
    ret
