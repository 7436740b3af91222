# kernel: softmax:16x16 f64
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 8092
# cycles_of_pdojo_snitch: 8092
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
.word 0x00000000, 0x7fe00000
.word 0x00000000, 0x40862000
.word 0x00000000, 0x40875000
.word 0x00000000, 0xc0875000
.word 0x00000000, 0x40863000
.word 0x00000000, 0x40500000
.word 0x3ff00000, 0x41f80000
.text
.globl softmax
.p2align 2
softmax:
    addi sp, sp, -128
    fsd fs0, 24(sp)
    fsd fs1, 32(sp)
    fsd fs2, 40(sp)
    fsd fs3, 48(sp)
    fsd fs4, 56(sp)
    fsd fs5, 64(sp)
    fsd fs6, 72(sp)
    fsd fs7, 80(sp)
    fsd fs8, 88(sp)
    fsd fs9, 96(sp)
    fsd fs10, 104(sp)
    fsd fs11, 112(sp)
    mv a5, a2
    la a6, softmax_constants
    fld ft3, 0(a6)
    fsd ft3, 16(sp)
    fcvt.d.w ft3, zero
    fsd ft3, 8(sp)
    scfgwi zero, 32
    li a2, 3
    scfgwi a2, 64
    li a3, 128
    scfgwi a3, 192
    li a7, 15
    scfgwi a7, 96
    li a4, -376
    scfgwi a4, 224
    scfgwi zero, 33
    scfgwi a2, 65
    scfgwi a3, 193
    scfgwi a7, 97
    scfgwi a4, 225
    fld ft3, 120(a6)
    fsd ft3, 0(sp)
    li a4, 1
    li a2, 2048
    mv t0, a0
    mv t1, a1
    add t2, t0, a2
.Lsoftmax_loop17:
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
    scfgr a0, zero
    bge a0, zero, .Lsoftmax_written1
    scfgwi t0, 800
    csrrsi zero, 1984, 1
    frep.o a7, 4, 0, 0
    fmax.d fs3, fs3, ft0
    fmax.d fs4, fs4, ft0
    fmax.d fs5, fs5, ft0
    fmax.d fs6, fs6, ft0
    csrrci zero, 1984, 1
    scfgwi t0, 800
    scfgwi a5, 929
    csrrsi zero, 1984, 1
    li t3, 16
