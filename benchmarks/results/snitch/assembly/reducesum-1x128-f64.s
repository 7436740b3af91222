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
    li a2, 8
    li a3, 3
    li a4, 123
    fcvt.d.w ft3, zero
    li a5, 30
    scfgwi zero, 63
    scfgwi a2, 223
    scfgwi a3, 64
    scfgwi a0, 768
    scfgwi a4, 65
    addi a0, a0, 32
    scfgwi a0, 769
    csrrsi zero, 1984, 1
    fadd.d ft4, ft3, ft0
    fadd.d ft5, ft3, ft0
    fadd.d ft6, ft3, ft0
    fadd.d ft7, ft3, ft0
    frep.o a5, 4, 0, 0
    fadd.d ft4, ft4, ft1
    fadd.d ft5, ft5, ft1
    fadd.d ft6, ft6, ft1
    fadd.d ft7, ft7, ft1
    fadd.d ft3, ft3, ft4
    fadd.d ft3, ft3, ft5
    fadd.d ft3, ft3, ft6
    fadd.d ft3, ft3, ft7
    csrrci zero, 1984, 1
    fsd ft3, 0(a1)
    ret
