# kernel: matmul:8x8x8 f32
# strategy: heuristic
# machine: snitch
# cycles: 428
# cycles_of_pdojo_snitch: 428
# arguments, in a0 and so on:
#   --arg 'f32[8,8]'
#   --arg 'f32[8,8]'
#   --arg 'f32[8,8]=out'
.text
.globl matmul
.p2align 2
matmul:
    li a3, 31
    li a4, 8
    li a5, 7
    li a6, -248
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
    addi a1, a0, 256
.Lmatmul_loop1:
    flw ft4, 0(a0)
    flw ft5, 4(a0)
    flw ft6, 8(a0)
    flw ft7, 12(a0)
    flw ft8, 16(a0)
    flw ft9, 20(a0)
    flw ft10, 24(a0)
    flw ft11, 28(a0)
    fmv.d fa0, ft3
    fmv.d fa1, ft3
    fmv.d fa2, ft3
    fmv.d fa3, ft3
    vfmac.r.s fa0, ft0, ft4
    vfmac.r.s fa1, ft0, ft4
    vfmac.r.s fa2, ft0, ft4
    vfmac.r.s fa3, ft0, ft4
    vfmac.r.s fa0, ft0, ft5
    vfmac.r.s fa1, ft0, ft5
    vfmac.r.s fa2, ft0, ft5
    vfmac.r.s fa3, ft0, ft5
    vfmac.r.s fa0, ft0, ft6
    vfmac.r.s fa1, ft0, ft6
    vfmac.r.s fa2, ft0, ft6
    vfmac.r.s fa3, ft0, ft6
    vfmac.r.s fa0, ft0, ft7
    vfmac.r.s fa1, ft0, ft7
    vfmac.r.s fa2, ft0, ft7
    vfmac.r.s fa3, ft0, ft7
    vfmac.r.s fa0, ft0, ft8
    vfmac.r.s fa1, ft0, ft8
    vfmac.r.s fa2, ft0, ft8
    vfmac.r.s fa3, ft0, ft8
    vfmac.r.s fa0, ft0, ft9
    vfmac.r.s fa1, ft0, ft9
    vfmac.r.s fa2, ft0, ft9
    vfmac.r.s fa3, ft0, ft9
    vfmac.r.s fa0, ft0, ft10
    vfmac.r.s fa1, ft0, ft10
    vfmac.r.s fa2, ft0, ft10
    vfmac.r.s fa3, ft0, ft10
    vfmac.r.s fa0, ft0, ft11
    vfmac.r.s fa1, ft0, ft11
    vfmac.r.s fa2, ft0, ft11
    vfmac.r.s fa3, ft0, ft11
    fmv.d ft1, fa0
    fmv.d ft1, fa1
    fmv.d ft1, fa2
    fmv.d ft1, fa3
    flw ft4, 32(a0)
    flw ft5, 36(a0)
    flw ft6, 40(a0)
    flw ft7, 44(a0)
    flw ft8, 48(a0)
    flw ft9, 52(a0)
    flw ft10, 56(a0)
    flw ft11, 60(a0)
    fmv.d fa0, ft3
    fmv.d fa1, ft3
    fmv.d fa2, ft3
    fmv.d fa3, ft3
    vfmac.r.s fa0, ft0, ft4
    vfmac.r.s fa1, ft0, ft4
    vfmac.r.s fa2, ft0, ft4
    vfmac.r.s fa3, ft0, ft4
    vfmac.r.s fa0, ft0, ft5
    vfmac.r.s fa1, ft0, ft5
    vfmac.r.s fa2, ft0, ft5
    vfmac.r.s fa3, ft0, ft5
    vfmac.r.s fa0, ft0, ft6
    vfmac.r.s fa1, ft0, ft6
    vfmac.r.s fa2, ft0, ft6
    vfmac.r.s fa3, ft0, ft6
    vfmac.r.s fa0, ft0, ft7
    vfmac.r.s fa1, ft0, ft7
    vfmac.r.s fa2, ft0, ft7
    vfmac.r.s fa3, ft0, ft7
    vfmac.r.s fa0, ft0, ft8
    vfmac.r.s fa1, ft0, ft8
    vfmac.r.s fa2, ft0, ft8
    vfmac.r.s fa3, ft0, ft8
    vfmac.r.s fa0, ft0, ft9
    vfmac.r.s fa1, ft0, ft9
    vfmac.r.s fa2, ft0, ft9
    vfmac.r.s fa3, ft0, ft9
    vfmac.r.s fa0, ft0, ft10
    vfmac.r.s fa1, ft0, ft10
    vfmac.r.s fa2, ft0, ft10
    vfmac.r.s fa3, ft0, ft10
    vfmac.r.s fa0, ft0, ft11
    vfmac.r.s fa1, ft0, ft11
    vfmac.r.s fa2, ft0, ft11
    vfmac.r.s fa3, ft0, ft11
    fmv.d ft1, fa0
    fmv.d ft1, fa1
    fmv.d ft1, fa2
    fmv.d ft1, fa3
    addi a0, a0, 64
    bne a0, a1, .Lmatmul_loop1
    csrrci zero, 1984, 1
.Lmatmul_written2:
    scfgr a0, a7
    bge a0, zero, .Lmatmul_written2
    ret
