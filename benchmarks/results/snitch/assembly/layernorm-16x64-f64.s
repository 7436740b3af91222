# kernel: layernorm:16x64 f64
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 7293
# cycles_of_pdojo_snitch: 7293
# arguments, in a0 and so on:
#   --arg 'f64[16,64]'
#   --arg 'f64[64]'
#   --arg 'f64[64]'
#   --arg 'f64[16,64]=out'
.data
.balign 8
layernorm_constants:
.word 0x00000000, 0x40500000
.word 0x00000000, 0x3f900000
.word 0x88e368f1, 0x3ee4f8b5
.word 0x00000000, 0x3ff00000
.text
.globl layernorm
.p2align 2
layernorm:
    addi sp, sp, -48
    fsd fs0, 0(sp)
    fsd fs1, 8(sp)
    fsd fs2, 16(sp)
    fsd fs3, 24(sp)
    fsd fs4, 32(sp)
    fcvt.d.w fa0, zero
    li a4, 2048
    scfgwi zero, 32
    li a5, 3
    scfgwi a5, 64
    li a6, 512
    scfgwi a6, 192
    li a7, 62
    li t0, -1528
    scfgwi t0, 224
    la t1, layernorm_constants
    fld fa1, 8(t1)
    li t2, 63
    fld fa2, 16(t1)
    fld fa3, 24(t1)
    scfgwi a5, 34
    scfgwi t2, 66
    li t1, 8
    scfgwi t1, 194
    scfgwi zero, 33
    scfgwi a5, 65
    scfgwi a6, 193
    scfgwi t2, 97
    scfgwi t0, 225
    li a5, 8192
    li a6, 1
    add a5, a0, a5
.Llayernorm_loop2:
    fld ft3, 0(a0)
    fld ft4, 512(a0)
    fld ft5, 1024(a0)
    fld ft6, 1536(a0)
    fadd.d fa4, fa0, ft3
    fadd.d fa5, fa0, ft4
    fadd.d fa6, fa0, ft5
    fadd.d fa7, fa0, ft6
    scfgwi a7, 96
    addi t0, a0, 8
    scfgwi t0, 800
    csrrsi zero, 1984, 1
    frep.o a7, 4, 0, 0
    fadd.d fa4, fa4, ft0
    fadd.d fa5, fa5, ft0
    fadd.d fa6, fa6, ft0
    fadd.d fa7, fa7, ft0
    csrrci zero, 1984, 1
    fmul.d fa4, fa4, fa1
    fmul.d fa5, fa5, fa1
    fmul.d fa6, fa6, fa1
    fmul.d fa7, fa7, fa1
    fmv.d fs1, fa0
    fmv.d fs2, fa0
    fmv.d fs3, fa0
    fmv.d fs4, fa0
    scfgwi t2, 96
    scfgwi a0, 800
    csrrsi zero, 1984, 1
    frep.o t2, 8, 0, 0
    fsub.d ft3, ft0, fa4
    fsub.d ft4, ft0, fa5
    fsub.d ft5, ft0, fa6
    fsub.d ft6, ft0, fa7
    fmadd.d fs1, ft3, ft3, fs1
    fmadd.d fs2, ft4, ft4, fs2
    fmadd.d fs3, ft5, ft5, fs3
    fmadd.d fs4, ft6, ft6, fs4
    csrrci zero, 1984, 1
    fmul.d fs1, fs1, fa1
    fmul.d fs2, fs2, fa1
    fmul.d fs3, fs3, fa1
    fmul.d fs4, fs4, fa1
    fadd.d fs1, fs1, fa2
    fadd.d fs2, fs2, fa2
    fadd.d fs3, fs3, fa2
    fadd.d fs4, fs4, fa2
    fsqrt.d ft3, fs1
    fsqrt.d ft4, fs2
    fsqrt.d ft5, fs3
    fsqrt.d ft6, fs4
    fdiv.d ft3, fa3, ft3
    fdiv.d ft4, fa3, ft4
    fdiv.d ft5, fa3, ft5
    fdiv.d ft6, fa3, ft6
    fmv.d fs1, ft3
    fmv.d fs2, ft4
    fmv.d fs3, ft5
    fmv.d fs4, ft6
    scfgwi t2, 96
    scfgwi a0, 800
    scfgwi a2, 770
    scfgwi a3, 929
    csrrsi zero, 1984, 1
    mv t0, a1
    addi t1, t0, 512
