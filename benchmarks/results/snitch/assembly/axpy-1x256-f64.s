# kernel: axpy:1x256 f64
# strategy: greedy
# machine: snitch
# cycles: 280
# cycles_of_pdojo_snitch: 280
# arguments, in a0 and so on:
#   --arg 'f64[1]'
#   --arg 'f64[1,256]'
#   --arg 'f64[1,256]'
#   --arg 'f64[1,256]=out'
.text
.globl axpy
.p2align 2
axpy:
    fld ft3, 0(a0)
    li a0, 255
    li a4, 8
    scfgwi zero, 63
    scfgwi a0, 95
    scfgwi a4, 223
    scfgwi a1, 769
    scfgwi a2, 770
    scfgwi a3, 896
    csrrsi zero, 1984, 1
    frep.o a0, 1, 0, 0
    fmadd.d ft0, ft3, ft1, ft2
    csrrci zero, 1984, 1
.Laxpy_written1:
    scfgr a0, zero
    bge a0, zero, .Laxpy_written1
    ret
