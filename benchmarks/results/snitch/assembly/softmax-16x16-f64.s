# kernel: softmax:16x16 f64
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 18678
# cycles_of_pdojo_snitch: 18679
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
.word 0x0000043f, 0x43380000
.word 0x000003bf, 0x43380000
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
    addi sp, sp, -176
    sw s0, 96(sp)
    sw s1, 104(sp)
    fsd fs0, 112(sp)
    fsd fs1, 120(sp)
    fsd fs2, 128(sp)
    fsd fs3, 136(sp)
    fsd fs4, 144(sp)
    fsd fs5, 152(sp)
    fsd fs6, 160(sp)
    fsd fs7, 168(sp)
    mv a5, a2
    la a6, softmax_constants
    fld ft11, 0(a6)
    fcvt.d.w fa0, zero
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
    li a2, 2048
    mv t0, a0
    mv t1, a0
    mv t2, a1
    add t3, t0, a2
.Lsoftmax_loop19:
    fmv.d fa1, ft11
    fmv.d fa2, ft11
    fmv.d fa3, ft11
    fmv.d fa4, ft11
    fmv.d fa5, fa0
    fmv.d fa6, fa0
    fmv.d fa7, fa0
    fmv.d fs0, fa0
.Lsoftmax_written1:
    scfgr a0, zero
    bge a0, zero, .Lsoftmax_written1
    scfgwi t0, 800
    csrrsi zero, 1984, 1
    frep.o a7, 4, 0, 0
    fmax.d fa1, fa1, ft0
    fmax.d fa2, fa2, ft0
    fmax.d fa3, fa3, ft0
    fmax.d fa4, fa4, ft0
    csrrci zero, 1984, 1
    mv a4, a5
    addi t4, t1, 128
.Lsoftmax_loop18:
    fld ft3, 0(t1)
    fld ft4, 128(t1)
    fld ft5, 256(t1)
    fld ft6, 384(t1)
    fsub.d ft3, ft3, fa1
    fsub.d ft4, ft4, fa2
    fsub.d ft5, ft5, fa3
    fsub.d ft6, ft6, fa4
    fsd ft3, 0(a4)
    fsd ft4, 128(a4)
    fsd ft5, 256(a4)
    fsd ft6, 384(a4)
    fld ft3, 0(a4)
    fld ft4, 128(a4)
    fld ft5, 8(a6)
    feq.d a0, ft3, ft3
    feq.d a1, ft4, ft4
    fld ft6, 256(a4)
    fmax.d ft7, ft3, ft5
    fmax.d ft8, ft4, ft5
    fmax.d ft9, ft6, ft5
    feq.d a2, ft6, ft6
    fld ft10, 16(a6)
    bne a0, zero, .Lsoftmax_ordered2
    fadd.d ft7, ft3, ft5
.Lsoftmax_ordered2:
    bne a1, zero, .Lsoftmax_ordered6
    fadd.d ft8, ft4, ft5
.Lsoftmax_ordered6:
    feq.d a0, ft7, ft7
    bne a2, zero, .Lsoftmax_ordered10
    fadd.d ft9, ft6, ft5
.Lsoftmax_ordered10:
    feq.d a1, ft8, ft8
    fmin.d fs3, ft7, ft10
    feq.d a2, ft9, ft9
    fmin.d fs2, ft8, ft10
    fmin.d fs1, ft9, ft10
    bne a0, zero, .Lsoftmax_ordered3
    fadd.d fs3, ft7, ft10
.Lsoftmax_ordered3:
    bne a1, zero, .Lsoftmax_ordered7
    fadd.d fs2, ft8, ft10
.Lsoftmax_ordered7:
    bne a2, zero, .Lsoftmax_ordered11
    fadd.d fs1, ft9, ft10
.Lsoftmax_ordered11:
    fsd fs3, 0(sp)
    fsd fs2, 24(sp)
    fsd fs1, 48(sp)
    fld ft3, 24(a6)
    lw a0, 4(sp)
    lw a1, 28(sp)
    lw a2, 52(sp)
    fld ft2, 32(a6)
    fld fs6, 56(a6)
    fld ft4, 384(a4)
    fmv.d ft6, ft3
    fmv.d ft7, ft3
    feq.d a3, ft4, ft4
    fmax.d ft8, ft4, ft5
    fmv.d ft9, ft3
    slt s1, a0, zero
    slt a0, a1, zero
    bne a3, zero, .Lsoftmax_ordered14
    fadd.d ft8, ft4, ft5
