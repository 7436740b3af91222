# kernel: matmul:16x16x16 f32
# strategy: heuristic
# machine: snitch
# cycles: 2640
# cycles_of_pdojo_snitch: 2640
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]=out'
.text
.globl matmul
.p2align 2
matmul:
    addi sp, sp, -64
    fsd fs0, 0(sp)
    fsd fs1, 8(sp)
    fsd fs2, 16(sp)
    fsd fs3, 24(sp)
    fsd fs4, 32(sp)
    fsd fs5, 40(sp)
    fsd fs6, 48(sp)
    fsd fs7, 56(sp)
    li a3, 127
    li a4, 8
    li a5, 15
    li a6, -1016
    fcvt.d.w ft3, zero
    li a7, 1
    scfgwi zero, 63
    scfgwi a3, 95
    scfgwi a4, 223
    scfgwi a5, 96
    scfgwi a6, 224
    scfgwi a1, 800
    scfgwi a2, 897
    csrrsi zero, 1984, 1
    addi a1, a0, 1024
.Lmatmul_loop1:
    flw ft4, 0(a0)
    flw ft5, 4(a0)
    flw ft6, 8(a0)
    flw ft7, 12(a0)
    flw ft8, 16(a0)
    flw ft9, 20(a0)
    flw ft10, 24(a0)
    flw ft11, 28(a0)
    flw fa0, 32(a0)
    flw fa1, 36(a0)
    flw fa2, 40(a0)
    flw fa3, 44(a0)
    flw fa4, 48(a0)
    flw fa5, 52(a0)
    flw fa6, 56(a0)
    flw fa7, 60(a0)
    fmv.d fs0, ft3
    fmv.d fs1, ft3
    fmv.d fs2, ft3
    fmv.d fs3, ft3
    fmv.d fs4, ft3
    fmv.d fs5, ft3
    fmv.d fs6, ft3
    fmv.d fs7, ft3
    vfmac.r.s fs0, ft0, ft4
    vfmac.r.s fs1, ft0, ft4
    vfmac.r.s fs2, ft0, ft4
    vfmac.r.s fs3, ft0, ft4
    vfmac.r.s fs4, ft0, ft4
    vfmac.r.s fs5, ft0, ft4
    vfmac.r.s fs6, ft0, ft4
    vfmac.r.s fs7, ft0, ft4
    vfmac.r.s fs0, ft0, ft5
    vfmac.r.s fs1, ft0, ft5
    vfmac.r.s fs2, ft0, ft5
    vfmac.r.s fs3, ft0, ft5
    vfmac.r.s fs4, ft0, ft5
    vfmac.r.s fs5, ft0, ft5
    vfmac.r.s fs6, ft0, ft5
    vfmac.r.s fs7, ft0, ft5
    vfmac.r.s fs0, ft0, ft6
    vfmac.r.s fs1, ft0, ft6
    vfmac.r.s fs2, ft0, ft6
    vfmac.r.s fs3, ft0, ft6
    vfmac.r.s fs4, ft0, ft6
    vfmac.r.s fs5, ft0, ft6
    vfmac.r.s fs6, ft0, ft6
    vfmac.r.s fs7, ft0, ft6
    vfmac.r.s fs0, ft0, ft7
    vfmac.r.s fs1, ft0, ft7
    vfmac.r.s fs2, ft0, ft7
    vfmac.r.s fs3, ft0, ft7
    vfmac.r.s fs4, ft0, ft7
    vfmac.r.s fs5, ft0, ft7
    vfmac.r.s fs6, ft0, ft7
    vfmac.r.s fs7, ft0, ft7
    vfmac.r.s fs0, ft0, ft8
    vfmac.r.s fs1, ft0, ft8
    vfmac.r.s fs2, ft0, ft8
    vfmac.r.s fs3, ft0, ft8
    vfmac.r.s fs4, ft0, ft8
    vfmac.r.s fs5, ft0, ft8
    vfmac.r.s fs6, ft0, ft8
    vfmac.r.s fs7, ft0, ft8
    vfmac.r.s fs0, ft0, ft9
    vfmac.r.s fs1, ft0, ft9
    vfmac.r.s fs2, ft0, ft9
    vfmac.r.s fs3, ft0, ft9
    vfmac.r.s fs4, ft0, ft9
    vfmac.r.s fs5, ft0, ft9
    vfmac.r.s fs6, ft0, ft9
    vfmac.r.s fs7, ft0, ft9
    vfmac.r.s fs0, ft0, ft10
    vfmac.r.s fs1, ft0, ft10
    vfmac.r.s fs2, ft0, ft10
    vfmac.r.s fs3, ft0, ft10
    vfmac.r.s fs4, ft0, ft10
    vfmac.r.s fs5, ft0, ft10
    vfmac.r.s fs6, ft0, ft10
    vfmac.r.s fs7, ft0, ft10
    vfmac.r.s fs0, ft0, ft11
    vfmac.r.s fs1, ft0, ft11
    vfmac.r.s fs2, ft0, ft11
    vfmac.r.s fs3, ft0, ft11
    vfmac.r.s fs4, ft0, ft11
    vfmac.r.s fs5, ft0, ft11
    vfmac.r.s fs6, ft0, ft11
    vfmac.r.s fs7, ft0, ft11
    vfmac.r.s fs0, ft0, fa0
    vfmac.r.s fs1, ft0, fa0
    vfmac.r.s fs2, ft0, fa0
    vfmac.r.s fs3, ft0, fa0
    vfmac.r.s fs4, ft0, fa0
    vfmac.r.s fs5, ft0, fa0
    vfmac.r.s fs6, ft0, fa0
    vfmac.r.s fs7, ft0, fa0
    vfmac.r.s fs0, ft0, fa1
    vfmac.r.s fs1, ft0, fa1
    vfmac.r.s fs2, ft0, fa1
    vfmac.r.s fs3, ft0, fa1
    vfmac.r.s fs4, ft0, fa1
    vfmac.r.s fs5, ft0, fa1
    vfmac.r.s fs6, ft0, fa1
    vfmac.r.s fs7, ft0, fa1
    vfmac.r.s fs0, ft0, fa2
    vfmac.r.s fs1, ft0, fa2
    vfmac.r.s fs2, ft0, fa2
    vfmac.r.s fs3, ft0, fa2
    vfmac.r.s fs4, ft0, fa2
    vfmac.r.s fs5, ft0, fa2
    vfmac.r.s fs6, ft0, fa2
    vfmac.r.s fs7, ft0, fa2
    vfmac.r.s fs0, ft0, fa3
    vfmac.r.s fs1, ft0, fa3
    vfmac.r.s fs2, ft0, fa3
    vfmac.r.s fs3, ft0, fa3
    vfmac.r.s fs4, ft0, fa3
    vfmac.r.s fs5, ft0, fa3
    vfmac.r.s fs6, ft0, fa3
    vfmac.r.s fs7, ft0, fa3
    vfmac.r.s fs0, ft0, fa4
    vfmac.r.s fs1, ft0, fa4
    vfmac.r.s fs2, ft0, fa4
    vfmac.r.s fs3, ft0, fa4
    vfmac.r.s fs4, ft0, fa4
    vfmac.r.s fs5, ft0, fa4
    vfmac.r.s fs6, ft0, fa4
    vfmac.r.s fs7, ft0, fa4
    vfmac.r.s fs0, ft0, fa5
    vfmac.r.s fs1, ft0, fa5
    vfmac.r.s fs2, ft0, fa5
    vfmac.r.s fs3, ft0, fa5
    vfmac.r.s fs4, ft0, fa5
    vfmac.r.s fs5, ft0, fa5
    vfmac.r.s fs6, ft0, fa5
    vfmac.r.s fs7, ft0, fa5
    vfmac.r.s fs0, ft0, fa6
    vfmac.r.s fs1, ft0, fa6
    vfmac.r.s fs2, ft0, fa6
    vfmac.r.s fs3, ft0, fa6
    vfmac.r.s fs4, ft0, fa6
    vfmac.r.s fs5, ft0, fa6
    vfmac.r.s fs6, ft0, fa6
    vfmac.r.s fs7, ft0, fa6
    vfmac.r.s fs0, ft0, fa7
    vfmac.r.s fs1, ft0, fa7
    vfmac.r.s fs2, ft0, fa7
    vfmac.r.s fs3, ft0, fa7
    vfmac.r.s fs4, ft0, fa7
    vfmac.r.s fs5, ft0, fa7
    vfmac.r.s fs6, ft0, fa7
    vfmac.r.s fs7, ft0, fa7
    fmv.d ft1, fs0
    fmv.d ft1, fs1
    fmv.d ft1, fs2
    fmv.d ft1, fs3
    fmv.d ft1, fs4
    fmv.d ft1, fs5
    fmv.d ft1, fs6
    fmv.d ft1, fs7
    addi a0, a0, 64
    bne a0, a1, .Lmatmul_loop1
    csrrci zero, 1984, 1
.Lmatmul_written2:
    scfgr a0, a7
    bge a0, zero, .Lmatmul_written2
    fld fs0, 0(sp)
    fld fs1, 8(sp)
    fld fs2, 16(sp)
    fld fs3, 24(sp)
    fld fs4, 32(sp)
    fld fs5, 40(sp)
    fld fs6, 48(sp)
    fld fs7, 56(sp)
    addi sp, sp, 64
    ret
