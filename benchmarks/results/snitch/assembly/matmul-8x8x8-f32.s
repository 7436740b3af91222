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
    fmv.d ft5, ft3
    flw ft6, 4(a0)
    fmv.d ft7, ft3
    fmv.d ft8, ft3
    vfmac.r.s ft5, ft0, ft4
    fmv.d ft9, ft3
    vfmac.r.s ft7, ft0, ft4
    vfmac.r.s ft8, ft0, ft4
    flw ft10, 8(a0)
    vfmac.r.s ft9, ft0, ft4
    vfmac.r.s ft5, ft0, ft6
    vfmac.r.s ft7, ft0, ft6
    vfmac.r.s ft8, ft0, ft6
    flw ft4, 12(a0)
    vfmac.r.s ft9, ft0, ft6
    vfmac.r.s ft5, ft0, ft10
    vfmac.r.s ft7, ft0, ft10
    vfmac.r.s ft8, ft0, ft10
    flw ft6, 16(a0)
    vfmac.r.s ft9, ft0, ft10
    vfmac.r.s ft5, ft0, ft4
    vfmac.r.s ft7, ft0, ft4
    vfmac.r.s ft8, ft0, ft4
    flw ft10, 20(a0)
    vfmac.r.s ft9, ft0, ft4
    vfmac.r.s ft5, ft0, ft6
    vfmac.r.s ft7, ft0, ft6
    vfmac.r.s ft8, ft0, ft6
    flw ft4, 24(a0)
    vfmac.r.s ft9, ft0, ft6
    vfmac.r.s ft5, ft0, ft10
    vfmac.r.s ft7, ft0, ft10
    vfmac.r.s ft8, ft0, ft10
    flw ft6, 28(a0)
    vfmac.r.s ft9, ft0, ft10
    vfmac.r.s ft5, ft0, ft4
    vfmac.r.s ft7, ft0, ft4
    vfmac.r.s ft8, ft0, ft4
    vfmac.r.s ft9, ft0, ft4
    vfmac.r.s ft5, ft0, ft6
    vfmac.r.s ft7, ft0, ft6
    vfmac.r.s ft8, ft0, ft6
    vfmac.r.s ft9, ft0, ft6
    fmv.d ft1, ft5
    fmv.d ft1, ft7
    fmv.d ft1, ft8
    fmv.d ft1, ft9
    addi a0, a0, 32
    bne a0, a1, .Lmatmul_loop1
    csrrci zero, 1984, 1
.Lmatmul_written2:
    scfgr a0, a7
    bge a0, zero, .Lmatmul_written2
    ret
