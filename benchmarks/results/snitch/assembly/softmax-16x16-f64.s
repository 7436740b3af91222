# kernel: softmax:16x16 f64
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 37641
# cycles_of_pdojo_snitch: 37641
# arguments, in a0 and so on:
#   --arg 'f64[16,16]'
#   --arg 'f64[16,16]=out'
#   --arg 'i8[512]=zero'
.data
.balign 8
softmax_constants:
.word 0x00000000, 0xfff00000
.word 0x00000000, 0xc0875000
.word 0x00000000, 0x40863000
.word 0x00000040, 0x43380000
.word 0xffffffc0, 0x4337ffff
.word 0x00000000, 0x3bf00000
.word 0x00000000, 0x43f00000
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
.word 0x00000000, 0x3ff00000
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
    mv a6, a2
    la a2, softmax_constants
    fld ft3, 0(a2)
    fsd ft3, 16(sp)
    fcvt.d.w ft3, zero
    fsd ft3, 8(sp)
    scfgwi zero, 32
    li a3, 3
    scfgwi a3, 64
    li a4, 128
    scfgwi a4, 192
    li a7, 15
    scfgwi a7, 96
    li a5, -376
    scfgwi a5, 224
    fld ft4, 8(a2)
    fld ft5, 16(a2)
    fld ft6, 24(a2)
    fld ft7, 32(a2)
    fld ft8, 40(a2)
    fld ft9, 48(a2)
    fld ft10, 56(a2)
    fld ft11, 64(a2)
    fld fa0, 72(a2)
    fld fa1, 80(a2)
    fld fa2, 88(a2)
    fld fa3, 96(a2)
    fld fa4, 104(a2)
    fld fa5, 112(a2)
    fld fa6, 120(a2)
    fld fa7, 128(a2)
    fld fs0, 136(a2)
    fld fs1, 144(a2)
    fld fs2, 152(a2)
    fld fs3, 160(a2)
    li t0, 1072693248
    scfgwi zero, 33
    scfgwi a3, 65
    scfgwi a4, 193
    scfgwi a7, 97
    scfgwi a5, 225
    li a2, 2048
    mv a5, a0
    mv t1, a0
    mv t2, a1
    add a3, a5, a2
.Lsoftmax_loop22:
    fld ft3, 16(sp)
    fmv.d fs4, ft3
    fld ft3, 16(sp)
    fmv.d fs5, ft3
    fld ft3, 16(sp)
    fmv.d fs6, ft3
    fld ft3, 16(sp)
    fmv.d fs7, ft3
    fld ft3, 8(sp)
    fmv.d fs8, ft3
    fld ft3, 8(sp)
    fmv.d fs9, ft3
    fld ft3, 8(sp)
    fmv.d fs10, ft3
    fld ft3, 8(sp)
    fmv.d fs11, ft3
    scfgwi a5, 800
    csrrsi zero, 1984, 1
    frep.o a7, 4, 0, 0
    fmax.d fs4, fs4, ft0
    fmax.d fs5, fs5, ft0
    fmax.d fs6, fs6, ft0
    fmax.d fs7, fs7, ft0
    csrrci zero, 1984, 1
    mv a4, a6
    addi t3, t1, 128
.Lsoftmax_loop21:
    fld ft3, 0(t1)
    fsub.d ft3, ft3, fs4
    fsd ft3, 0(a4)
    fld ft3, 128(t1)
    fsub.d ft3, ft3, fs5
    fsd ft3, 128(a4)
    fld ft3, 256(t1)
    fsub.d ft3, ft3, fs6
    fsd ft3, 256(a4)
    fld ft3, 384(t1)
    fsub.d ft3, ft3, fs7
    fsd ft3, 384(a4)
    fld ft3, 0(a4)
    fmax.d ft0, ft3, ft4
    feq.d a0, ft3, ft3
    feq.d a1, ft4, ft4
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered1
    fadd.d ft0, ft3, ft4
.Lsoftmax_ordered1:
    fmin.d ft1, ft0, ft5
    feq.d a0, ft0, ft0
    feq.d a1, ft5, ft5
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered2
    fadd.d ft1, ft0, ft5
.Lsoftmax_ordered2:
    fsd ft1, 0(sp)
    lw a0, 0(sp)
    lw a1, 4(sp)
    slt a2, a1, zero
    bne a1, zero, .Lsoftmax_less3
    sltu a2, a0, zero
.Lsoftmax_less3:
    fmv.d ft3, ft6
    bne a2, zero, .Lsoftmax_chosen4
    fmv.d ft3, ft7
.Lsoftmax_chosen4:
    fmv.d ft0, ft8
    bne a2, zero, .Lsoftmax_chosen5
    fmv.d ft0, ft9
