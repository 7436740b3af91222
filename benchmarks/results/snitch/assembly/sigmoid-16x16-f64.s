# kernel: sigmoid:16x16 f64
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 12432
# cycles_of_pdojo_snitch: 12432
# arguments, in a0 and so on:
#   --arg 'f64[16,16]'
#   --arg 'f64[16,16]=out'
.data
.balign 8
sigmoid_constants:
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
.globl sigmoid
.p2align 2
sigmoid:
    addi sp, sp, -80
    fsd fs0, 0(sp)
    fsd fs1, 8(sp)
    fsd fs2, 16(sp)
    fsd fs3, 24(sp)
    fsd fs4, 32(sp)
    fsd fs5, 40(sp)
    fsd fs6, 48(sp)
    fsd fs7, 56(sp)
    fsd fs8, 64(sp)
    fsd fs9, 72(sp)
    li a2, 255
    li a3, 8
    la a4, sigmoid_constants
    fcvt.d.w ft9, zero
    li a5, 1
    scfgwi zero, 63
    scfgwi a2, 95
    scfgwi a3, 223
    scfgwi a0, 768
    scfgwi a1, 897
    csrrsi zero, 1984, 1
    li a0, 64
.Lsigmoid_loop5:
    fld ft3, 0(a4)
    fsgnjn.d ft10, ft0, ft0
    fld ft4, 16(a4)
    fsgnjn.d ft11, ft0, ft0
    fsgnjn.d fa0, ft0, ft0
    fmax.d ft5, ft10, ft3
    fld ft6, 24(a4)
    fsgnjn.d fa1, ft0, ft0
    fmax.d ft7, ft11, ft3
    fmin.d fs1, ft5, ft4
    fmax.d ft5, fa0, ft3
    fld ft8, 32(a4)
    fmin.d fs2, ft7, ft4
    fmax.d ft3, fa1, ft3
    fsgnj.d fa2, ft6, fs1
    fmin.d fs3, ft5, ft4
    fsgnj.d fa3, ft6, fs2
    fmin.d fs4, ft3, ft4
    fsub.d ft3, ft8, fa2
    fsgnj.d fa5, ft6, fs3
    fld ft4, 48(a4)
    fsub.d ft5, ft8, fa3
    fsgnj.d fa6, ft6, fs4
    fsub.d ft6, ft8, fa5
    fsub.d ft7, ft8, fa6
    fmadd.d ft8, fs1, ft4, ft3
    fmadd.d fa4, fs2, ft4, ft5
    fmadd.d fa7, fs3, ft4, ft6
    fmadd.d fs0, fs4, ft4, ft7
    fsub.d fs5, ft8, ft3
    fld ft3, 56(a4)
    fsub.d fs6, fa4, ft5
    fsub.d fs7, fa7, ft6
    fsub.d fs8, fs0, ft7
    fmadd.d ft4, fs5, ft3, fs1
    fld ft7, 64(a4)
    fmadd.d ft5, fs6, ft3, fs2
    fmadd.d ft6, fs7, ft3, fs3
    fmadd.d ft3, fs8, ft3, fs4
    fmadd.d fs1, fs5, ft7, ft4
    fld fs4, 72(a4)
    fld fs5, 80(a4)
    fmadd.d fs2, fs6, ft7, ft5
    fmadd.d fs3, fs7, ft7, ft6
    fmadd.d fs6, fs8, ft7, ft3
    fmadd.d ft3, fs4, fs1, fs5
    fld ft4, 88(a4)
    fmadd.d ft5, fs4, fs2, fs5
    fmadd.d ft6, fs4, fs3, fs5
    fmadd.d ft7, fs4, fs6, fs5
    fmadd.d ft3, ft3, fs1, ft4
    fld fs4, 96(a4)
    fmadd.d ft5, ft5, fs2, ft4
    fmadd.d ft6, ft6, fs3, ft4
    fmadd.d ft4, ft7, fs6, ft4
    fmadd.d ft3, ft3, fs1, fs4
    fld ft7, 104(a4)
    fmadd.d ft5, ft5, fs2, fs4
    fmadd.d ft6, ft6, fs3, fs4
    fmadd.d ft4, ft4, fs6, fs4
    fmadd.d ft3, ft3, fs1, ft7
    fld fs4, 112(a4)
    fmadd.d ft5, ft5, fs2, ft7
    fmadd.d ft6, ft6, fs3, ft7
    fmadd.d ft4, ft4, fs6, ft7
    fmadd.d ft3, ft3, fs1, fs4
    fld ft7, 120(a4)
    fmadd.d ft5, ft5, fs2, fs4
    fmadd.d ft6, ft6, fs3, fs4
    fmadd.d ft4, ft4, fs6, fs4
    fmadd.d ft3, ft3, fs1, ft7
    fld fs4, 128(a4)
    fmadd.d ft5, ft5, fs2, ft7
    fmadd.d ft6, ft6, fs3, ft7
    fmadd.d ft4, ft4, fs6, ft7
    fmadd.d ft3, ft3, fs1, fs4
    fld ft7, 136(a4)
    fmadd.d ft5, ft5, fs2, fs4
    fmadd.d ft6, ft6, fs3, fs4
    fmadd.d ft4, ft4, fs6, fs4
    fmadd.d ft3, ft3, fs1, ft7
    fld fs5, 144(a4)
    fmadd.d ft5, ft5, fs2, ft7
    fmadd.d ft6, ft6, fs3, ft7
    fmadd.d ft4, ft4, fs6, ft7
    fmadd.d ft3, ft3, fs1, fs5
    fld fs4, 8(a4)
    fmadd.d ft5, ft5, fs2, fs5
    fld ft7, 152(a4)
    fmadd.d fs7, ft6, fs3, fs5
    fmadd.d fs8, ft4, fs6, fs5
    fmadd.d fs9, ft3, fs1, fs4
    fadd.d ft3, ft8, ft7
    fmadd.d ft6, ft5, fs2, fs4
    fld fs5, 40(a4)
    fadd.d ft4, fa4, ft7
    fmadd.d ft5, fs7, fs3, fs4
    fadd.d ft8, fa7, ft7
    fmadd.d fa4, fs8, fs6, fs4
    fmadd.d fa7, fs9, fs1, fs4
    fadd.d fs0, fs0, ft7
    fadd.d fa2, fa2, fs5
    vfcpka.s.s ft3, ft9, ft3
    fmadd.d fs1, ft6, fs2, fs4
    fadd.d fs2, fa3, fs5
    vfcpka.s.s ft4, ft9, ft4
    fmadd.d ft5, ft5, fs3, fs4
    fadd.d ft6, fa5, fs5
    vfcpka.s.s ft7, ft9, ft8
    fmadd.d ft8, fa4, fs6, fs4
    fmul.d ft3, fa7, ft3
    fadd.d fa3, fa6, fs5
    vfcpka.s.s fa4, ft9, fs0
    vfcpka.s.s fa2, ft9, fa2
    fmul.d ft4, fs1, ft4
    vfcpka.s.s fa5, ft9, fs2
    fmul.d ft5, ft5, ft7
    vfcpka.s.s ft6, ft9, ft6
    fmul.d ft7, ft8, fa4
    fmul.d ft3, ft3, fa2
    vfcpka.s.s ft8, ft9, fa3
    flt.d a1, ft10, fs4
    flt.d a2, ft9, ft10
    fmul.d ft4, ft4, fa5
    flt.d a3, ft11, fs4
    flt.d a6, ft9, ft11
    fmul.d ft5, ft5, ft6
    flt.d a7, fa0, fs4
    flt.d t0, ft9, fa0
    fmul.d ft6, ft7, ft8
    flt.d t1, fa1, fs4
    flt.d t2, ft9, fa1
    or a1, a1, a2
    bne a1, zero, .Lsigmoid_ordered1
    fadd.d ft3, ft10, ft10