.Lsoftmax_ordered14:
    slt a1, a2, zero
    bne s1, zero, .Lsoftmax_chosen4
    fmv.d ft3, ft2
.Lsoftmax_chosen4:
    feq.d a2, ft8, ft8
    fmin.d fs4, ft8, ft10
    bne a0, zero, .Lsoftmax_chosen8
    fmv.d ft6, ft2
.Lsoftmax_chosen8:
    bne a1, zero, .Lsoftmax_chosen12
    fmv.d ft7, ft2
.Lsoftmax_chosen12:
    bne a2, zero, .Lsoftmax_ordered15
    fadd.d fs4, ft8, ft10
.Lsoftmax_ordered15:
    fmadd.d ft10, fs3, fs6, ft3
    fmadd.d ft0, fs2, fs6, ft6
    fsd fs4, 72(sp)
    fmadd.d ft1, fs1, fs6, ft7
    fsub.d ft3, ft10, ft3
    fsub.d ft4, ft0, ft6
    lw a2, 76(sp)
    fsub.d ft5, ft1, ft7
    fld fs7, 64(a6)
    fld fs5, 72(a6)
    slt a2, a2, zero
    bne a2, zero, .Lsoftmax_chosen16
    fmv.d ft9, ft2
.Lsoftmax_chosen16:
    fmadd.d ft2, fs4, fs6, ft9
    fmadd.d ft6, ft3, fs7, fs3
    fmadd.d ft7, ft4, fs7, fs2
    fmadd.d ft8, ft5, fs7, fs1
    fsub.d ft9, ft2, ft9
    fmadd.d fs1, ft3, fs5, ft6
    fmadd.d fs2, ft4, fs5, ft7
    fmadd.d fs3, ft5, fs5, ft8
    fmadd.d ft3, ft9, fs7, fs4
    fld ft4, 80(a6)
    fld ft5, 88(a6)
    fld ft6, 96(a6)
    fmadd.d ft9, ft9, fs5, ft3
    fmadd.d ft3, ft4, fs1, ft5
    fmadd.d ft7, ft4, fs2, ft5
    fmadd.d ft8, ft4, fs3, ft5
    fmadd.d ft4, ft4, ft9, ft5
    fmadd.d ft3, ft3, fs1, ft6
    fmadd.d ft5, ft7, fs2, ft6
    fmadd.d ft7, ft8, fs3, ft6
    fmadd.d ft4, ft4, ft9, ft6
    fld ft6, 104(a6)
    fld ft8, 112(a6)
    fld fs4, 120(a6)
    fmadd.d ft3, ft3, fs1, ft6
    fmadd.d ft5, ft5, fs2, ft6
    fmadd.d ft7, ft7, fs3, ft6
    fmadd.d ft4, ft4, ft9, ft6
    fmadd.d ft3, ft3, fs1, ft8
    fmadd.d ft5, ft5, fs2, ft8
    fmadd.d ft6, ft7, fs3, ft8
    fmadd.d ft4, ft4, ft9, ft8
    fmadd.d ft3, ft3, fs1, fs4
    fmadd.d ft5, ft5, fs2, fs4
    fmadd.d ft6, ft6, fs3, fs4
    fmadd.d ft4, ft4, ft9, fs4
    fld ft7, 128(a6)
    fld ft8, 136(a6)
    fld fs4, 144(a6)
    fmadd.d ft3, ft3, fs1, ft7
    fmadd.d ft5, ft5, fs2, ft7
    fmadd.d ft6, ft6, fs3, ft7
    fmadd.d ft4, ft4, ft9, ft7
    fmadd.d ft3, ft3, fs1, ft8
    fmadd.d ft5, ft5, fs2, ft8
    fmadd.d ft6, ft6, fs3, ft8
    fmadd.d ft4, ft4, ft9, ft8
    fmadd.d ft3, ft3, fs1, fs4
    fmadd.d ft5, ft5, fs2, fs4
    fmadd.d ft6, ft6, fs3, fs4
    fmadd.d ft4, ft4, ft9, fs4
    fld ft7, 152(a6)
    fld ft8, 160(a6)
    fsd ft10, 8(sp)
    fmadd.d ft3, ft3, fs1, ft7
    fmadd.d ft5, ft5, fs2, ft7
    fmadd.d ft6, ft6, fs3, ft7
    fmadd.d ft4, ft4, ft9, ft7
    fsd ft0, 32(sp)
    fsd ft1, 56(sp)
    fsd ft2, 80(sp)
    lw a3, 8(sp)
    lw t5, 32(sp)
    lw t6, 56(sp)
    lw s0, 80(sp)
    fmadd.d ft3, ft3, fs1, ft8
    fmadd.d ft5, ft5, fs2, ft8
    fmadd.d ft6, ft6, fs3, ft8
    fmadd.d ft4, ft4, ft9, ft8
    slli a3, a3, 20
    slli t5, t5, 20
    slli t6, t6, 20
    slli s0, s0, 20
    fmadd.d ft3, ft3, fs1, ft8
    sw zero, 16(sp)
    sw a3, 20(sp)
    fmadd.d ft5, ft5, fs2, ft8
    sw zero, 40(sp)
    sw t5, 44(sp)
    fmadd.d ft6, ft6, fs3, ft8
    sw zero, 64(sp)
    sw t6, 68(sp)
    fmadd.d ft4, ft4, ft9, ft8
    sw zero, 88(sp)
    sw s0, 92(sp)
    fld ft7, 16(sp)
    fld ft8, 40(sp)
    fld ft9, 64(sp)
    fld ft10, 88(sp)
    fld ft0, 40(a6)
    fld ft1, 48(a6)
    fmul.d ft3, ft3, ft7
    fmul.d ft5, ft5, ft8
    fmul.d ft6, ft6, ft9
    fmul.d ft4, ft4, ft10
    fmv.d ft7, ft0
    fmv.d ft8, ft0
    fmv.d ft9, ft0
    bne s1, zero, .Lsoftmax_chosen5
    fmv.d ft0, ft1