.Lsoftmax_chosen5:
    fmadd.d ft2, ft1, ft10, ft3
    fsub.d ft3, ft2, ft3
    fsd ft2, 0(sp)
    lw a0, 0(sp)
    fmadd.d ft1, ft3, ft11, ft1
    fmadd.d ft1, ft3, fa0, ft1
    fmadd.d ft3, fa1, ft1, fa2
    fmadd.d ft3, ft3, ft1, fa3
    fmadd.d ft3, ft3, ft1, fa4
    fmadd.d ft3, ft3, ft1, fa5
    fmadd.d ft3, ft3, ft1, fa6
    fmadd.d ft3, ft3, ft1, fa7
    fmadd.d ft3, ft3, ft1, fs0
    fmadd.d ft3, ft3, ft1, fs1
    fmadd.d ft3, ft3, ft1, fs2
    fmadd.d ft3, ft3, ft1, fs3
    fmadd.d ft3, ft3, ft1, fs3
    slli a0, a0, 20
    add a1, zero, zero
    sltu a2, a1, zero
    add a0, a0, t0
    add a0, a0, a2
    sw a1, 0(sp)
    sw a0, 4(sp)
    fld ft1, 0(sp)
    fmul.d ft3, ft3, ft1
    fmul.d ft3, ft3, ft0
    fsd ft3, 0(a4)
    fld ft3, 128(a4)
    fmax.d ft0, ft3, ft4
    feq.d a0, ft3, ft3
    feq.d a1, ft4, ft4
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered6
    fadd.d ft0, ft3, ft4
.Lsoftmax_ordered6:
    fmin.d ft1, ft0, ft5
    feq.d a0, ft0, ft0
    feq.d a1, ft5, ft5
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered7
    fadd.d ft1, ft0, ft5
.Lsoftmax_ordered7:
    fsd ft1, 0(sp)
    lw a0, 0(sp)
    lw a1, 4(sp)
    slt a2, a1, zero
    bne a1, zero, .Lsoftmax_less8
    sltu a2, a0, zero
.Lsoftmax_less8:
    fmv.d ft3, ft6
    bne a2, zero, .Lsoftmax_chosen9
    fmv.d ft3, ft7
.Lsoftmax_chosen9:
    fmv.d ft0, ft8
    bne a2, zero, .Lsoftmax_chosen10
    fmv.d ft0, ft9
.Lsoftmax_chosen10:
    fmadd.d ft2, ft1, ft10, ft3
    fsub.d ft3, ft2, ft3
    fsd ft2, 0(sp)
    lw a0, 0(sp)
    fmadd.d ft1, ft3, ft11, ft1
    fmadd.d ft1, ft3, fa0, ft1
    fmadd.d ft3, fa1, ft1, fa2
    fmadd.d ft3, ft3, ft1, fa3
    fmadd.d ft3, ft3, ft1, fa4
    fmadd.d ft3, ft3, ft1, fa5
    fmadd.d ft3, ft3, ft1, fa6
    fmadd.d ft3, ft3, ft1, fa7
    fmadd.d ft3, ft3, ft1, fs0
    fmadd.d ft3, ft3, ft1, fs1
    fmadd.d ft3, ft3, ft1, fs2
    fmadd.d ft3, ft3, ft1, fs3
    fmadd.d ft3, ft3, ft1, fs3
    slli a0, a0, 20
    add a1, zero, zero
    sltu a2, a1, zero
    add a0, a0, t0
    add a0, a0, a2
    sw a1, 0(sp)
    sw a0, 4(sp)
    fld ft1, 0(sp)
    fmul.d ft3, ft3, ft1
    fmul.d ft3, ft3, ft0
    fsd ft3, 128(a4)
    fld ft3, 256(a4)
    fmax.d ft0, ft3, ft4
    feq.d a0, ft3, ft3
    feq.d a1, ft4, ft4
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered11
    fadd.d ft0, ft3, ft4
.Lsoftmax_ordered11:
    fmin.d ft1, ft0, ft5
    feq.d a0, ft0, ft0
    feq.d a1, ft5, ft5
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered12
    fadd.d ft1, ft0, ft5
.Lsoftmax_ordered12:
    fsd ft1, 0(sp)
    lw a0, 0(sp)
    lw a1, 4(sp)
    slt a2, a1, zero
    bne a1, zero, .Lsoftmax_less13
    sltu a2, a0, zero
.Lsoftmax_less13:
    fmv.d ft3, ft6
    bne a2, zero, .Lsoftmax_chosen14
    fmv.d ft3, ft7
.Lsoftmax_chosen14:
    fmv.d ft0, ft8
    bne a2, zero, .Lsoftmax_chosen15
    fmv.d ft0, ft9
