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
.word 0x00000000, 0xc0875000
.word 0x00000000, 0x40863000
.word 0x00000000, 0x40500000
.word 0x3ff00000, 0x41f80000
.text
.globl sigmoid
.p2align 2
sigmoid:
    addi sp, sp, -272
    fsd fs0, 176(sp)
    fsd fs1, 184(sp)
    fsd fs2, 192(sp)
    fsd fs3, 200(sp)
    fsd fs4, 208(sp)
    fsd fs5, 216(sp)
    fsd fs6, 224(sp)
    fsd fs7, 232(sp)
    fsd fs8, 240(sp)
    fsd fs9, 248(sp)
    fsd fs10, 256(sp)
    fsd fs11, 264(sp)
    li a2, 255
    li a3, 8
    la t0, sigmoid_constants
    fld ft6, 0(t0)
    fld ft7, 8(t0)
    fld ft8, 16(t0)
    fld ft9, 24(t0)
    fld ft10, 32(t0)
    fld ft11, 40(t0)
    fld fa0, 48(t0)
    fld fa1, 56(t0)
    fld fa2, 64(t0)
    fld fa3, 72(t0)
    fld fa4, 80(t0)
    fld fa5, 88(t0)
    fld fa6, 96(t0)
    fld fa7, 104(t0)
    fld fs0, 112(t0)
    fld fs1, 120(t0)
    fld fs2, 128(t0)
    li t1, 1
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
    fmul.d fs7, ft6, fs7
    flt.d a0, ft3, fs2
    fmul.d ft3, ft5, ft4
    li t2, 64
    addi t2, t2, -1
    bne a0, zero, .Lsigmoid_moderate1_apart
    fld ft3, 136(t0)
    fld ft9, 112(t0)
    flt.d a0, fs3, ft9
    flt.d a1, fs5, ft9
    flt.d a2, fs8, ft9
    flt.d a3, fs6, ft9
    fcvt.d.w ft4, zero
    flt.d a4, ft4, fs3
    flt.d a5, ft4, fs5
    flt.d a6, ft4, fs8
    flt.d a7, ft4, fs6
    or a0, a0, a4
    or a1, a1, a5
    or a2, a2, a6
    or a3, a3, a7
    fmax.d ft4, fs3, ft3
    fmax.d ft5, fs5, ft3
    fmax.d ft6, fs8, ft3
    fmax.d ft3, fs6, ft3
    fld ft8, 144(t0)
    fmin.d fs2, ft4, ft8
    fmin.d ft5, ft5, ft8
    fmin.d ft6, ft6, ft8
    fmin.d ft8, ft3, ft8
    fld ft3, 152(t0)
    fsgnj.d ft4, ft3, fs2
    fsd ft4, 88(sp)
    fsgnj.d ft4, ft3, ft5
    fsd ft4, 80(sp)
    fsgnj.d ft4, ft3, ft6
    fsd ft4, 168(sp)
    fsgnj.d fs4, ft3, ft8
    fld ft4, 8(t0)
    fld ft3, 88(sp)
    fsub.d fs7, ft4, ft3
    fld ft3, 80(sp)
    fsub.d fs9, ft4, ft3
    fld ft3, 168(sp)
    fsub.d fs10, ft4, ft3
    fsub.d ft4, ft4, fs4
    fld fs11, 160(t0)
    fld ft3, 88(sp)
    fadd.d ft3, ft3, fs11
    fsd ft3, 104(sp)
    fld ft3, 80(sp)
    fadd.d ft3, ft3, fs11
    fsd ft3, 96(sp)
    fld ft3, 168(sp)
    fadd.d ft3, ft3, fs11
    fadd.d fs11, fs4, fs11
    fld fs4, 104(sp)
    vfcpka.s.s fs4, ft9, fs4
    fsd fs4, 152(sp)
    fld fs4, 96(sp)
    vfcpka.s.s fs4, ft9, fs4
    fsd fs4, 144(sp)
    vfcpka.s.s ft3, ft9, ft3
    fsd ft3, 136(sp)
    vfcpka.s.s ft3, ft9, fs11
    fsd ft3, 128(sp)
    fld fs4, 0(t0)
    fmadd.d ft3, fs2, fs4, fs7
    fsd ft3, 120(sp)
    fmadd.d ft3, ft5, fs4, fs9
    fsd ft3, 112(sp)
    fmadd.d fs11, ft6, fs4, fs10
    fmadd.d fs4, ft8, fs4, ft4
    fld ft3, 120(sp)
    fsub.d fs7, ft3, fs7
    fld ft3, 112(sp)
    fsub.d fs9, ft3, fs9
    fsub.d fs10, fs11, fs10
    fsub.d ft3, fs4, ft4
    fld ft4, 16(t0)
    fmadd.d fs2, fs7, ft4, fs2
    fmadd.d ft5, fs9, ft4, ft5
    fmadd.d ft6, fs10, ft4, ft6
    fmadd.d ft4, ft3, ft4, ft8
    fld ft8, 24(t0)
    fmadd.d fs2, fs7, ft8, fs2
    fmadd.d ft5, fs9, ft8, ft5
    fmadd.d ft6, fs10, ft8, ft6
    fmadd.d fs9, ft3, ft8, ft4
    fld ft3, 32(t0)
    fld ft4, 40(t0)
    fmadd.d ft8, ft3, fs2, ft4
    fmadd.d fs7, ft3, ft5, ft4
    fmadd.d fs10, ft3, ft6, ft4
    fmadd.d ft3, ft3, fs9, ft4
    fld ft4, 48(t0)
    fmadd.d ft8, ft8, fs2, ft4
    fmadd.d fs7, fs7, ft5, ft4
    fmadd.d fs10, fs10, ft6, ft4
    fmadd.d ft3, ft3, fs9, ft4
    fld ft4, 56(t0)
    fmadd.d ft8, ft8, fs2, ft4
    fmadd.d fs7, fs7, ft5, ft4
    fmadd.d fs10, fs10, ft6, ft4
    fmadd.d ft3, ft3, fs9, ft4
    fld ft4, 64(t0)
    fmadd.d ft8, ft8, fs2, ft4
    fmadd.d fs7, fs7, ft5, ft4
    fmadd.d fs10, fs10, ft6, ft4
    fmadd.d ft3, ft3, fs9, ft4
    fld ft4, 72(t0)
    fmadd.d ft8, ft8, fs2, ft4
    fmadd.d fs7, fs7, ft5, ft4
    fmadd.d fs10, fs10, ft6, ft4
    fmadd.d ft3, ft3, fs9, ft4
    fld ft4, 80(t0)
    fmadd.d ft8, ft8, fs2, ft4
    fmadd.d fs7, fs7, ft5, ft4
    fmadd.d fs10, fs10, ft6, ft4
    fmadd.d ft3, ft3, fs9, ft4
    fld ft4, 88(t0)
    fmadd.d ft8, ft8, fs2, ft4
    fmadd.d fs7, fs7, ft5, ft4
    fmadd.d fs10, fs10, ft6, ft4
    fmadd.d ft3, ft3, fs9, ft4
    fld ft4, 96(t0)
    fmadd.d ft8, ft8, fs2, ft4
    fmadd.d fs7, fs7, ft5, ft4
    fmadd.d fs10, fs10, ft6, ft4
    fmadd.d ft3, ft3, fs9, ft4
    fld ft4, 104(t0)
    fmadd.d ft8, ft8, fs2, ft4
    fmadd.d fs7, fs7, ft5, ft4
    fmadd.d fs10, fs10, ft6, ft4
    fmadd.d ft4, ft3, fs9, ft4
    fmadd.d ft8, ft8, fs2, ft9
    fmadd.d fs7, fs7, ft5, ft9
    fmadd.d ft3, fs10, ft6, ft9
    fmadd.d fs10, ft4, fs9, ft9
    fmadd.d ft4, ft8, fs2, ft9
    fmadd.d ft5, fs7, ft5, ft9
    fmadd.d ft8, ft3, ft6, ft9
    fmadd.d fs2, fs10, fs9, ft9
    fld ft6, 120(t0)
    fld ft3, 120(sp)
    fadd.d fs7, ft3, ft6
    fld ft3, 112(sp)
    fadd.d fs9, ft3, ft6
    fadd.d fs10, fs11, ft6
    fadd.d ft3, fs4, ft6
    vfcpka.s.s ft6, ft9, fs7
    vfcpka.s.s fs4, ft9, fs9
    vfcpka.s.s fs7, ft9, fs10
    vfcpka.s.s ft3, ft9, ft3
    fmul.d ft4, ft4, ft6
    fmul.d ft5, ft5, fs4
    fmul.d ft6, ft8, fs7
    fmul.d ft3, fs2, ft3
    fld ft8, 152(sp)
    fmul.d ft4, ft4, ft8
    fld ft8, 144(sp)
    fmul.d ft5, ft5, ft8
    fld ft8, 136(sp)
    fmul.d ft6, ft6, ft8
    fld ft8, 128(sp)
    fmul.d ft3, ft3, ft8
    bne a0, zero, .Lsigmoid_ordered2_apart
    fadd.d ft4, fs3, fs3