.Lsoftmax_loop15:
    fld ft7, 136(a6)
    fld ft3, 8(a6)
    fld ft8, 24(a6)
    fld ft9, 32(a6)
    fld ft10, 40(a6)
    fld ft11, 48(a6)
    fld fa0, 16(a6)
    fsub.d fa1, ft0, fs3
    fld fa2, 56(a6)
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
    fld fs11, 64(a6)
    fmadd.d fs0, fa3, fa3, fs0
    fmadd.d ft8, fa0, ft8, fa6
    fmadd.d ft5, ft5, ft9, fs1
    fld fs1, 128(a6)
    fmadd.d fs0, fa4, fa4, fs0
    fmadd.d ft8, fa0, ft9, ft8
    fld ft9, 72(a6)
    fld fa0, 80(a6)
    fadd.d fa5, fa5, fs1
    fmadd.d fs0, fa6, fa6, fs0
    fadd.d fa7, fa7, fs1
    fadd.d fs2, fs2, fs1
    fadd.d fs1, ft3, fs1
    flt.d a0, fs0, ft7
    fmadd.d ft3, ft10, ft4, ft11
    fmadd.d ft7, ft10, fs10, ft11
    fmadd.d fs0, ft10, ft5, ft11
    fmadd.d ft10, ft10, ft8, ft11
    fld ft11, 88(a6)
    fmadd.d ft3, ft3, ft4, fa2
    fmadd.d ft7, ft7, fs10, fa2
    fmadd.d fs0, fs0, ft5, fa2
    fmadd.d ft10, ft10, ft8, fa2
    fld fa2, 96(a6)
    fmadd.d ft3, ft3, ft4, fs11
    fmadd.d ft7, ft7, fs10, fs11
    fmadd.d fs0, fs0, ft5, fs11
    fmadd.d ft10, ft10, ft8, fs11
    fld fs11, 104(a6)
    fmadd.d ft3, ft3, ft4, ft9
    fmadd.d ft7, ft7, fs10, ft9
    fmadd.d fs0, fs0, ft5, ft9
    fmadd.d ft9, ft10, ft8, ft9
    fld ft10, 120(a6)
    fmadd.d ft3, ft3, ft4, fa0
    fmadd.d ft7, ft7, fs10, fa0
    fmadd.d fs0, fs0, ft5, fa0
    fmadd.d ft9, ft9, ft8, fa0
    fld fa0, 112(a6)
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
    fmul.d fa5, ft4, fa5
    fmul.d ft8, ft7, fa7
    fmul.d ft10, ft5, fs2
    fmul.d ft5, ft3, fs1
    bne a0, zero, .Lsoftmax_moderate2
    fld ft7, 144(a6)
    fcvt.d.w ft9, zero
    fld ft11, 152(a6)
    fld fa0, 160(a6)
    fsgnjx.d ft3, fa1, fa1
    fsgnjx.d ft4, fa3, fa3
    flt.d a0, ft3, ft11
    flt.d a1, ft4, ft11
    flt.d a2, fa0, ft3
    flt.d a3, fa0, ft4
    bne a0, zero, .Lsoftmax_right3
    fmul.d fa5, fa1, ft7
    fmax.d fa5, fa5, ft9
    bne a2, zero, .Lsoftmax_known4
    fld ft3, 168(a6)
    fld fa5, 120(a6)
    flt.d a0, fa1, fa5
    fcvt.d.w ft4, zero
    flt.d a2, ft4, fa1
    or a0, a0, a2
    fmax.d ft3, fa1, ft3
    fld ft4, 176(a6)
    fmin.d fa7, ft3, ft4
    fld ft3, 184(a6)
    fsgnj.d ft3, ft3, fa7
    fld ft4, 16(a6)
    fsub.d ft4, ft4, ft3
    fld fa2, 192(a6)
    fadd.d ft3, ft3, fa2
    vfcpka.s.s fs0, fa5, ft3
    fld ft3, 8(a6)
    fmadd.d fs1, fa7, ft3, ft4
    fsub.d ft3, fs1, ft4
    fld ft4, 24(a6)
    fmadd.d ft4, ft3, ft4, fa7
    fld fa2, 32(a6)
    fmadd.d fa2, ft3, fa2, ft4
    fld ft3, 40(a6)
    fld ft4, 48(a6)
    fmadd.d ft3, ft3, fa2, ft4
    fld ft4, 56(a6)
    fmadd.d ft3, ft3, fa2, ft4
    fld ft4, 64(a6)
    fmadd.d ft3, ft3, fa2, ft4
    fld ft4, 72(a6)
    fmadd.d ft3, ft3, fa2, ft4
    fld ft4, 80(a6)
    fmadd.d ft3, ft3, fa2, ft4
    fld ft4, 88(a6)
    fmadd.d ft3, ft3, fa2, ft4
    fld ft4, 96(a6)
    fmadd.d ft3, ft3, fa2, ft4
    fld ft4, 104(a6)
    fmadd.d ft3, ft3, fa2, ft4
    fld ft4, 112(a6)
    fmadd.d ft3, ft3, fa2, ft4
    fmadd.d ft3, ft3, fa2, fa5
    fmadd.d ft3, ft3, fa2, fa5
    fld ft4, 128(a6)
    fadd.d ft4, fs1, ft4
    vfcpka.s.s ft4, fa5, ft4
    fmul.d ft3, ft3, ft4
    fmul.d ft3, ft3, fs0
    bne a0, zero, .Lsoftmax_ordered5
    fadd.d ft3, fa1, fa1
.Lsoftmax_ordered5:
    fmv.d fa5, ft3
