# kernel: softmax:16x16 f64
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 11997
# cycles_of_pdojo_snitch: 11997
# arguments, in a0 and so on:
#   --arg 'f64[16,16]'
#   --arg 'f64[16,16]=out'
#   --arg 'i8[512]=zero'
.data
.balign 8
softmax_constants:
.word 0x00000000, 0xfff00000
.word 0x00000000, 0xc0875000
.word 0x00000000, 0x3ff00000
.word 0x00000000, 0x40863000
.word 0x00000000, 0x40500000
.word 0x000003ff, 0x43380000
.word 0x3ff00000, 0x41f80000
.word 0x652b82fe, 0x3ff71547
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
.word 0x80000000, 0xc337fffe
.text
.globl softmax
.p2align 2
softmax:
    addi sp, sp, -112
    sw s0, 8(sp)
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
    mv t5, a2
    la t6, softmax_constants
    fld ft3, 0(t6)
    fsd ft3, 0(sp)
    fcvt.d.w fa1, zero
    scfgwi zero, 32
    li a2, 3
    scfgwi a2, 64
    li a3, 128
    scfgwi a3, 192
    li s0, 15
    scfgwi s0, 96
    li a4, -376
    scfgwi a4, 224
    fld fa2, 16(t6)
    scfgwi zero, 33
    scfgwi a2, 65
    scfgwi a3, 193
    scfgwi s0, 97
    scfgwi a4, 225
    li a2, 2048
    mv a3, a0
    add a2, a0, a2
.Lsoftmax_loop7:
    fld ft3, 0(sp)
    fmv.d fa3, ft3
    fld ft3, 0(sp)
    fmv.d fa4, ft3
    fld ft3, 0(sp)
    fmv.d fa5, ft3
    fld ft3, 0(sp)
    fmv.d ft9, ft3
    fmv.d ft10, fa1
    fmv.d ft11, fa1
    fmv.d fa0, fa1
    fmv.d fa6, fa1
.Lsoftmax_written1:
    scfgr a4, zero
    bge a4, zero, .Lsoftmax_written1
    scfgwi a0, 800
    csrrsi zero, 1984, 1
    frep.o s0, 4, 0, 0
    fmax.d fa3, fa3, ft0
    fmax.d fa4, fa4, ft0
    fmax.d fa5, fa5, ft0
    fmax.d ft9, ft9, ft0
    csrrci zero, 1984, 1
    mv a4, t5
    addi a5, a3, 128
