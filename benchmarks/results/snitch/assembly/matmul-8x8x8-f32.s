# kernel: matmul:8x8x8 f32
# strategy: transformed
# machine: snitch
# cycles: 526
# cycles_of_pdojo_snitch: 526
# arguments, in a0 and so on:
#   --arg 'f32[8,8]'
#   --arg 'f32[8,8]'
#   --arg 'f32[8,8]=out'
.text
.globl matmul
.p2align 2
matmul:
    addi sp, sp, -16
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
.Lmatmul_loop2:
    fmv.d ft4, ft3
    fmv.d ft5, ft3
    fmv.d ft6, ft3
    fmv.d ft7, ft3
    addi a2, a0, 32
.Lmatmul_loop1:
    flw ft8, 0(a0)
    flw ft9, 4(a0)
    flw ft10, 8(a0)
    vfcpka.s.s ft8, ft8, ft8
    vfcpka.s.s ft9, ft9, ft9
    vfcpka.s.s ft10, ft10, ft10
    vfmac.s ft4, ft8, ft0
    vfmac.s ft5, ft8, ft0
    vfmac.s ft6, ft8, ft0
    vfmac.s ft7, ft8, ft0
    vfmac.s ft4, ft9, ft0
    vfmac.s ft5, ft9, ft0
    vfmac.s ft6, ft9, ft0
    flw ft8, 12(a0)
    vfmac.s ft7, ft9, ft0
    vfmac.s ft4, ft10, ft0
    vfmac.s ft5, ft10, ft0
    vfcpka.s.s ft8, ft8, ft8
    vfmac.s ft6, ft10, ft0
    vfmac.s ft7, ft10, ft0
    vfmac.s ft4, ft8, ft0
    vfmac.s ft5, ft8, ft0
    vfmac.s ft6, ft8, ft0
    vfmac.s ft7, ft8, ft0
    addi a0, a0, 16
    bne a0, a2, .Lmatmul_loop1
    fmv.d ft1, ft4
    fmv.d ft1, ft5
    fmv.d ft1, ft6
    fmv.d ft1, ft7
    bne a0, a1, .Lmatmul_loop2
    csrrci zero, 1984, 1
.Lmatmul_written3:
    scfgr a0, a7
    bge a0, zero, .Lmatmul_written3
    addi sp, sp, 16
    ret
