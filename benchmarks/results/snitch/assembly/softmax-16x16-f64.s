# kernel: softmax:16x16 f64
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 8095
# cycles_of_pdojo_snitch: 8095
# arguments, in a0 and so on:
#   --arg 'f64[16,16]'
#   --arg 'f64[16,16]=out'
#   --arg 'i8[512]=zero'
.data
.balign 8
softmax_constants:
.word 0x00000000, 0xfff00000
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
.globl softmax
.p2align 2
softmax:
    addi sp, sp, -144
    sw s0, 32(sp)
    fsd fs0, 40(sp)
    fsd fs1, 48(sp)
    fsd fs2, 56(sp)
    fsd fs3, 64(sp)
    fsd fs4, 72(sp)
    fsd fs5, 80(sp)
    fsd fs6, 88(sp)
    fsd fs7, 96(sp)
    fsd fs8, 104(sp)
    fsd fs9, 112(sp)
    fsd fs10, 120(sp)
    fsd fs11, 128(sp)
    mv t4, a2
    la t5, softmax_constants
    fld ft3, 0(t5)
    fsd ft3, 16(sp)
    fcvt.d.w ft3, zero
    fsd ft3, 8(sp)
    scfgwi zero, 32
    li a2, 3
    scfgwi a2, 64
    li a3, 128
    scfgwi a3, 192
    li t6, 15
    scfgwi t6, 96
    li a4, -376
    scfgwi a4, 224
    scfgwi zero, 33
    scfgwi a2, 65
    scfgwi a3, 193
    scfgwi t6, 97
    scfgwi a4, 225
    fld ft3, 120(t5)
    fsd ft3, 0(sp)
    li s0, 1
    li a2, 2048
    add a2, a0, a2
.Lsoftmax_loop9:
    fld ft3, 16(sp)
    fmv.d fs3, ft3
    fld ft3, 16(sp)
    fmv.d fs4, ft3
    fld ft3, 16(sp)
    fmv.d fs5, ft3
    fld ft3, 16(sp)
    fmv.d fs6, ft3
    fld ft3, 8(sp)
    fmv.d fs7, ft3
    fld ft3, 8(sp)
    fmv.d fs8, ft3
    fld ft3, 8(sp)
    fmv.d fs9, ft3
    fld ft3, 8(sp)
    fmv.d ft6, ft3
.Lsoftmax_written1:
    scfgr a3, zero
    bge a3, zero, .Lsoftmax_written1
    scfgwi a0, 800
    csrrsi zero, 1984, 1
    frep.o t6, 4, 0, 0
    fmax.d fs3, fs3, ft0
    fmax.d fs4, fs4, ft0
    fmax.d fs5, fs5, ft0
    fmax.d fs6, fs6, ft0
    csrrci zero, 1984, 1
    scfgwi a0, 800
    scfgwi t4, 929
    csrrsi zero, 1984, 1
    li a3, 16
