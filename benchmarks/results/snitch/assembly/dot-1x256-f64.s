# kernel: dot:1x256 f64
# strategy: heuristic
# machine: snitch
# cycles: 316
# cycles_of_pdojo_snitch: 316
# arguments, in a0 and so on:
#   --arg 'f64[1,256]'
#   --arg 'f64[1,256]'
#   --arg 'f64[1]=out'
.text
.globl dot
.p2align 2
dot:
    fcvt.d.w ft3, zero
    scfgwi zero, 32
    scfgwi zero, 64
    scfgwi zero, 192
    scfgwi a2, 896
    csrrsi zero, 1984, 1
    frep.o zero, 1, 0, 0
    fmv.d ft0, ft3
    csrrci zero, 1984, 1
.Ldot_written1:
    scfgr a3, zero
    bge a3, zero, .Ldot_written1
    fcvt.d.w ft3, zero
    fmv.d ft4, ft3
    fmv.d ft5, ft3
    fmv.d ft6, ft3
    li a3, 255
    li a4, 8
    li a5, 63
    scfgwi zero, 63
    scfgwi a3, 95
    scfgwi a4, 223
    scfgwi a0, 768
    scfgwi a1, 769
    csrrsi zero, 1984, 1
    frep.o a5, 4, 0, 0
    fmadd.d ft3, ft0, ft1, ft3
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    csrrci zero, 1984, 1
    fld ft7, 0(a2)
    fadd.d ft7, ft7, ft3
    fadd.d ft7, ft7, ft4
    fadd.d ft7, ft7, ft5
    fadd.d ft7, ft7, ft6
    fsd ft7, 0(a2)
    ret