.Lsoftmax_chosen15:
    fmadd.d ft2, ft1, ft10, ft3
    fsub.d ft3, ft2, ft3
    fsd ft2, 0(sp)
    lw a0, 0(sp)
    fmadd.d ft1, ft3, ft11, ft1
    fmadd.d ft1, ft3, fa0, ft1
    fmadd.d ft3, fa1, ft1, fa2
    fmadd.d ft3, ft3, ft1, fa3
    fmadd.d ft3, ft3, ft1, fa4
    fmadd.d ft3, ft3, ft1, fa5
    fmadd.d ft3, ft3, ft1, fa6
    fmadd.d ft3, ft3, ft1, fa7
    fmadd.d ft3, ft3, ft1, fs0
    fmadd.d ft3, ft3, ft1, fs1
    fmadd.d ft3, ft3, ft1, fs2
    fmadd.d ft3, ft3, ft1, fs3
    fmadd.d ft3, ft3, ft1, fs3
    slli a0, a0, 20
    add a1, zero, zero
    sltu a2, a1, zero
    add a0, a0, t0
    add a0, a0, a2
    sw a1, 0(sp)
    sw a0, 4(sp)
    fld ft1, 0(sp)
    fmul.d ft3, ft3, ft1
    fmul.d ft3, ft3, ft0
    fsd ft3, 256(a4)
    fld ft3, 384(a4)
    fmax.d ft0, ft3, ft4
    feq.d a0, ft3, ft3
    feq.d a1, ft4, ft4
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered16
    fadd.d ft0, ft3, ft4
.Lsoftmax_ordered16:
    fmin.d ft1, ft0, ft5
    feq.d a0, ft0, ft0
    feq.d a1, ft5, ft5
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered17
    fadd.d ft1, ft0, ft5
.Lsoftmax_ordered17:
    fsd ft1, 0(sp)
    lw a0, 0(sp)
    lw a1, 4(sp)
    slt a2, a1, zero
    bne a1, zero, .Lsoftmax_less18
    sltu a2, a0, zero
.Lsoftmax_less18:
    fmv.d ft3, ft6
    bne a2, zero, .Lsoftmax_chosen19
    fmv.d ft3, ft7
.Lsoftmax_chosen19:
    fmv.d ft0, ft8
    bne a2, zero, .Lsoftmax_chosen20
    fmv.d ft0, ft9
.Lsoftmax_chosen20:
    fmadd.d ft2, ft1, ft10, ft3
    fsub.d ft3, ft2, ft3
    fsd ft2, 0(sp)
    lw a0, 0(sp)
    fmadd.d ft1, ft3, ft11, ft1
    fmadd.d ft1, ft3, fa0, ft1
    fmadd.d ft3, fa1, ft1, fa2
    fmadd.d ft3, ft3, ft1, fa3
    fmadd.d ft3, ft3, ft1, fa4
    fmadd.d ft3, ft3, ft1, fa5
    fmadd.d ft3, ft3, ft1, fa6
    fmadd.d ft3, ft3, ft1, fa7
    fmadd.d ft3, ft3, ft1, fs0
    fmadd.d ft3, ft3, ft1, fs1
    fmadd.d ft3, ft3, ft1, fs2
    fmadd.d ft3, ft3, ft1, fs3
    fmadd.d ft3, ft3, ft1, fs3
    slli a0, a0, 20
    add a1, zero, zero
    sltu a2, a1, zero
    add a0, a0, t0
    add a0, a0, a2
    sw a1, 0(sp)
    sw a0, 4(sp)
    fld ft1, 0(sp)
    fmul.d ft3, ft3, ft1
    fmul.d ft3, ft3, ft0
    fsd ft3, 384(a4)
    fld ft3, 0(a4)
    fadd.d fs8, fs8, ft3
    fld ft3, 128(a4)
    fadd.d fs9, fs9, ft3
    fld ft3, 256(a4)
    fadd.d fs10, fs10, ft3
    fld ft3, 384(a4)
    fadd.d fs11, fs11, ft3
    addi t1, t1, 8
    addi a4, a4, 8
    bne t1, t3, .Lsoftmax_loop21
    fence
    scfgwi a6, 801
    scfgwi t2, 928
    csrrsi zero, 1984, 1
    frep.o a7, 4, 0, 0
    fdiv.d ft0, ft1, fs8
    fdiv.d ft0, ft1, fs9
    fdiv.d ft0, ft1, fs10
    fdiv.d ft0, ft1, fs11
    csrrci zero, 1984, 1
    addi a5, a5, 512
    addi t1, t1, 384
    addi t2, t2, 512
    bne a5, a3, .Lsoftmax_loop22
.Lsoftmax_written23:
    scfgr a0, zero
    bge a0, zero, .Lsoftmax_written23
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