.Lsoftmax_loop7:
    fld ft7, 136(t5)
    fld ft3, 8(t5)
    fld ft8, 24(t5)
    fld ft9, 32(t5)
    fld ft10, 40(t5)
    fld ft11, 48(t5)
    fld fa0, 16(t5)
    fsub.d fa1, ft0, fs3
    fld fa2, 56(t5)
    fsub.d fa3, ft0, fs4
    fsub.d fa4, ft0, fs5
    fmadd.d fa5, fa1, ft3, fa0
    fsub.d fa6, ft0, fs6
    fmadd.d fa7, fa3, ft3, fa0
    fmul.d fs0, fa1, fa1
    fsub.d fs1, fa5, fa0
    fmadd.d fs2, fa4, ft3, fa0
    fsub.d fs10, fa7, fa0
    fmadd.d ft3, fa6, ft3, fa0
    fmadd.d ft4, fs1, ft8, fa1
    fsub.d ft5, fs2, fa0
    fmadd.d fs11, fs10, ft8, fa3
    fsub.d fa0, ft3, fa0
    fmadd.d ft4, fs1, ft9, ft4
    fmadd.d fs1, ft5, ft8, fa4
    fmadd.d fs10, fs10, ft9, fs11
    fld fs11, 64(t5)
    fmadd.d fs0, fa3, fa3, fs0
    fmadd.d ft8, fa0, ft8, fa6
    fmadd.d ft5, ft5, ft9, fs1
    fld fs1, 128(t5)
    fmadd.d fs0, fa4, fa4, fs0
    fmadd.d ft8, fa0, ft9, ft8
    fld ft9, 72(t5)
    fld fa0, 80(t5)
    fadd.d fa5, fa5, fs1
    fmadd.d fs0, fa6, fa6, fs0
    fadd.d fa7, fa7, fs1
    fadd.d fs2, fs2, fs1
    fadd.d fs1, ft3, fs1
    flt.d a4, fs0, ft7
    fmadd.d ft3, ft10, ft4, ft11
    fmadd.d ft7, ft10, fs10, ft11
    fmadd.d fs0, ft10, ft5, ft11
    fmadd.d ft10, ft10, ft8, ft11
    fld ft11, 88(t5)
    fmadd.d ft3, ft3, ft4, fa2
    fmadd.d ft7, ft7, fs10, fa2
    fmadd.d fs0, fs0, ft5, fa2
    fmadd.d ft10, ft10, ft8, fa2
    fld fa2, 96(t5)
    fmadd.d ft3, ft3, ft4, fs11
    fmadd.d ft7, ft7, fs10, fs11
    fmadd.d fs0, fs0, ft5, fs11
    fmadd.d ft10, ft10, ft8, fs11
    fld fs11, 104(t5)
    fmadd.d ft3, ft3, ft4, ft9
    fmadd.d ft7, ft7, fs10, ft9
    fmadd.d fs0, fs0, ft5, ft9
    fmadd.d ft9, ft10, ft8, ft9
    fld ft10, 120(t5)
    fmadd.d ft3, ft3, ft4, fa0
    fmadd.d ft7, ft7, fs10, fa0
    fmadd.d fs0, fs0, ft5, fa0
    fmadd.d ft9, ft9, ft8, fa0
    fld fa0, 112(t5)
    vfcpka.s.s fa5, ft10, fa5
    vfcpka.s.s fa7, ft10, fa7
    vfcpka.s.s fs2, ft10, fs2
    vfcpka.s.s fs1, ft10, fs1
    fmadd.d ft3, ft3, ft4, ft11
    fmadd.d ft7, ft7, fs10, ft11
    fmadd.d fs0, fs0, ft5, ft11
    fmadd.d ft9, ft9, ft8, ft11
    fmadd.d ft11, ft3, ft4, fa2
    fmadd.d ft7, ft7, fs10, fa2
    fmadd.d fs0, fs0, ft5, fa2
    fmadd.d ft3, ft9, ft8, fa2
    fmadd.d ft9, ft11, ft4, fs11
    fmadd.d ft11, ft7, fs10, fs11
    fmadd.d fa2, fs0, ft5, fs11
    fmadd.d ft3, ft3, ft8, fs11
    fmadd.d ft7, ft9, ft4, fa0
    fmadd.d ft9, ft11, fs10, fa0
    fmadd.d ft11, fa2, ft5, fa0
    fmadd.d ft3, ft3, ft8, fa0
    fmadd.d ft7, ft7, ft4, ft10
    fmadd.d ft9, ft9, fs10, ft10
    fmadd.d ft11, ft11, ft5, ft10
    fmadd.d ft3, ft3, ft8, ft10
    fmadd.d ft4, ft7, ft4, ft10
    fmadd.d ft7, ft9, fs10, ft10
    fmadd.d ft5, ft11, ft5, ft10
    fmadd.d ft3, ft3, ft8, ft10
    fmul.d ft4, ft4, fa5
    fmul.d ft7, ft7, fa7
    fmul.d ft5, ft5, fs2
    fmul.d ft3, ft3, fs1
    bne a4, zero, .Lsoftmax_moderate2
    fld ft3, 144(t5)
    fld ft9, 120(t5)
    flt.d a4, fa1, ft9
    flt.d a5, fa3, ft9
    flt.d a6, fa4, ft9
    flt.d a7, fa6, ft9
    fcvt.d.w ft4, zero
    flt.d t0, ft4, fa1
    flt.d t1, ft4, fa3
    flt.d t2, ft4, fa4
    flt.d t3, ft4, fa6
    or a4, a4, t0
    or a5, a5, t1
    or a6, a6, t2
    or a7, a7, t3
    fmax.d ft4, fa1, ft3
    fmax.d ft5, fa3, ft3
    fmax.d ft7, fa4, ft3
    fmax.d ft3, fa6, ft3
    fld ft8, 152(t5)
    fmin.d ft11, ft4, ft8
    fmin.d fa0, ft5, ft8
    fmin.d fa2, ft7, ft8
    fmin.d fa7, ft3, ft8
    fld ft3, 160(t5)
    fsgnj.d ft4, ft3, ft11
    fsgnj.d ft5, ft3, fa0
    fsgnj.d ft7, ft3, fa2
    fsgnj.d ft8, ft3, fa7
    fld ft3, 16(t5)
    fsub.d ft10, ft3, ft4
    fsub.d fa5, ft3, ft5
    fsub.d fs0, ft3, ft7
    fsub.d fs1, ft3, ft8
    fld ft3, 168(t5)
    fadd.d ft4, ft4, ft3
    fadd.d ft5, ft5, ft3
    fadd.d ft7, ft7, ft3
    fadd.d ft3, ft8, ft3
    vfcpka.s.s ft4, ft9, ft4
    fsd ft4, 24(sp)
    vfcpka.s.s ft8, ft9, ft5
    vfcpka.s.s fs2, ft9, ft7
    vfcpka.s.s ft4, ft9, ft3
    fld ft3, 8(t5)
    fmadd.d ft5, ft11, ft3, ft10
    fmadd.d ft7, fa0, ft3, fa5
    fmadd.d fs10, fa2, ft3, fs0
    fmadd.d fs11, fa7, ft3, fs1
    fsub.d ft10, ft5, ft10
    fsub.d fa5, ft7, fa5
    fsub.d fs0, fs10, fs0
    fsub.d ft3, fs11, fs1
    fld fs1, 24(t5)
    fmadd.d ft11, ft10, fs1, ft11
    fmadd.d fa0, fa5, fs1, fa0
    fmadd.d fa2, fs0, fs1, fa2
    fmadd.d fa7, ft3, fs1, fa7
    fld fs1, 32(t5)
    fmadd.d ft10, ft10, fs1, ft11
    fmadd.d fa0, fa5, fs1, fa0
    fmadd.d fa2, fs0, fs1, fa2
    fmadd.d fs0, ft3, fs1, fa7
    fld ft3, 40(t5)
    fld ft11, 48(t5)
    fmadd.d fa5, ft3, ft10, ft11
    fmadd.d fa7, ft3, fa0, ft11
    fmadd.d fs1, ft3, fa2, ft11
    fmadd.d ft3, ft3, fs0, ft11
    fld ft11, 56(t5)
    fmadd.d fa5, fa5, ft10, ft11
    fmadd.d fa7, fa7, fa0, ft11
    fmadd.d fs1, fs1, fa2, ft11
    fmadd.d ft3, ft3, fs0, ft11
    fld ft11, 64(t5)
    fmadd.d fa5, fa5, ft10, ft11
    fmadd.d fa7, fa7, fa0, ft11
    fmadd.d fs1, fs1, fa2, ft11
    fmadd.d ft3, ft3, fs0, ft11
    fld ft11, 72(t5)
    fmadd.d fa5, fa5, ft10, ft11
    fmadd.d fa7, fa7, fa0, ft11
    fmadd.d fs1, fs1, fa2, ft11
    fmadd.d ft3, ft3, fs0, ft11
    fld ft11, 80(t5)
    fmadd.d fa5, fa5, ft10, ft11
    fmadd.d fa7, fa7, fa0, ft11
    fmadd.d fs1, fs1, fa2, ft11
    fmadd.d ft3, ft3, fs0, ft11
    fld ft11, 88(t5)
    fmadd.d fa5, fa5, ft10, ft11
    fmadd.d fa7, fa7, fa0, ft11
    fmadd.d fs1, fs1, fa2, ft11
    fmadd.d ft3, ft3, fs0, ft11
    fld ft11, 96(t5)
    fmadd.d fa5, fa5, ft10, ft11
    fmadd.d fa7, fa7, fa0, ft11
    fmadd.d fs1, fs1, fa2, ft11
    fmadd.d ft3, ft3, fs0, ft11
    fld ft11, 104(t5)
    fmadd.d fa5, fa5, ft10, ft11
    fmadd.d fa7, fa7, fa0, ft11
    fmadd.d fs1, fs1, fa2, ft11
    fmadd.d ft3, ft3, fs0, ft11
    fld ft11, 112(t5)
    fmadd.d fa5, fa5, ft10, ft11
    fmadd.d fa7, fa7, fa0, ft11
    fmadd.d fs1, fs1, fa2, ft11
    fmadd.d ft11, ft3, fs0, ft11
    fmadd.d fa5, fa5, ft10, ft9
    fmadd.d fa7, fa7, fa0, ft9
    fmadd.d ft3, fs1, fa2, ft9
    fmadd.d ft11, ft11, fs0, ft9
    fmadd.d ft10, fa5, ft10, ft9
    fmadd.d fa0, fa7, fa0, ft9
    fmadd.d fa2, ft3, fa2, ft9
    fmadd.d fa5, ft11, fs0, ft9
    fld ft3, 128(t5)
    fadd.d ft5, ft5, ft3
    fadd.d ft7, ft7, ft3
    fadd.d ft11, fs10, ft3
    fadd.d ft3, fs11, ft3
    vfcpka.s.s ft5, ft9, ft5
    vfcpka.s.s ft7, ft9, ft7
    vfcpka.s.s ft11, ft9, ft11
    vfcpka.s.s ft3, ft9, ft3
    fmul.d ft5, ft10, ft5
    fmul.d ft7, fa0, ft7
    fmul.d ft9, fa2, ft11
    fmul.d ft3, fa5, ft3
    fld ft10, 24(sp)
    fmul.d ft5, ft5, ft10
    fmul.d ft7, ft7, ft8
    fmul.d ft8, ft9, fs2
    fmul.d ft3, ft3, ft4
    fmv.d ft4, ft5
    fmv.d ft5, ft8
    bne a4, zero, .Lsoftmax_ordered3
    fadd.d ft4, fa1, fa1
