# kernel: softmax:16x16 f64
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 18976
# cycles_of_pdojo_snitch: 18976
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
    addi sp, sp, -192
    sw s0, 96(sp)
    sw s1, 104(sp)
    sw s2, 112(sp)
    fsd fs0, 120(sp)
    fsd fs1, 128(sp)
    fsd fs2, 136(sp)
    fsd fs3, 144(sp)
    fsd fs4, 152(sp)
    fsd fs5, 160(sp)
    fsd fs6, 168(sp)
    fsd fs7, 176(sp)
    fsd fs8, 184(sp)
    mv a5, a2
    la a6, softmax_constants
    fld ft10, 0(a6)
    fcvt.d.w ft11, zero
    scfgwi zero, 32
    li a2, 3
    scfgwi a2, 64
    li a3, 128
    scfgwi a3, 192
    li a7, 15
    scfgwi a7, 96
    li a4, -376
    scfgwi a4, 224
    li t0, 1072693248
    scfgwi zero, 33
    scfgwi a2, 65
    scfgwi a3, 193
    scfgwi a7, 97
    scfgwi a4, 225
    li a2, 2048
    mv t2, a0
    mv t3, a0
    mv t4, a1
    add a4, t2, a2
.Lsoftmax_loop18:
    fmv.d fa0, ft10
    fmv.d fa1, ft10
    fmv.d fa2, ft10
    fmv.d fa3, ft10
    fmv.d fa4, ft11
    fmv.d fa5, ft11
    fmv.d fa6, ft11
    fmv.d fa7, ft11
    scfgwi t2, 800
    csrrsi zero, 1984, 1
    frep.o a7, 4, 0, 0
    fmax.d fa0, fa0, ft0
    fmax.d fa1, fa1, ft0
    fmax.d fa2, fa2, ft0
    fmax.d fa3, fa3, ft0
    csrrci zero, 1984, 1
    mv t1, a5
    addi t5, t3, 128
.Lsoftmax_loop17:
    fld ft3, 0(t3)
    fld ft4, 128(t3)
    fld ft5, 256(t3)
    fld ft6, 384(t3)
    fsub.d ft3, ft3, fa0
    fsub.d ft4, ft4, fa1
    fsub.d ft5, ft5, fa2
    fsub.d ft6, ft6, fa3
    fsd ft3, 0(t1)
    fsd ft4, 128(t1)
    fsd ft5, 256(t1)
    fsd ft6, 384(t1)
    fld ft3, 0(t1)
    fld ft4, 128(t1)
    fld ft5, 8(a6)
    feq.d a0, ft3, ft3
    feq.d a1, ft4, ft4
    fld ft6, 256(t1)
    fmax.d ft7, ft3, ft5
    fmax.d ft8, ft4, ft5
    fmax.d ft9, ft6, ft5
    feq.d a2, ft6, ft6
    bne a0, zero, .Lsoftmax_ordered1
    fadd.d ft7, ft3, ft5
.Lsoftmax_ordered1:
    bne a1, zero, .Lsoftmax_ordered5
    fadd.d ft8, ft4, ft5
.Lsoftmax_ordered5:
    fld ft3, 16(a6)
    feq.d a0, ft7, ft7
    bne a2, zero, .Lsoftmax_ordered9
    fadd.d ft9, ft6, ft5
.Lsoftmax_ordered9:
    feq.d a1, ft8, ft8
    fmin.d fs4, ft7, ft3
    feq.d a2, ft9, ft9
    fmin.d fs3, ft8, ft3
    fmin.d fs2, ft9, ft3
    bne a0, zero, .Lsoftmax_ordered2
    fadd.d fs4, ft7, ft3
.Lsoftmax_ordered2:
    bne a1, zero, .Lsoftmax_ordered6
    fadd.d fs3, ft8, ft3
.Lsoftmax_ordered6:
    bne a2, zero, .Lsoftmax_ordered10
    fadd.d fs2, ft9, ft3
.Lsoftmax_ordered10:
    fsd fs4, 0(sp)
    fsd fs3, 24(sp)
    fsd fs2, 48(sp)
    fld ft4, 24(a6)
    lw a0, 4(sp)
    lw a1, 28(sp)
    lw a2, 52(sp)
    fld fs0, 32(a6)
    fld fs7, 56(a6)
    fld ft6, 384(t1)
    fmv.d ft7, ft4
    fmv.d ft8, ft4
    feq.d a3, ft6, ft6
    fmax.d ft9, ft6, ft5
    fmv.d fs1, ft4
    slt t6, a0, zero
    slt s0, a1, zero
    slt s1, a2, zero
    bne a3, zero, .Lsoftmax_ordered13
    fadd.d ft9, ft6, ft5
.Lsoftmax_ordered13:
    bne t6, zero, .Lsoftmax_chosen3
    fmv.d ft4, fs0
.Lsoftmax_chosen3:
    feq.d a0, ft9, ft9
    fmin.d fs5, ft9, ft3
    bne s0, zero, .Lsoftmax_chosen7
    fmv.d ft7, fs0
.Lsoftmax_chosen7:
    bne s1, zero, .Lsoftmax_chosen11
    fmv.d ft8, fs0
.Lsoftmax_chosen11:
    bne a0, zero, .Lsoftmax_ordered14
    fadd.d fs5, ft9, ft3