.Lsoftmax_chosen5:
    bne a0, zero, .Lsoftmax_chosen9
    fmv.d ft7, ft1
.Lsoftmax_chosen9:
    bne a1, zero, .Lsoftmax_chosen13
    fmv.d ft8, ft1
.Lsoftmax_chosen13:
    bne a2, zero, .Lsoftmax_chosen17
    fmv.d ft9, ft1
.Lsoftmax_chosen17:
    fmul.d ft3, ft3, ft0
    fmul.d ft5, ft5, ft7
    fmul.d ft6, ft6, ft8
    fmul.d ft4, ft4, ft9
    fsd ft3, 0(a4)
    fsd ft5, 128(a4)
    fsd ft6, 256(a4)
    fsd ft4, 384(a4)
    fld ft3, 0(a4)
    fld ft4, 128(a4)
    fld ft5, 256(a4)
    fld ft6, 384(a4)
    fadd.d fa5, fa5, ft3
    fadd.d fa6, fa6, ft4
    fadd.d fa7, fa7, ft5
    fadd.d fs0, fs0, ft6
    addi t1, t1, 8
    addi a4, a4, 8
    bne t1, t4, .Lsoftmax_loop18
    fence
    scfgwi a5, 801
    scfgwi t2, 928
    csrrsi zero, 1984, 1
    frep.o a7, 4, 0, 0
    fdiv.d ft0, ft1, fa5
    fdiv.d ft0, ft1, fa6
    fdiv.d ft0, ft1, fa7
    fdiv.d ft0, ft1, fs0
    csrrci zero, 1984, 1
    addi t0, t0, 512
    addi t1, t1, 384
    addi t2, t2, 512
    bne t0, t3, .Lsoftmax_loop19
.Lsoftmax_written20:
    scfgr a0, zero
    bge a0, zero, .Lsoftmax_written20
    lw s0, 96(sp)
    lw s1, 104(sp)
    fld fs0, 112(sp)
    fld fs1, 120(sp)
    fld fs2, 128(sp)
    fld fs3, 136(sp)
    fld fs4, 144(sp)
    fld fs5, 152(sp)
    fld fs6, 160(sp)
    fld fs7, 168(sp)
    addi sp, sp, 176
    ret