.Lsoftmax_known4:
.Lsoftmax_right3:
    bne a1, zero, .Lsoftmax_right6
    fmul.d ft8, fa3, ft7
    fmax.d ft8, ft8, ft9
    bne a3, zero, .Lsoftmax_known7
    fld ft3, 168(a6)
    fld fa1, 120(a6)
    flt.d a0, fa3, fa1
    fcvt.d.w ft4, zero
    flt.d a1, ft4, fa3
    or a0, a0, a1
    fmax.d ft3, fa3, ft3
    fld ft4, 176(a6)
    fmin.d fa7, ft3, ft4
    fld ft3, 184(a6)
    fsgnj.d ft3, ft3, fa7
    fld ft4, 16(a6)
    fsub.d ft4, ft4, ft3
    fld ft8, 192(a6)
    fadd.d ft3, ft3, ft8
    vfcpka.s.s fa2, fa1, ft3
    fld ft3, 8(a6)
    fmadd.d fs0, fa7, ft3, ft4
    fsub.d ft3, fs0, ft4
    fld ft4, 24(a6)
    fmadd.d ft4, ft3, ft4, fa7
    fld ft8, 32(a6)
    fmadd.d ft8, ft3, ft8, ft4
    fld ft3, 40(a6)
    fld ft4, 48(a6)
    fmadd.d ft3, ft3, ft8, ft4
    fld ft4, 56(a6)
    fmadd.d ft3, ft3, ft8, ft4
    fld ft4, 64(a6)
    fmadd.d ft3, ft3, ft8, ft4
    fld ft4, 72(a6)
    fmadd.d ft3, ft3, ft8, ft4
    fld ft4, 80(a6)
    fmadd.d ft3, ft3, ft8, ft4
    fld ft4, 88(a6)
    fmadd.d ft3, ft3, ft8, ft4
    fld ft4, 96(a6)
    fmadd.d ft3, ft3, ft8, ft4
    fld ft4, 104(a6)
    fmadd.d ft3, ft3, ft8, ft4
    fld ft4, 112(a6)
    fmadd.d ft3, ft3, ft8, ft4
    fmadd.d ft3, ft3, ft8, fa1
    fmadd.d ft3, ft3, ft8, fa1
    fld ft4, 128(a6)
    fadd.d ft4, fs0, ft4
    vfcpka.s.s ft4, fa1, ft4
    fmul.d ft3, ft3, ft4
    fmul.d ft3, ft3, fa2
    bne a0, zero, .Lsoftmax_ordered8
    fadd.d ft3, fa3, fa3
.Lsoftmax_ordered8:
    fmv.d ft8, ft3
.Lsoftmax_known7:
.Lsoftmax_right6:
    fsgnjx.d ft3, fa4, fa4
    fsgnjx.d ft4, fa6, fa6
    flt.d a0, ft3, ft11
    flt.d a1, ft4, ft11
    flt.d a2, fa0, ft3
    flt.d a3, fa0, ft4
    bne a0, zero, .Lsoftmax_right9
    fmul.d ft10, fa4, ft7
    fmax.d ft10, ft10, ft9
    bne a2, zero, .Lsoftmax_known10
    fld ft3, 168(a6)
    fld fa0, 120(a6)
    flt.d a0, fa4, fa0
    fcvt.d.w ft4, zero
    flt.d a2, ft4, fa4
    or a0, a0, a2
    fmax.d ft3, fa4, ft3
    fld ft4, 176(a6)
    fmin.d ft3, ft3, ft4
    fld ft4, 184(a6)
    fsgnj.d ft4, ft4, ft3
    fld ft10, 16(a6)
    fsub.d ft10, ft10, ft4
    fld ft11, 192(a6)
    fadd.d ft4, ft4, ft11
    vfcpka.s.s ft11, fa0, ft4
    fld ft4, 8(a6)
    fmadd.d fa1, ft3, ft4, ft10
    fsub.d ft4, fa1, ft10
    fld ft10, 24(a6)
    fmadd.d ft3, ft4, ft10, ft3
    fld ft10, 32(a6)
    fmadd.d ft10, ft4, ft10, ft3
    fld ft3, 40(a6)
    fld ft4, 48(a6)
    fmadd.d ft3, ft3, ft10, ft4
    fld ft4, 56(a6)
    fmadd.d ft3, ft3, ft10, ft4
    fld ft4, 64(a6)
    fmadd.d ft3, ft3, ft10, ft4
    fld ft4, 72(a6)
    fmadd.d ft3, ft3, ft10, ft4
    fld ft4, 80(a6)
    fmadd.d ft3, ft3, ft10, ft4
    fld ft4, 88(a6)
    fmadd.d ft3, ft3, ft10, ft4
    fld ft4, 96(a6)
    fmadd.d ft3, ft3, ft10, ft4
    fld ft4, 104(a6)
    fmadd.d ft3, ft3, ft10, ft4
    fld ft4, 112(a6)
    fmadd.d ft3, ft3, ft10, ft4
    fmadd.d ft3, ft3, ft10, fa0
    fmadd.d ft3, ft3, ft10, fa0
    fld ft4, 128(a6)
    fadd.d ft4, fa1, ft4
    vfcpka.s.s ft4, fa0, ft4
    fmul.d ft3, ft3, ft4
    fmul.d ft3, ft3, ft11
    bne a0, zero, .Lsoftmax_ordered11
    fadd.d ft3, fa4, fa4
