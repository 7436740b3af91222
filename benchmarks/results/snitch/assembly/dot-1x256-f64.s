# kernel: dot:1x256 f64
# strategy: heuristic
# machine: snitch
# cycles: 288
# cycles_of_pdojo_snitch: 288
# arguments, in a0 and so on:
#   --arg 'f64[1,256]'
#   --arg 'f64[1,256]'
#   --arg 'f64[1]=out'
.text
.globl dot
.p2align 2
dot:
    li a3, 255
    li a4, 8
    fcvt.d.w ft3, zero
    li a5, 62
    scfgwi zero, 63
    scfgwi a3, 95
    scfgwi a4, 223
    scfgwi a0, 768
    scfgwi a1, 769
    csrrsi zero, 1984, 1
    fmadd.d ft4, ft0, ft1, ft3
    fmadd.d ft5, ft0, ft1, ft3
    fmadd.d ft6, ft0, ft1, ft3
    fmadd.d ft7, ft0, ft1, ft3
    frep.o a5, 4, 0, 0
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fadd.d ft3, ft3, ft4
    fadd.d ft3, ft3, ft5
    fadd.d ft3, ft3, ft6
    fadd.d ft3, ft3, ft7
    csrrci zero, 1984, 1
    fsd ft3, 0(a2)
    ret
