# kernel: reducesum:1x128 f64
# strategy: heuristic
# machine: snitch
# cycles: 163
# cycles_of_pdojo_snitch: 163
# arguments, in a0 and so on:
#   --arg 'f64[1,128]'
#   --arg 'f64[1]=out'
.text
.globl reducesum
.p2align 2
reducesum:
    li a2, 127
    li a3, 8
    fcvt.d.w ft3, zero
    li a4, 31
    scfgwi zero, 32
    scfgwi a2, 64
    scfgwi a3, 192
    scfgwi a0, 768
    csrrsi zero, 1984, 1
    fmv.d ft4, ft3
    fmv.d ft5, ft3
    fmv.d ft6, ft3
    fmv.d ft7, ft3
    frep.o a4, 4, 0, 0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    fadd.d ft7, ft7, ft0
    fadd.d ft3, ft3, ft4
    fadd.d ft3, ft3, ft5
    fadd.d ft3, ft3, ft6
    fadd.d ft3, ft3, ft7
    csrrci zero, 1984, 1
    fsd ft3, 0(a1)
    ret
