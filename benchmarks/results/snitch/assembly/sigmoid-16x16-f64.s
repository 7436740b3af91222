# kernel: sigmoid:16x16 f64
# strategy: greedy
# machine: snitch, with a divider
# cycles: 30277
# cycles_of_pdojo_snitch: 30293
# arguments, in a0 and so on:
#   --arg 'f64[16,16]'
#   --arg 'f64[16,16]=out'
.data
.balign 8
sigmoid_constants:
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
.globl sigmoid
.p2align 2
sigmoid:
    addi sp, sp, -64
    fsd fs0, 8(sp)
    fsd fs1, 16(sp)
    fsd fs2, 24(sp)
    fsd fs3, 32(sp)
    fsd fs4, 40(sp)
    fsd fs5, 48(sp)
    fsd fs6, 56(sp)
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
    fld fs3, 136(a4)
    fld fs4, 144(a4)
    fld fs5, 152(a4)
    li a4, 1072693248
    li a5, 1
    scfgwi zero, 63
    scfgwi a2, 95
    scfgwi a3, 223
    scfgwi a0, 768
    scfgwi a1, 897
    csrrsi zero, 1984, 1
    li a0, 256
.Lsigmoid_loop6:
    fsgnjn.d ft3, ft0, ft0
    fmax.d ft4, ft3, ft6
    feq.d a1, ft3, ft3
    feq.d a2, ft6, ft6
    and a1, a1, a2
    bne a1, zero, .Lsigmoid_ordered1
    fadd.d ft4, ft3, ft6
.Lsigmoid_ordered1:
    fmin.d ft3, ft4, ft7
    feq.d a1, ft4, ft4
    feq.d a2, ft7, ft7
    and a1, a1, a2
    bne a1, zero, .Lsigmoid_ordered2
    fadd.d ft3, ft4, ft7
.Lsigmoid_ordered2:
    fsd ft3, 0(sp)
    lw a1, 0(sp)
    lw a2, 4(sp)
    slt a3, a2, zero
    bne a2, zero, .Lsigmoid_less3
    sltu a3, a1, zero
.Lsigmoid_less3:
    fmv.d ft4, ft8
    bne a3, zero, .Lsigmoid_chosen4
    fmv.d ft4, ft9
.Lsigmoid_chosen4:
    fmv.d fs6, ft10
    bne a3, zero, .Lsigmoid_chosen5
    fmv.d fs6, ft11
.Lsigmoid_chosen5:
    fmadd.d ft5, ft3, fa0, ft4
    fsub.d ft4, ft5, ft4
    fsd ft5, 0(sp)
    lw a1, 0(sp)
    fmadd.d ft3, ft4, fa1, ft3
    fmadd.d ft4, ft4, fa2, ft3
    fmadd.d ft3, fa3, ft4, fa4
    fmadd.d ft3, ft3, ft4, fa5
    fmadd.d ft3, ft3, ft4, fa6
    fmadd.d ft3, ft3, ft4, fa7
    fmadd.d ft3, ft3, ft4, fs0
    fmadd.d ft3, ft3, ft4, fs1
    fmadd.d ft3, ft3, ft4, fs2
    fmadd.d ft3, ft3, ft4, fs3
    fmadd.d ft3, ft3, ft4, fs4
    fmadd.d ft3, ft3, ft4, fs5
    fmadd.d ft3, ft3, ft4, fs5
    slli a1, a1, 20
    add a2, zero, zero
    sltu a3, a2, zero
    add a1, a1, a4
    add a1, a1, a3
    sw a2, 0(sp)
    sw a1, 4(sp)
    fld ft4, 0(sp)
    fmul.d ft3, ft3, ft4
    fmul.d ft3, ft3, fs6
    fadd.d ft3, ft3, fs5
    fdiv.d ft1, fs5, ft3
    addi a0, a0, -1
    bne a0, zero, .Lsigmoid_loop6
    csrrci zero, 1984, 1
.Lsigmoid_written7:
    scfgr a0, a5
    bge a0, zero, .Lsigmoid_written7
    fld fs0, 8(sp)
    fld fs1, 16(sp)
    fld fs2, 24(sp)
    fld fs3, 32(sp)
    fld fs4, 40(sp)
    fld fs5, 48(sp)
    fld fs6, 56(sp)
    addi sp, sp, 64
    ret