.Lsigmoid_ordered1:
    or a1, a3, a6
    fmv.d ft10, ft3
    bne a1, zero, .Lsigmoid_ordered2
    fadd.d ft4, ft11, ft11
.Lsigmoid_ordered2:
    or a1, a7, t0
    fmv.d ft11, ft4
    bne a1, zero, .Lsigmoid_ordered3
    fadd.d ft5, fa0, fa0
.Lsigmoid_ordered3:
    or a1, t1, t2
    bne a1, zero, .Lsigmoid_ordered4
    fadd.d ft6, fa1, fa1
.Lsigmoid_ordered4:
    fmv.d fa0, ft5
    fadd.d ft10, ft10, fs4
    fmv.d fa1, ft6
    fadd.d ft11, ft11, fs4
    fadd.d fa0, fa0, fs4
    fadd.d fa1, fa1, fs4
    fdiv.d ft1, fs4, ft10
    fdiv.d ft1, fs4, ft11
    fdiv.d ft1, fs4, fa0
    fdiv.d ft1, fs4, fa1
    addi a0, a0, -1
    bne a0, zero, .Lsigmoid_loop5
    csrrci zero, 1984, 1
.Lsigmoid_written6:
    scfgr a0, a5
    bge a0, zero, .Lsigmoid_written6
    fld fs0, 0(sp)
    fld fs1, 8(sp)
    fld fs2, 16(sp)
    fld fs3, 24(sp)
    fld fs4, 32(sp)
    fld fs5, 40(sp)
    fld fs6, 48(sp)
    fld fs7, 56(sp)
    fld fs8, 64(sp)
    fld fs9, 72(sp)
    addi sp, sp, 80
    ret
