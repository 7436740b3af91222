# kernel: matmul:8x8x8 f32
# strategy: heuristic
# machine: snitch
# cycles: 2151
# cycles_of_pdojo_snitch: 2151
# arguments, in a0 and so on:
#   --arg 'f32[8,8]'
#   --arg 'f32[8,8]'
#   --arg 'f32[8,8]=out'
.text
.globl matmul
.p2align 2
matmul:
    li a3, 3
    li a4, 1
    li a5, 32
    li a6, 7
    li a7, -216
    li t0, -248
    li t1, -88
    li t2, 8
    fcvt.d.w ft3, zero
    scfgwi a3, 127
    scfgwi a4, 159
    scfgwi a5, 223
    scfgwi a3, 32
    scfgwi a6, 64
    scfgwi a7, 224
    scfgwi t0, 256
    scfgwi a1, 832
    scfgwi zero, 33
    scfgwi a3, 65
    scfgwi t1, 225
    scfgwi t2, 257
    scfgwi a2, 961
    csrrsi zero, 1984, 1
    addi a1, a0, 256
.Lmatmul_loop3:
    li a2, 4
.Lmatmul_loop2:
    fmv.d ft4, ft3
    fmv.d ft5, ft3
    fmv.d ft6, ft3
    fmv.d ft7, ft3
    addi a3, a0, 32
.Lmatmul_loop1:
    flw ft8, 0(a0)
    vfcpka.s.s ft8, ft8, ft8
    vfmac.s ft4, ft8, ft0
    flw ft8, 32(a0)
    vfcpka.s.s ft8, ft8, ft8
    vfmac.s ft5, ft8, ft0
    flw ft8, 64(a0)
    vfcpka.s.s ft8, ft8, ft8
    vfmac.s ft6, ft8, ft0
    flw ft8, 96(a0)
    vfcpka.s.s ft8, ft8, ft8
    vfmac.s ft7, ft8, ft0
    addi a0, a0, 4
    bne a0, a3, .Lmatmul_loop1
    fmv.d ft1, ft4
    fmv.d ft1, ft5
    fmv.d ft1, ft6
    fmv.d ft1, ft7
    addi a0, a0, -32
    addi a2, a2, -1
    bne a2, zero, .Lmatmul_loop2
    addi a0, a0, 128
    bne a0, a1, .Lmatmul_loop3
    csrrci zero, 1984, 1
.Lmatmul_written4:
    scfgr a0, a4
    bge a0, zero, .Lmatmul_written4
    ret