.Lsoftmax_ordered11:
    fmv.d ft10, ft3
.Lsoftmax_known10:
.Lsoftmax_right9:
    bne a1, zero, .Lsoftmax_right12
    fmul.d ft5, fa6, ft7
    fmax.d ft5, ft5, ft9
    bne a3, zero, .Lsoftmax_known13
    fld ft3, 168(a6)
    fld ft9, 120(a6)
    flt.d a0, fa6, ft9
    fcvt.d.w ft4, zero
    flt.d a1, ft4, fa6
    or a0, a0, a1
    fmax.d ft3, fa6, ft3
    fld ft4, 176(a6)
    fmin.d ft3, ft3, ft4
    fld ft4, 184(a6)
    fsgnj.d ft4, ft4, ft3
    fld ft5, 16(a6)
    fsub.d ft5, ft5, ft4
    fld ft7, 192(a6)
    fadd.d ft4, ft4, ft7
    vfcpka.s.s ft7, ft9, ft4
    fld ft4, 8(a6)
    fmadd.d ft11, ft3, ft4, ft5
    fsub.d ft4, ft11, ft5
    fld ft5, 24(a6)
    fmadd.d ft3, ft4, ft5, ft3
    fld ft5, 32(a6)
    fmadd.d ft5, ft4, ft5, ft3
    fld ft3, 40(a6)
    fld ft4, 48(a6)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 56(a6)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 64(a6)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 72(a6)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 80(a6)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 88(a6)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 96(a6)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 104(a6)
    fmadd.d ft3, ft3, ft5, ft4
    fld ft4, 112(a6)
    fmadd.d ft3, ft3, ft5, ft4
    fmadd.d ft3, ft3, ft5, ft9
    fmadd.d ft3, ft3, ft5, ft9
    fld ft4, 128(a6)
    fadd.d ft4, ft11, ft4
    vfcpka.s.s ft4, ft9, ft4
    fmul.d ft3, ft3, ft4
    fmul.d ft3, ft3, ft7
    bne a0, zero, .Lsoftmax_ordered14
    fadd.d ft3, fa6, fa6
.Lsoftmax_ordered14:
    fmv.d ft5, ft3
.Lsoftmax_known13:
.Lsoftmax_right12:
.Lsoftmax_moderate2:
    addi t3, t3, -1
    fadd.d fs7, fs7, fa5
    fadd.d fs8, fs8, ft8
    fadd.d fs9, fs9, ft10
    fadd.d ft6, ft6, ft5
    fmv.d ft1, fa5
    fmv.d ft1, ft8
    fmv.d ft1, ft10
    fmv.d ft1, ft5
    bne t3, zero, .Lsoftmax_loop15
    csrrci zero, 1984, 1
.Lsoftmax_written16:
    scfgr a0, a4
    bge a0, zero, .Lsoftmax_written16
    fld ft3, 0(sp)
    fdiv.d ft3, ft3, fs7
    fld ft4, 0(sp)
    fdiv.d ft4, ft4, fs8
    fld ft5, 0(sp)
    fdiv.d ft5, ft5, fs9
    fld ft7, 0(sp)
    fdiv.d ft6, ft7, ft6
    scfgwi a5, 801
    scfgwi t1, 928
    csrrsi zero, 1984, 1
    frep.o a7, 4, 0, 0
    fmul.d ft0, ft1, ft3
    fmul.d ft0, ft1, ft4
    fmul.d ft0, ft1, ft5
    fmul.d ft0, ft1, ft6
    csrrci zero, 1984, 1
    addi t0, t0, 512
    addi t1, t1, 512
    bne t0, t2, .Lsoftmax_loop17
.Lsoftmax_written18:
    scfgr a0, zero
    bge a0, zero, .Lsoftmax_written18
    fld fs0, 24(sp)
    fld fs1, 32(sp)
    fld fs2, 40(sp)
    fld fs3, 48(sp)
    fld fs4, 56(sp)
    fld fs5, 64(sp)
    fld fs6, 72(sp)
    fld fs7, 80(sp)
    fld fs8, 88(sp)
    fld fs9, 96(sp)
    fld fs10, 104(sp)
    fld fs11, 112(sp)
    addi sp, sp, 128
    ret
