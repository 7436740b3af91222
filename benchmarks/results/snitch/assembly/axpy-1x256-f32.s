# kernel: axpy:1x256 f32
# strategy: heuristic
# machine: snitch
# cycles: 282
# cycles_of_pdojo_snitch: 282
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
    li a5, 31
    li a6, 1
    scfgwi zero, 63
    scfgwi a0, 95
    scfgwi a4, 223
    scfgwi a1, 768
    scfgwi a2, 770
    scfgwi a3, 897
    csrrsi zero, 1984, 1
    frep.o a5, 8, 0, 0
    vfmul.r.s ft4, ft0, ft3
    vfmul.r.s ft5, ft0, ft3
    vfmul.r.s ft6, ft0, ft3
    vfmul.r.s ft7, ft0, ft3
    vfadd.s ft1, ft4, ft2
    vfadd.s ft1, ft5, ft2
    vfadd.s ft1, ft6, ft2
    vfadd.s ft1, ft7, ft2
    csrrci zero, 1984, 1
.Laxpy_written1:
    scfgr a0, a6
    bge a0, zero, .Laxpy_written1
    ret
