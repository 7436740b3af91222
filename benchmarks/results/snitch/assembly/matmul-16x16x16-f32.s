# kernel: matmul:16x16x16 f32
# strategy: heuristic
# machine: snitch
# cycles: 2652
# cycles_of_pdojo_snitch: 2652
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]=out'
.text
.globl matmul
.p2align 2
matmul:
    li a3, 127
    li a4, 8
    li a5, 15
    li a6, -1016
    fcvt.d.w ft10, zero
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
    flw ft3, 0(a0)
    fmv.d ft11, ft10
    fmv.d fa0, ft10
    fmv.d ft5, ft10
    vfmac.r.s ft11, ft0, ft3
    fmv.d ft6, ft10
    vfmac.r.s fa0, ft0, ft3
    fmv.d ft7, ft10
    vfmac.r.s ft5, ft0, ft3
    flw ft4, 4(a0)
    fmv.d ft8, ft10
    vfmac.r.s ft6, ft0, ft3
    fmv.d ft9, ft10
    vfmac.r.s ft7, ft0, ft3
    fmv.d fa1, ft10
    vfmac.r.s ft8, ft0, ft3
    vfmac.r.s ft9, ft0, ft3
    vfmac.r.s fa1, ft0, ft3
    vfmac.r.s ft11, ft0, ft4
    vfmac.r.s fa0, ft0, ft4
    vfmac.r.s ft5, ft0, ft4
    flw ft3, 8(a0)
    vfmac.r.s ft6, ft0, ft4
    vfmac.r.s ft7, ft0, ft4
    vfmac.r.s ft8, ft0, ft4
    vfmac.r.s ft9, ft0, ft4
    vfmac.r.s fa1, ft0, ft4
    vfmac.r.s ft11, ft0, ft3
    vfmac.r.s fa0, ft0, ft3
    vfmac.r.s ft5, ft0, ft3
    flw ft4, 12(a0)
    vfmac.r.s ft6, ft0, ft3
    vfmac.r.s ft7, ft0, ft3
    vfmac.r.s ft8, ft0, ft3
    vfmac.r.s ft9, ft0, ft3
    vfmac.r.s fa1, ft0, ft3
    vfmac.r.s ft11, ft0, ft4
    vfmac.r.s fa0, ft0, ft4
    vfmac.r.s ft5, ft0, ft4
    flw ft3, 16(a0)
    vfmac.r.s ft6, ft0, ft4
    vfmac.r.s ft7, ft0, ft4
    vfmac.r.s ft8, ft0, ft4
    vfmac.r.s ft9, ft0, ft4
    vfmac.r.s fa1, ft0, ft4
    vfmac.r.s ft11, ft0, ft3
    vfmac.r.s fa0, ft0, ft3
    vfmac.r.s ft5, ft0, ft3
    flw ft4, 20(a0)
    vfmac.r.s ft6, ft0, ft3
    vfmac.r.s ft7, ft0, ft3
    vfmac.r.s ft8, ft0, ft3
    vfmac.r.s ft9, ft0, ft3
    vfmac.r.s fa1, ft0, ft3
    vfmac.r.s ft11, ft0, ft4
    vfmac.r.s fa0, ft0, ft4
    vfmac.r.s ft5, ft0, ft4
    flw ft3, 24(a0)
    vfmac.r.s ft6, ft0, ft4
    vfmac.r.s ft7, ft0, ft4
    vfmac.r.s ft8, ft0, ft4
    vfmac.r.s ft9, ft0, ft4
    vfmac.r.s fa1, ft0, ft4
    vfmac.r.s ft11, ft0, ft3
    vfmac.r.s fa0, ft0, ft3
    vfmac.r.s ft5, ft0, ft3
    flw ft4, 28(a0)
    vfmac.r.s ft6, ft0, ft3
    vfmac.r.s ft7, ft0, ft3
    vfmac.r.s ft8, ft0, ft3
    vfmac.r.s ft9, ft0, ft3
    vfmac.r.s fa1, ft0, ft3
    vfmac.r.s ft11, ft0, ft4
    vfmac.r.s fa0, ft0, ft4
    vfmac.r.s ft5, ft0, ft4
    flw ft3, 32(a0)
    vfmac.r.s ft6, ft0, ft4
    vfmac.r.s ft7, ft0, ft4
    vfmac.r.s ft8, ft0, ft4
    vfmac.r.s ft9, ft0, ft4
    vfmac.r.s fa1, ft0, ft4
    vfmac.r.s ft11, ft0, ft3
    vfmac.r.s fa0, ft0, ft3
    vfmac.r.s ft5, ft0, ft3
    flw ft4, 36(a0)
    vfmac.r.s ft6, ft0, ft3
    vfmac.r.s ft7, ft0, ft3
    vfmac.r.s ft8, ft0, ft3
    vfmac.r.s ft9, ft0, ft3
    vfmac.r.s fa1, ft0, ft3
    vfmac.r.s ft11, ft0, ft4
    vfmac.r.s fa0, ft0, ft4
    vfmac.r.s ft5, ft0, ft4
    flw ft3, 40(a0)
    vfmac.r.s ft6, ft0, ft4
    vfmac.r.s ft7, ft0, ft4
    vfmac.r.s ft8, ft0, ft4
    vfmac.r.s ft9, ft0, ft4
    vfmac.r.s fa1, ft0, ft4
    vfmac.r.s ft11, ft0, ft3
    vfmac.r.s fa0, ft0, ft3
    vfmac.r.s ft5, ft0, ft3
    flw ft4, 44(a0)
    vfmac.r.s ft6, ft0, ft3
    vfmac.r.s ft7, ft0, ft3
    vfmac.r.s ft8, ft0, ft3
    vfmac.r.s ft9, ft0, ft3
    vfmac.r.s fa1, ft0, ft3
    vfmac.r.s ft11, ft0, ft4
    vfmac.r.s fa0, ft0, ft4
    vfmac.r.s ft5, ft0, ft4
    flw ft3, 48(a0)
    vfmac.r.s ft6, ft0, ft4
    vfmac.r.s ft7, ft0, ft4
    vfmac.r.s ft8, ft0, ft4
    vfmac.r.s ft9, ft0, ft4
    vfmac.r.s fa1, ft0, ft4
    vfmac.r.s ft11, ft0, ft3
    vfmac.r.s fa0, ft0, ft3
    vfmac.r.s ft5, ft0, ft3
    flw ft4, 52(a0)
    vfmac.r.s ft6, ft0, ft3
    vfmac.r.s ft7, ft0, ft3
    vfmac.r.s ft8, ft0, ft3
    vfmac.r.s ft9, ft0, ft3
    vfmac.r.s fa1, ft0, ft3
    vfmac.r.s ft11, ft0, ft4
    vfmac.r.s fa0, ft0, ft4
    vfmac.r.s ft5, ft0, ft4
    flw ft3, 56(a0)
    vfmac.r.s ft6, ft0, ft4
    vfmac.r.s ft7, ft0, ft4
    vfmac.r.s ft8, ft0, ft4
    vfmac.r.s ft9, ft0, ft4
    vfmac.r.s fa1, ft0, ft4
    vfmac.r.s ft11, ft0, ft3
    vfmac.r.s fa0, ft0, ft3
    vfmac.r.s ft5, ft0, ft3
    flw ft4, 60(a0)
    vfmac.r.s ft6, ft0, ft3
    vfmac.r.s ft7, ft0, ft3
    vfmac.r.s ft8, ft0, ft3
    vfmac.r.s ft9, ft0, ft3
    vfmac.r.s fa1, ft0, ft3
    vfmac.r.s ft11, ft0, ft4
    vfmac.r.s fa0, ft0, ft4
    vfmac.r.s ft5, ft0, ft4
    vfmac.r.s ft6, ft0, ft4
    vfmac.r.s ft7, ft0, ft4
    vfmac.r.s ft8, ft0, ft4
    vfmac.r.s ft9, ft0, ft4
    vfmac.r.s fa1, ft0, ft4
    fmv.d ft1, ft11
    fmv.d ft1, fa0
    fmv.d ft1, ft5
    fmv.d ft1, ft6
    fmv.d ft1, ft7
    fmv.d ft1, ft8
    fmv.d ft1, ft9
    fmv.d ft1, fa1
    addi a0, a0, 64
    bne a0, a1, .Lmatmul_loop1
    csrrci zero, 1984, 1
.Lmatmul_written2:
    scfgr a0, a7
    bge a0, zero, .Lmatmul_written2
    ret
