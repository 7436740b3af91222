# kernel: matmul:16x16x16 f32
# strategy: transformed
# machine: snitch
# cycles: 3006
# cycles_of_pdojo_snitch: 3006
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]=out'
.text
.globl matmul
.p2align 2
matmul:
    addi sp, sp, -16
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
.Lmatmul_loop2:
    fmv.d ft4, ft3
    fmv.d ft5, ft3
    fmv.d ft6, ft3
    fmv.d ft7, ft3
    fmv.d ft8, ft3
    fmv.d ft9, ft3
    fmv.d ft10, ft3
    fmv.d ft11, ft3
    addi a2, a0, 64
.Lmatmul_loop1:
    flw fa0, 0(a0)
    flw fa1, 4(a0)
    flw fa2, 8(a0)
    vfcpka.s.s fa0, fa0, fa0
    vfcpka.s.s fa1, fa1, fa1
    vfcpka.s.s fa2, fa2, fa2
    vfmac.s ft4, fa0, ft0
    vfmac.s ft5, fa0, ft0
    vfmac.s ft6, fa0, ft0
    vfmac.s ft7, fa0, ft0
    vfmac.s ft8, fa0, ft0
    vfmac.s ft9, fa0, ft0
    vfmac.s ft10, fa0, ft0
    vfmac.s ft11, fa0, ft0
    vfmac.s ft4, fa1, ft0
    vfmac.s ft5, fa1, ft0
    vfmac.s ft6, fa1, ft0
    vfmac.s ft7, fa1, ft0
    vfmac.s ft8, fa1, ft0
    vfmac.s ft9, fa1, ft0
    vfmac.s ft10, fa1, ft0
    vfmac.s ft11, fa1, ft0
    vfmac.s ft4, fa2, ft0
    vfmac.s ft5, fa2, ft0
    vfmac.s ft6, fa2, ft0
    flw fa0, 12(a0)
    vfmac.s ft7, fa2, ft0
    vfmac.s ft8, fa2, ft0
    vfmac.s ft9, fa2, ft0
    vfcpka.s.s fa0, fa0, fa0
    vfmac.s ft10, fa2, ft0
    vfmac.s ft11, fa2, ft0
    vfmac.s ft4, fa0, ft0
    vfmac.s ft5, fa0, ft0
    vfmac.s ft6, fa0, ft0
    vfmac.s ft7, fa0, ft0
    vfmac.s ft8, fa0, ft0
    vfmac.s ft9, fa0, ft0
    vfmac.s ft10, fa0, ft0
    vfmac.s ft11, fa0, ft0
    addi a0, a0, 16
    bne a0, a2, .Lmatmul_loop1
    fmv.d ft1, ft4
    fmv.d ft1, ft5
    fmv.d ft1, ft6
    fmv.d ft1, ft7
    fmv.d ft1, ft8
    fmv.d ft1, ft9
    fmv.d ft1, ft10
    fmv.d ft1, ft11
    bne a0, a1, .Lmatmul_loop2
    csrrci zero, 1984, 1
.Lmatmul_written3:
    scfgr a0, a7
    bge a0, zero, .Lmatmul_written3
    addi sp, sp, 16
    ret