.Lsoftmax_ordered14:
    fmadd.d ft0, fs4, fs7, ft4
    fmadd.d ft1, fs3, fs7, ft7
    fsd fs5, 72(sp)
    fmadd.d ft2, fs2, fs7, ft8
    fsub.d ft3, ft0, ft4
    fsub.d ft4, ft1, ft7
    lw a0, 76(sp)
    fsub.d ft5, ft2, ft8
    fld fs8, 64(a6)
    fld fs6, 72(a6)
    slt s2, a0, zero
    bne s2, zero, .Lsoftmax_chosen15
    fmv.d fs1, fs0
.Lsoftmax_chosen15:
    fmadd.d fs0, fs5, fs7, fs1
    fmadd.d ft6, ft3, fs8, fs4
    fmadd.d ft7, ft4, fs8, fs3
    fmadd.d ft8, ft5, fs8, fs2
    fsub.d ft9, fs0, fs1
    fmadd.d fs1, ft3, fs6, ft6
    fmadd.d fs2, ft4, fs6, ft7
    fmadd.d fs3, ft5, fs6, ft8
    fmadd.d ft3, ft9, fs8, fs5
    fld ft4, 80(a6)
    fld ft5, 88(a6)
    fld ft6, 96(a6)
    fmadd.d ft9, ft9, fs6, ft3
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
    fsd ft0, 8(sp)
    fmadd.d ft3, ft3, fs1, ft7
    fmadd.d ft5, ft5, fs2, ft7
    fmadd.d ft6, ft6, fs3, ft7
    fmadd.d ft4, ft4, ft9, ft7
    fsd ft1, 32(sp)
    fsd ft2, 56(sp)
    fsd fs0, 80(sp)
    lw a0, 8(sp)
    lw a1, 32(sp)
    lw a2, 56(sp)
    lw a3, 80(sp)
    fmadd.d ft3, ft3, fs1, ft8
    fmadd.d ft5, ft5, fs2, ft8
    fmadd.d ft6, ft6, fs3, ft8
    fmadd.d ft4, ft4, ft9, ft8
    slli a0, a0, 20
    slli a1, a1, 20
    slli a2, a2, 20
    slli a3, a3, 20
    add a0, a0, t0
    add a1, a1, t0
    add a2, a2, t0
    add a3, a3, t0
    fmadd.d ft3, ft3, fs1, ft8
    sw zero, 16(sp)
    sw a0, 20(sp)
    fmadd.d ft5, ft5, fs2, ft8
    sw zero, 40(sp)
    sw a1, 44(sp)
    fmadd.d ft6, ft6, fs3, ft8
    sw zero, 64(sp)
    sw a2, 68(sp)
    fmadd.d ft4, ft4, ft9, ft8
    sw zero, 88(sp)
    sw a3, 92(sp)
    fld ft7, 16(sp)
    fld ft8, 40(sp)
    fld ft9, 64(sp)
    fld ft0, 88(sp)
    fld ft1, 40(a6)
    fld ft2, 48(a6)
    fmul.d ft3, ft3, ft7
    fmul.d ft5, ft5, ft8
    fmul.d ft6, ft6, ft9
    fmul.d ft4, ft4, ft0
    fmv.d ft7, ft1
    fmv.d ft8, ft1
    fmv.d ft9, ft1
    bne t6, zero, .Lsoftmax_chosen4
    fmv.d ft1, ft2
.Lsoftmax_chosen4:
    bne s0, zero, .Lsoftmax_chosen8
    fmv.d ft7, ft2
.Lsoftmax_chosen8:
    bne s1, zero, .Lsoftmax_chosen12
    fmv.d ft8, ft2
.Lsoftmax_chosen12:
    bne s2, zero, .Lsoftmax_chosen16
    fmv.d ft9, ft2
.Lsoftmax_chosen16:
    fmul.d ft3, ft3, ft1
    fmul.d ft5, ft5, ft7
    fmul.d ft6, ft6, ft8
    fmul.d ft4, ft4, ft9
    fsd ft3, 0(t1)
    fsd ft5, 128(t1)
    fsd ft6, 256(t1)
    fsd ft4, 384(t1)
    fld ft3, 0(t1)
    fld ft4, 128(t1)
    fld ft5, 256(t1)
    fld ft6, 384(t1)
    fadd.d fa4, fa4, ft3
    fadd.d fa5, fa5, ft4
    fadd.d fa6, fa6, ft5
    fadd.d fa7, fa7, ft6
    addi t3, t3, 8
    addi t1, t1, 8
    bne t3, t5, .Lsoftmax_loop17
    fence
    scfgwi a5, 801
    scfgwi t4, 928
    csrrsi zero, 1984, 1
    frep.o a7, 4, 0, 0
    fdiv.d ft0, ft1, fa4
    fdiv.d ft0, ft1, fa5
    fdiv.d ft0, ft1, fa6
    fdiv.d ft0, ft1, fa7
    csrrci zero, 1984, 1
    addi t2, t2, 512
    addi t3, t3, 384
    addi t4, t4, 512
    bne t2, a4, .Lsoftmax_loop18
.Lsoftmax_written19:
    scfgr a0, zero
    bge a0, zero, .Lsoftmax_written19
    lw s0, 96(sp)
    lw s1, 104(sp)
    lw s2, 112(sp)
    fld fs0, 120(sp)
    fld fs1, 128(sp)
    fld fs2, 136(sp)
    fld fs3, 144(sp)
    fld fs4, 152(sp)
    fld fs5, 160(sp)
    fld fs6, 168(sp)
    fld fs7, 176(sp)
    fld fs8, 184(sp)
    addi sp, sp, 192
    ret
