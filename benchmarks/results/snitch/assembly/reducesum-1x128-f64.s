# kernel: reducesum:1x128 f64
# strategy: heuristic
# machine: snitch
# cycles: 187
# cycles_of_pdojo_snitch: 187
# arguments, in a0 and so on:
#   --arg 'f64[1,128]'
#   --arg 'f64[1]=out'
.text
.globl reducesum
.p2align 2
reducesum:
    fcvt.d.w ft3, zero
    scfgwi zero, 32
    scfgwi zero, 64
    scfgwi zero, 192
    scfgwi a1, 896
    csrrsi zero, 1984, 1
    frep.o zero, 1, 0, 0
    fmv.d ft0, ft3
    csrrci zero, 1984, 1
.Lreducesum_written1:
    scfgr a2, zero
    bge a2, zero, .Lreducesum_written1
    fcvt.d.w ft3, zero
    fmv.d ft4, ft3
    fmv.d ft5, ft3
    fmv.d ft6, ft3
    li a2, 127
    li a3, 8
    li a4, 31
    scfgwi zero, 32
    scfgwi a2, 64
    scfgwi a3, 192
    scfgwi a0, 768
    csrrsi zero, 1984, 1
    frep.o a4, 4, 0, 0
    fadd.d ft3, ft3, ft0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    csrrci zero, 1984, 1
    fld ft7, 0(a1)
    fadd.d ft7, ft7, ft3
    fadd.d ft7, ft7, ft4
    fadd.d ft7, ft7, ft5
    fadd.d ft7, ft7, ft6
    fsd ft7, 0(a1)
    ret