.Lsoftmax_loop6:
    fld ft3, 0(a3)
    fld ft4, 128(a3)
    fld ft5, 256(a3)
    fld ft6, 384(a3)
    fld ft7, 8(t6)
    fsub.d ft2, ft3, fa3
    fsub.d fs0, ft4, fa4
    fsub.d fs1, ft5, fa5
    fsub.d fs2, ft6, ft9
    fld ft3, 24(t6)
    fld ft4, 32(t6)
    fmax.d ft5, ft2, ft7
    fmax.d ft6, fs0, ft7
    fld ft1, 40(t6)
    fmin.d fs4, ft5, ft3
    fmax.d ft5, fs1, ft7
    fmin.d fs3, ft6, ft3
    fsgnj.d fs5, ft4, fs4
    fmax.d ft6, fs2, ft7
    fmin.d fs6, ft5, ft3
    fsgnj.d fs7, ft4, fs3
    fld ft0, 56(t6)
    fsub.d fs8, ft1, fs5
    fmin.d fa7, ft6, ft3
    fsgnj.d fs9, ft4, fs6
    fsub.d ft7, ft1, fs7
    fsgnj.d ft8, ft4, fa7
    fsub.d ft3, ft1, fs9
    fmadd.d fs10, fs4, ft0, fs8
    fsub.d ft4, ft1, ft8
    fmadd.d ft5, fs3, ft0, ft7
    fmadd.d ft6, fs6, ft0, ft3
    fld ft1, 64(t6)
    fsub.d fs8, fs10, fs8
    fmadd.d ft0, fa7, ft0, ft4
    fsub.d ft7, ft5, ft7
    fsub.d ft3, ft6, ft3
    fld fs11, 72(t6)
    fmadd.d fs4, fs8, ft1, fs4
    fsub.d ft4, ft0, ft4
    fmadd.d fs3, ft7, ft1, fs3
    fmadd.d fs6, ft3, ft1, fs6
    fmadd.d fs4, fs8, fs11, fs4
    fld fs8, 80(t6)
    fmadd.d fa7, ft4, ft1, fa7
    fld ft1, 88(t6)
    fmadd.d ft7, ft7, fs11, fs3
    fmadd.d ft3, ft3, fs11, fs6
    fld fs3, 96(t6)
    fmadd.d fs6, fs8, fs4, ft1
    fmadd.d ft4, ft4, fs11, fa7
    fmadd.d fa7, fs8, ft7, ft1
    fmadd.d fs11, fs8, ft3, ft1
    fmadd.d fs6, fs6, fs4, fs3
    fmadd.d ft1, fs8, ft4, ft1
    fld fs8, 104(t6)
    fmadd.d fa7, fa7, ft7, fs3
    fmadd.d fs11, fs11, ft3, fs3
    fmadd.d fs6, fs6, fs4, fs8
    fmadd.d ft1, ft1, ft4, fs3
    fld fs3, 112(t6)
    fmadd.d fa7, fa7, ft7, fs8
    fmadd.d fs11, fs11, ft3, fs8
    fmadd.d fs6, fs6, fs4, fs3
    fmadd.d ft1, ft1, ft4, fs8
    fld fs8, 120(t6)
    fmadd.d fa7, fa7, ft7, fs3
    fmadd.d fs11, fs11, ft3, fs3
    fmadd.d fs6, fs6, fs4, fs8
    fmadd.d ft1, ft1, ft4, fs3
    fld fs3, 128(t6)
    fmadd.d fa7, fa7, ft7, fs8
    fmadd.d fs11, fs11, ft3, fs8
    fmadd.d fs6, fs6, fs4, fs3
    fmadd.d ft1, ft1, ft4, fs8
    fld fs8, 136(t6)
    fmadd.d fa7, fa7, ft7, fs3
    fmadd.d fs11, fs11, ft3, fs3
    fmadd.d fs6, fs6, fs4, fs8
    fmadd.d ft1, ft1, ft4, fs3
    fld fs3, 144(t6)
    fmadd.d fa7, fa7, ft7, fs8
    fmadd.d fs11, fs11, ft3, fs8
    fmadd.d fs6, fs6, fs4, fs3
    fmadd.d ft1, ft1, ft4, fs8
    fld fs8, 152(t6)
    fmadd.d fa7, fa7, ft7, fs3
    fmadd.d fs11, fs11, ft3, fs3
    fmadd.d fs6, fs6, fs4, fs8
    fmadd.d fs3, ft1, ft4, fs3
    fld ft1, 16(t6)
    fmadd.d fa7, fa7, ft7, fs8
    fmadd.d fs11, fs11, ft3, fs8
    fmadd.d fs6, fs6, fs4, ft1
    fmadd.d fs3, fs3, ft4, fs8
    fld fs8, 160(t6)
    fmadd.d fa7, fa7, ft7, ft1
    fmadd.d fs11, fs11, ft3, ft1
    fadd.d fs10, fs10, fs8
    fadd.d ft5, ft5, fs8
    fmadd.d fs4, fs6, fs4, ft1
    fld fs6, 48(t6)
    fadd.d ft6, ft6, fs8
    fmadd.d fs3, fs3, ft4, ft1
    fadd.d fs5, fs5, fs6
    vfcpka.s.s fs10, fa1, fs10
    fmadd.d fa7, fa7, ft7, ft1
    fadd.d ft7, ft0, fs8
    fadd.d ft0, fs7, fs6
    vfcpka.s.s ft5, fa1, ft5
    fmadd.d fs7, fs11, ft3, ft1
    fadd.d fs8, fs9, fs6
    fmul.d fs4, fs4, fs10
    vfcpka.s.s ft6, fa1, ft6
    vfcpka.s.s fs5, fa1, fs5
    fmadd.d fs3, fs3, ft4, ft1
    fadd.d fs6, ft8, fs6
    fmul.d ft3, fa7, ft5
    vfcpka.s.s ft4, fa1, ft7
    vfcpka.s.s ft5, fa1, ft0
    fmul.d ft6, fs7, ft6
    vfcpka.s.s ft7, fa1, fs8
    flt.d a6, ft2, ft1
    flt.d a7, fa1, ft2
    fmul.d ft8, fs4, fs5
    fmul.d ft4, fs3, ft4
    vfcpka.s.s ft0, fa1, fs6
    flt.d t0, fs0, ft1
    flt.d t1, fa1, fs0
    fmul.d ft3, ft3, ft5
    flt.d t2, fs1, ft1
    flt.d t3, fa1, fs1
    fmul.d fs3, ft6, ft7
    or a6, a6, a7
    flt.d a7, fs2, ft1
    flt.d t4, fa1, fs2
    fmul.d ft4, ft4, ft0
    or t0, t0, t1
    bne a6, zero, .Lsoftmax_ordered2
    fadd.d ft8, ft2, ft2
.Lsoftmax_ordered2:
    or a6, t2, t3
    fmv.d ft2, ft8
    bne t0, zero, .Lsoftmax_ordered3
    fadd.d ft3, fs0, fs0
.Lsoftmax_ordered3:
    or a7, a7, t4
    fmv.d fs0, ft3
    bne a6, zero, .Lsoftmax_ordered4
    fadd.d fs3, fs1, fs1
.Lsoftmax_ordered4:
    bne a7, zero, .Lsoftmax_ordered5
    fadd.d ft4, fs2, fs2
.Lsoftmax_ordered5:
    fmv.d fs1, fs3
    fadd.d ft10, ft10, ft2
    fmv.d fs2, ft4
    fadd.d ft11, ft11, fs0
    fadd.d fa0, fa0, fs1
    fadd.d fa6, fa6, fs2
    fsd ft2, 0(a4)
    fsd fs0, 128(a4)
    fsd fs1, 256(a4)
    fsd fs2, 384(a4)
    addi a3, a3, 8
    addi a4, a4, 8
    bne a3, a5, .Lsoftmax_loop6
    fdiv.d ft3, fa2, ft10
    fdiv.d ft4, fa2, ft11
    fdiv.d ft5, fa2, fa0
    fdiv.d ft6, fa2, fa6
    fence
    scfgwi t5, 801
    scfgwi a1, 928
    csrrsi zero, 1984, 1
    frep.o s0, 4, 0, 0
    fmul.d ft0, ft1, ft3
    fmul.d ft0, ft1, ft4
    fmul.d ft0, ft1, ft5
    fmul.d ft0, ft1, ft6
    csrrci zero, 1984, 1
    addi a0, a0, 512
    addi a3, a3, 384
    addi a1, a1, 512
    bne a0, a2, .Lsoftmax_loop7
.Lsoftmax_written8:
    scfgr a0, zero
    bge a0, zero, .Lsoftmax_written8
    lw s0, 8(sp)
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