.Lsigmoid_ordered2_apart:
    fmv.d fs4, ft4
    bne a1, zero, .Lsigmoid_ordered3_apart
    fadd.d ft5, fs5, fs5
.Lsigmoid_ordered3_apart:
    fmv.d ft8, ft5
    bne a2, zero, .Lsigmoid_ordered4_apart
    fadd.d ft6, fs8, fs8
.Lsigmoid_ordered4_apart:
    fmv.d fs7, ft6
    bne a3, zero, .Lsigmoid_ordered5_apart
    fadd.d ft3, fs6, fs6
.Lsigmoid_ordered5_apart:
.Lsigmoid_moderate1_apart:
.Lsigmoid_loop6:
    fadd.d fs3, fs4, fs0
    fld ft6, 128(t0)
    fld ft9, 0(t0)
    fld fs2, 16(t0)
    fld fs4, 24(t0)
    fdiv.d ft1, fs0, fs3
    fadd.d fs5, ft8, fs0
    fadd.d fs8, fs7, fs0
    fadd.d fs6, ft3, fs0
    fsgnjn.d fs3, ft0, ft0
    fdiv.d ft1, fs0, fs5
    fsgnjn.d fs5, ft0, ft0
    fmadd.d ft3, fs3, ft9, ft7
    fmadd.d fs9, fs5, ft9, ft7
    fmul.d ft4, fs3, fs3
    addi t2, t2, -1
    fsub.d fs7, ft3, ft7
    fsub.d ft5, fs9, ft7
    fmadd.d ft8, fs5, fs5, ft4
    fadd.d ft3, ft3, fs1
    fmadd.d ft4, fs7, fs2, fs3
    fmadd.d fs11, ft5, fs2, fs5
    fadd.d fs10, fs9, fs1
    vfcpka.s.s ft3, fs0, ft3
    fdiv.d ft1, fs0, fs8
    fsgnjn.d fs8, ft0, ft0
    fmadd.d ft4, fs7, fs4, ft4
    fmadd.d fs9, fs8, ft9, ft7
    fmadd.d fs7, ft5, fs4, fs11
    fmadd.d ft5, fs8, fs8, ft8
    fmadd.d fs11, ft10, ft4, ft11
    fsub.d ft8, fs9, ft7
    fadd.d fs9, fs9, fs1
    vfcpka.s.s fs10, fs0, fs10
    fmadd.d fs11, fs11, ft4, fa0
    vfcpka.s.s fs9, fs0, fs9
    fmadd.d fs11, fs11, ft4, fa1
    fmadd.d fs11, fs11, ft4, fa2
    fdiv.d ft1, fs0, fs6
    fsgnjn.d fs6, ft0, ft0
    fmadd.d ft9, fs6, ft9, ft7
    fmadd.d fs11, fs11, ft4, fa3
    fmadd.d ft5, fs6, fs6, ft5
    fmadd.d fs11, fs11, ft4, fa4
    flt.d a0, ft5, ft6
    fsub.d ft5, ft9, ft7
    fmadd.d ft6, ft8, fs2, fs8
    fmadd.d fs11, fs11, ft4, fa5
    fadd.d ft9, ft9, fs1
    fmadd.d fs2, ft5, fs2, fs6
    fmadd.d ft6, ft8, fs4, ft6
    fmadd.d ft8, ft10, fs7, ft11
    fmadd.d fs11, fs11, ft4, fa6
    fmadd.d ft5, ft5, fs4, fs2
    fmadd.d fs2, ft10, ft6, ft11
    fmadd.d fs4, ft8, fs7, fa0
    fmadd.d ft8, fs11, ft4, fa7
    fmadd.d fs11, ft10, ft5, ft11
    fmadd.d fs2, fs2, ft6, fa0
    fmadd.d fs4, fs4, fs7, fa1
    fmadd.d ft8, ft8, ft4, fs0
    fmadd.d fs11, fs11, ft5, fa0
    fmadd.d fs2, fs2, ft6, fa1
    fmadd.d fs4, fs4, fs7, fa2
    fmadd.d ft8, ft8, ft4, fs0
    fmadd.d ft4, fs11, ft5, fa1
    fmadd.d fs2, fs2, ft6, fa2
    fmadd.d fs4, fs4, fs7, fa3
    vfcpka.s.s ft9, fs0, ft9
    fmadd.d ft4, ft4, ft5, fa2
    fmadd.d fs2, fs2, ft6, fa3
    fmadd.d fs11, fs4, fs7, fa4
    fmul.d fs4, ft8, ft3
    fmadd.d ft3, ft4, ft5, fa3
    fmadd.d ft4, fs2, ft6, fa4
    fmadd.d ft8, fs11, fs7, fa5
    fmadd.d ft3, ft3, ft5, fa4
    fmadd.d ft4, ft4, ft6, fa5
    fmadd.d ft8, ft8, fs7, fa6
    fmadd.d ft3, ft3, ft5, fa5
    fmadd.d ft4, ft4, ft6, fa6
    fmadd.d ft8, ft8, fs7, fa7
    fmadd.d ft3, ft3, ft5, fa6
    fmadd.d ft4, ft4, ft6, fa7
    fmadd.d ft8, ft8, fs7, fs0
    fmadd.d ft3, ft3, ft5, fa7
    fmadd.d ft4, ft4, ft6, fs0
    fmadd.d ft8, ft8, fs7, fs0
    fmadd.d ft3, ft3, ft5, fs0
    fmadd.d ft4, ft4, ft6, fs0
    fmul.d ft8, ft8, fs10
    fmadd.d ft3, ft3, ft5, fs0
    fmul.d fs7, ft4, fs9
    fmul.d ft3, ft3, ft9
    bne a0, zero, .Lsigmoid_moderate1
    fld ft3, 136(t0)
    fld ft9, 112(t0)
    flt.d a0, fs3, ft9
    flt.d a1, fs5, ft9
    flt.d a2, fs8, ft9
    flt.d a3, fs6, ft9
    fcvt.d.w ft4, zero
    flt.d a4, ft4, fs3
    flt.d a5, ft4, fs5
    flt.d a6, ft4, fs8
    flt.d a7, ft4, fs6
    or a0, a0, a4
    or a1, a1, a5
    or a2, a2, a6
    or a3, a3, a7
    fmax.d ft4, fs3, ft3
    fmax.d ft5, fs5, ft3
    fmax.d ft6, fs8, ft3
    fmax.d ft3, fs6, ft3
    fld ft8, 144(t0)
    fmin.d fs2, ft4, ft8
    fmin.d ft5, ft5, ft8
    fmin.d ft6, ft6, ft8
    fmin.d ft8, ft3, ft8
    fld ft3, 152(t0)
    fsgnj.d ft4, ft3, fs2
    fsd ft4, 8(sp)
    fsgnj.d ft4, ft3, ft5
    fsd ft4, 0(sp)
    fsgnj.d ft4, ft3, ft6
    fsd ft4, 160(sp)
    fsgnj.d fs4, ft3, ft8
    fld ft4, 8(t0)
    fld ft3, 8(sp)
    fsub.d fs7, ft4, ft3
    fld ft3, 0(sp)
    fsub.d fs9, ft4, ft3
    fld ft3, 160(sp)
    fsub.d fs10, ft4, ft3
    fsub.d ft4, ft4, fs4
    fld fs11, 160(t0)
    fld ft3, 8(sp)
    fadd.d ft3, ft3, fs11
    fsd ft3, 24(sp)
    fld ft3, 0(sp)
    fadd.d ft3, ft3, fs11
    fsd ft3, 16(sp)
    fld ft3, 160(sp)
    fadd.d ft3, ft3, fs11
    fadd.d fs11, fs4, fs11
    fld fs4, 24(sp)
    vfcpka.s.s fs4, ft9, fs4
    fsd fs4, 72(sp)
    fld fs4, 16(sp)
    vfcpka.s.s fs4, ft9, fs4
    fsd fs4, 64(sp)
    vfcpka.s.s ft3, ft9, ft3
    fsd ft3, 56(sp)
    vfcpka.s.s ft3, ft9, fs11
    fsd ft3, 48(sp)
    fld fs4, 0(t0)
    fmadd.d ft3, fs2, fs4, fs7
    fsd ft3, 40(sp)
    fmadd.d ft3, ft5, fs4, fs9
    fsd ft3, 32(sp)
    fmadd.d fs11, ft6, fs4, fs10
    fmadd.d fs4, ft8, fs4, ft4
    fld ft3, 40(sp)
    fsub.d fs7, ft3, fs7
    fld ft3, 32(sp)
    fsub.d fs9, ft3, fs9
    fsub.d fs10, fs11, fs10
    fsub.d ft3, fs4, ft4
    fld ft4, 16(t0)
    fmadd.d fs2, fs7, ft4, fs2
    fmadd.d ft5, fs9, ft4, ft5
    fmadd.d ft6, fs10, ft4, ft6
    fmadd.d ft4, ft3, ft4, ft8
    fld ft8, 24(t0)
    fmadd.d fs2, fs7, ft8, fs2
    fmadd.d ft5, fs9, ft8, ft5
    fmadd.d ft6, fs10, ft8, ft6
    fmadd.d fs9, ft3, ft8, ft4
    fld ft3, 32(t0)
    fld ft4, 40(t0)
    fmadd.d ft8, ft3, fs2, ft4
    fmadd.d fs7, ft3, ft5, ft4
    fmadd.d fs10, ft3, ft6, ft4
    fmadd.d ft3, ft3, fs9, ft4
    fld ft4, 48(t0)
    fmadd.d ft8, ft8, fs2, ft4
    fmadd.d fs7, fs7, ft5, ft4
    fmadd.d fs10, fs10, ft6, ft4
    fmadd.d ft3, ft3, fs9, ft4
    fld ft4, 56(t0)
    fmadd.d ft8, ft8, fs2, ft4
    fmadd.d fs7, fs7, ft5, ft4
    fmadd.d fs10, fs10, ft6, ft4
    fmadd.d ft3, ft3, fs9, ft4
    fld ft4, 64(t0)
    fmadd.d ft8, ft8, fs2, ft4
    fmadd.d fs7, fs7, ft5, ft4
    fmadd.d fs10, fs10, ft6, ft4
    fmadd.d ft3, ft3, fs9, ft4
    fld ft4, 72(t0)
    fmadd.d ft8, ft8, fs2, ft4
    fmadd.d fs7, fs7, ft5, ft4
    fmadd.d fs10, fs10, ft6, ft4
    fmadd.d ft3, ft3, fs9, ft4
    fld ft4, 80(t0)
    fmadd.d ft8, ft8, fs2, ft4
    fmadd.d fs7, fs7, ft5, ft4
    fmadd.d fs10, fs10, ft6, ft4
    fmadd.d ft3, ft3, fs9, ft4
    fld ft4, 88(t0)
    fmadd.d ft8, ft8, fs2, ft4
    fmadd.d fs7, fs7, ft5, ft4
    fmadd.d fs10, fs10, ft6, ft4
    fmadd.d ft3, ft3, fs9, ft4
    fld ft4, 96(t0)
    fmadd.d ft8, ft8, fs2, ft4
    fmadd.d fs7, fs7, ft5, ft4
    fmadd.d fs10, fs10, ft6, ft4
    fmadd.d ft3, ft3, fs9, ft4
    fld ft4, 104(t0)
    fmadd.d ft8, ft8, fs2, ft4
    fmadd.d fs7, fs7, ft5, ft4
    fmadd.d fs10, fs10, ft6, ft4
    fmadd.d ft4, ft3, fs9, ft4
    fmadd.d ft8, ft8, fs2, ft9
    fmadd.d fs7, fs7, ft5, ft9
    fmadd.d ft3, fs10, ft6, ft9
    fmadd.d fs10, ft4, fs9, ft9
    fmadd.d ft4, ft8, fs2, ft9
    fmadd.d ft5, fs7, ft5, ft9
    fmadd.d ft8, ft3, ft6, ft9
    fmadd.d fs2, fs10, fs9, ft9
    fld ft6, 120(t0)
    fld ft3, 40(sp)
    fadd.d fs7, ft3, ft6
    fld ft3, 32(sp)
    fadd.d fs9, ft3, ft6
    fadd.d fs10, fs11, ft6
    fadd.d ft3, fs4, ft6
    vfcpka.s.s ft6, ft9, fs7
    vfcpka.s.s fs4, ft9, fs9
    vfcpka.s.s fs7, ft9, fs10
    vfcpka.s.s ft3, ft9, ft3
    fmul.d ft4, ft4, ft6
    fmul.d ft5, ft5, fs4
    fmul.d ft6, ft8, fs7
    fmul.d ft3, fs2, ft3
    fld ft8, 72(sp)
    fmul.d ft4, ft4, ft8
    fld ft8, 64(sp)
    fmul.d ft5, ft5, ft8
    fld ft8, 56(sp)
    fmul.d ft6, ft6, ft8
    fld ft8, 48(sp)
    fmul.d ft3, ft3, ft8
    bne a0, zero, .Lsigmoid_ordered2
    fadd.d ft4, fs3, fs3