.Llayernorm_loop1:
    fsub.d ft3, ft0, fa4
    fsub.d ft4, ft0, fa5
    fsub.d ft5, ft0, fa6
    fsub.d ft6, ft0, fa7
    fmul.d ft7, ft3, fs1
    fmul.d ft8, ft4, fs2
    fld ft9, 0(t0)
    fsub.d ft3, ft0, fa4
    fmul.d ft10, ft5, fs3
    fsub.d ft4, ft0, fa5
    fmul.d ft11, ft6, fs4
    fsub.d ft5, ft0, fa6
    fmadd.d ft1, ft7, ft9, ft2
    fsub.d ft6, ft0, fa7
    fmadd.d ft1, ft8, ft9, ft2
    fmul.d ft7, ft3, fs1
    fmadd.d ft1, ft10, ft9, ft2
    fmul.d ft8, ft4, fs2
    fld fs0, 8(t0)
    fsub.d ft3, ft0, fa4
    fmadd.d ft1, ft11, ft9, ft2
    fmul.d ft10, ft5, fs3
    fsub.d ft4, ft0, fa5
    fmul.d ft11, ft6, fs4
    fsub.d ft5, ft0, fa6
    fmadd.d ft1, ft7, fs0, ft2
    fsub.d ft6, ft0, fa7
    fmadd.d ft1, ft8, fs0, ft2
    fmul.d ft7, ft3, fs1
    fmadd.d ft1, ft10, fs0, ft2
    fmul.d ft8, ft4, fs2
    fld ft9, 16(t0)
    fsub.d ft3, ft0, fa4
    fmadd.d ft1, ft11, fs0, ft2
    fmul.d ft10, ft5, fs3
    fsub.d ft4, ft0, fa5
    fmul.d ft11, ft6, fs4
    fsub.d ft5, ft0, fa6
    fmadd.d ft1, ft7, ft9, ft2
    fsub.d ft6, ft0, fa7
    fmadd.d ft1, ft8, ft9, ft2
    fmul.d ft7, ft3, fs1
    fmadd.d ft1, ft10, ft9, ft2
    fmul.d ft8, ft4, fs2
    fld fs0, 24(t0)
    fsub.d ft3, ft0, fa4
    fmadd.d ft1, ft11, ft9, ft2
    fmul.d ft10, ft5, fs3
    fsub.d ft4, ft0, fa5
    fmul.d ft11, ft6, fs4
    fsub.d ft5, ft0, fa6
    fmadd.d ft1, ft7, fs0, ft2
    fsub.d ft6, ft0, fa7
    fmadd.d ft1, ft8, fs0, ft2
    fmul.d ft7, ft3, fs1
    fmadd.d ft1, ft10, fs0, ft2
    fmul.d ft8, ft4, fs2
    fld ft9, 32(t0)
    fsub.d ft3, ft0, fa4
    fmadd.d ft1, ft11, fs0, ft2
    fmul.d ft10, ft5, fs3
    fsub.d ft4, ft0, fa5
    fmul.d ft11, ft6, fs4
    fsub.d ft5, ft0, fa6
    fmadd.d ft1, ft7, ft9, ft2
    fsub.d ft6, ft0, fa7
    fmadd.d ft1, ft8, ft9, ft2
    fmul.d ft7, ft3, fs1
    fmadd.d ft1, ft10, ft9, ft2
    fmul.d ft8, ft4, fs2
    fld fs0, 40(t0)
    fsub.d ft3, ft0, fa4
    fmadd.d ft1, ft11, ft9, ft2
    fmul.d ft10, ft5, fs3
    fsub.d ft4, ft0, fa5
    fmul.d ft11, ft6, fs4
    fsub.d ft5, ft0, fa6
    fmadd.d ft1, ft7, fs0, ft2
    fsub.d ft6, ft0, fa7
    fmadd.d ft1, ft8, fs0, ft2
    fmul.d ft7, ft3, fs1
    fmadd.d ft1, ft10, fs0, ft2
    fmul.d ft8, ft4, fs2
    fld ft9, 48(t0)
    fsub.d ft3, ft0, fa4
    fmadd.d ft1, ft11, fs0, ft2
    fmul.d ft10, ft5, fs3
    fsub.d ft4, ft0, fa5
    fmul.d ft11, ft6, fs4
    fsub.d ft5, ft0, fa6
    fmadd.d ft1, ft7, ft9, ft2
    fsub.d ft6, ft0, fa7
    fmadd.d ft1, ft8, ft9, ft2
    fmul.d ft7, ft3, fs1
    fmadd.d ft1, ft10, ft9, ft2
    fmul.d ft8, ft4, fs2
    fld ft3, 56(t0)
    fmadd.d ft1, ft11, ft9, ft2
    fmul.d ft10, ft5, fs3
    fmul.d ft11, ft6, fs4
    fmadd.d ft1, ft7, ft3, ft2
    fmadd.d ft1, ft8, ft3, ft2
    fmadd.d ft1, ft10, ft3, ft2
    fmadd.d ft1, ft11, ft3, ft2
    addi t0, t0, 64
    bne t0, t1, .Llayernorm_loop1
    csrrci zero, 1984, 1
    add a0, a0, a4
    add a3, a3, a4
    bne a0, a5, .Llayernorm_loop2
.Llayernorm_written3:
    scfgr a0, a6
    bge a0, zero, .Llayernorm_written3
    fld fs0, 0(sp)
    fld fs1, 8(sp)
    fld fs2, 16(sp)
    fld fs3, 24(sp)
    fld fs4, 32(sp)
    addi sp, sp, 48
    ret
