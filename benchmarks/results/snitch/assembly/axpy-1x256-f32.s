# kernel: axpy:1x256 f32
# strategy: heuristic
# machine: snitch
# cycles: 537
# cycles_of_pdojo_snitch: 537
# arguments, in a0 and so on:
#   --arg 'f32[1]'
#   --arg 'f32[1,256]'
#   --arg 'f32[1,256]'
#   --arg 'f32[1,256]=out'
.text
.globl axpy
.p2align 2
axpy:
    flw ft3, 0(a0)
    li a0, 127
    li a4, 8
    scfgwi zero, 63
    scfgwi a0, 95
    scfgwi a4, 223
    scfgwi a1, 769
    scfgwi a2, 770
    scfgwi a3, 896
    csrrsi zero, 1984, 1
    li a0, 32
.Laxpy_loop1:
    vfcpka.s.s ft4, ft3, ft3
    fmv.d ft5, ft2
    fmv.d ft6, ft2
    vfmac.s ft5, ft4, ft1
    fmv.d ft7, ft2
    vfmac.s ft6, ft4, ft1
    fmv.d ft8, ft2
    vfmac.s ft7, ft4, ft1
    vfmac.s ft8, ft4, ft1
    fmv.d ft0, ft5
    fmv.d ft0, ft6
    fmv.d ft0, ft7
    fmv.d ft0, ft8
    addi a0, a0, -1
    bne a0, zero, .Laxpy_loop1
    csrrci zero, 1984, 1
.Laxpy_written2:
    scfgr a0, zero
    bge a0, zero, .Laxpy_written2
    ret