.Lsoftmax_ordered3:
    bne a5, zero, .Lsoftmax_ordered4
    fadd.d ft7, fa3, fa3
.Lsoftmax_ordered4:
    bne a6, zero, .Lsoftmax_ordered5
    fadd.d ft5, fa4, fa4
.Lsoftmax_ordered5:
    bne a7, zero, .Lsoftmax_ordered6
    fadd.d ft3, fa6, fa6
.Lsoftmax_ordered6:
.Lsoftmax_moderate2:
    addi a3, a3, -1
    fadd.d fs7, fs7, ft4
    fadd.d fs8, fs8, ft7
    fadd.d fs9, fs9, ft5
    fadd.d ft6, ft6, ft3
    fmv.d ft1, ft4
    fmv.d ft1, ft7
    fmv.d ft1, ft5
    fmv.d ft1, ft3
    bne a3, zero, .Lsoftmax_loop7
    csrrci zero, 1984, 1
.Lsoftmax_written8:
    scfgr a3, s0
    bge a3, zero, .Lsoftmax_written8
    fld ft3, 0(sp)
    fdiv.d ft3, ft3, fs7
    fld ft4, 0(sp)
    fdiv.d ft4, ft4, fs8
    fld ft5, 0(sp)
    fdiv.d ft5, ft5, fs9
    fld ft7, 0(sp)
    fdiv.d ft6, ft7, ft6
    scfgwi t4, 801
    scfgwi a1, 928
    csrrsi zero, 1984, 1
    frep.o t6, 4, 0, 0
    fmul.d ft0, ft1, ft3
    fmul.d ft0, ft1, ft4
    fmul.d ft0, ft1, ft5
    fmul.d ft0, ft1, ft6
    csrrci zero, 1984, 1
    addi a0, a0, 512
    addi a1, a1, 512
    bne a0, a2, .Lsoftmax_loop9
.Lsoftmax_written10:
    scfgr a0, zero
    bge a0, zero, .Lsoftmax_written10
    lw s0, 32(sp)
    fld fs0, 40(sp)
    fld fs1, 48(sp)
    fld fs2, 56(sp)
    fld fs3, 64(sp)
    fld fs4, 72(sp)
    fld fs5, 80(sp)
    fld fs6, 88(sp)
    fld fs7, 96(sp)
    fld fs8, 104(sp)
    fld fs9, 112(sp)
    fld fs10, 120(sp)
    fld fs11, 128(sp)
    addi sp, sp, 144
    ret