.Lsigmoid_ordered2:
    fmv.d fs4, ft4
    bne a1, zero, .Lsigmoid_ordered3
    fadd.d ft5, fs5, fs5
.Lsigmoid_ordered3:
    fmv.d ft8, ft5
    bne a2, zero, .Lsigmoid_ordered4
    fadd.d ft6, fs8, fs8
.Lsigmoid_ordered4:
    fmv.d fs7, ft6
    bne a3, zero, .Lsigmoid_ordered5
    fadd.d ft3, fs6, fs6
.Lsigmoid_ordered5:
.Lsigmoid_moderate1:
    bne t2, zero, .Lsigmoid_loop6
    fadd.d fs3, fs4, fs0
    fadd.d fs5, ft8, fs0
    fadd.d fs8, fs7, fs0
    fadd.d fs6, ft3, fs0
    fdiv.d ft1, fs0, fs3
    fdiv.d ft1, fs0, fs5
    fdiv.d ft1, fs0, fs8
    fdiv.d ft1, fs0, fs6
    csrrci zero, 1984, 1
.Lsigmoid_written7:
    scfgr a0, t1
    bge a0, zero, .Lsigmoid_written7
    fld fs0, 176(sp)
    fld fs1, 184(sp)
    fld fs2, 192(sp)
    fld fs3, 200(sp)
    fld fs4, 208(sp)
    fld fs5, 216(sp)
    fld fs6, 224(sp)
    fld fs7, 232(sp)
    fld fs8, 240(sp)
    fld fs9, 248(sp)
    fld fs10, 256(sp)
    fld fs11, 264(sp)
    addi sp, sp, 272
    ret
