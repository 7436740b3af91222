# kernel: matmul:16x16x16 f32
# strategy: heuristic
# machine: snitch
# cycles: 16680
# cycles_of_pdojo_snitch: 16680
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]=out'
.text
.globl matmul
.p2align 2
matmul:
    li a3, 7
    li a4, 3
    li a5, 64
    li a6, 15
    li a7, -952
    li t0, -1016
    li t1, -184
    li t2, 8
    fcvt.d.w ft3, zero
    li t3, 1
    scfgwi a3, 127
    scfgwi a4, 159
    scfgwi a5, 223
    scfgwi a4, 32
    scfgwi a6, 64
    scfgwi a7, 224
    scfgwi t0, 256
    scfgwi a1, 832
    scfgwi zero, 33
    scfgwi a4, 65
    scfgwi t1, 225
    scfgwi t2, 257
    scfgwi a2, 961
    csrrsi zero, 1984, 1
    addi a1, a0, 1024
.Lmatmul_loop3:
    li a2, 8
.Lmatmul_loop2:
    fmv.d ft4, ft3
    fmv.d ft5, ft3
    fmv.d ft6, ft3
    fmv.d ft7, ft3
    addi a3, a0, 64
.Lmatmul_loop1:
    flw ft8, 0(a0)
    vfcpka.s.s ft8, ft8, ft8
    vfmac.s ft4, ft8, ft0
    flw ft8, 64(a0)
    vfcpka.s.s ft8, ft8, ft8
    vfmac.s ft5, ft8, ft0
    flw ft8, 128(a0)
    vfcpka.s.s ft8, ft8, ft8
    vfmac.s ft6, ft8, ft0
    flw ft8, 192(a0)
    vfcpka.s.s ft8, ft8, ft8
    vfmac.s ft7, ft8, ft0
    addi a0, a0, 4
    bne a0, a3, .Lmatmul_loop1
    fmv.d ft1, ft4
    fmv.d ft1, ft5
    fmv.d ft1, ft6
    fmv.d ft1, ft7
    addi a0, a0, -64
    addi a2, a2, -1
    bne a2, zero, .Lmatmul_loop2
    addi a0, a0, 256
    bne a0, a1, .Lmatmul_loop3
    csrrci zero, 1984, 1
.Lmatmul_written4:
    scfgr a0, t3
    bge a0, zero, .Lmatmul_written4
    ret
