# kernel: batchnorm_folded:16x16 f64
# strategy: heuristic
# machine: snitch
# cycles: 301
# cycles_of_pdojo_snitch: 301
# arguments, in a0 and so on:
#   --arg 'f64[16,16]'
#   --arg 'f64[16]'
#   --arg 'f64[16]'
#   --arg 'f64[16,16]=out'
.text
.globl batchnorm_folded
.p2align 2
batchnorm_folded:
    fld ft3, 0(a1)
    fld ft4, 8(a1)
    fld ft5, 16(a1)
    fld ft6, 24(a1)
    fld ft7, 32(a1)
    fld ft8, 40(a1)
    fld ft9, 48(a1)
    fld ft10, 56(a1)
    fld ft11, 64(a1)
    fld fa0, 72(a1)
    fld fa1, 80(a1)
    fld fa2, 88(a1)
    fld fa3, 96(a1)
    fld fa4, 104(a1)
    fld fa5, 112(a1)
    fld fa6, 120(a1)
    li a1, 8
    li a4, 255
    li a5, 15
    li a6, -120
    scfgwi zero, 63
    scfgwi a1, 223
    scfgwi a4, 65
    scfgwi a0, 769
    scfgwi a5, 66
    scfgwi a5, 98
    scfgwi a6, 226
    scfgwi a2, 802
    scfgwi a4, 64
    scfgwi a3, 896
    csrrsi zero, 1984, 1
    frep.o a5, 16, 0, 0
    fmadd.d ft0, ft1, ft3, ft2
    fmadd.d ft0, ft1, ft4, ft2
    fmadd.d ft0, ft1, ft5, ft2
    fmadd.d ft0, ft1, ft6, ft2
    fmadd.d ft0, ft1, ft7, ft2
    fmadd.d ft0, ft1, ft8, ft2
    fmadd.d ft0, ft1, ft9, ft2
    fmadd.d ft0, ft1, ft10, ft2
    fmadd.d ft0, ft1, ft11, ft2
    fmadd.d ft0, ft1, fa0, ft2
    fmadd.d ft0, ft1, fa1, ft2
    fmadd.d ft0, ft1, fa2, ft2
    fmadd.d ft0, ft1, fa3, ft2
    fmadd.d ft0, ft1, fa4, ft2
    fmadd.d ft0, ft1, fa5, ft2
    fmadd.d ft0, ft1, fa6, ft2
    csrrci zero, 1984, 1
.Lbatchnorm_folded_written1:
    scfgr a0, zero
    bge a0, zero, .Lbatchnorm_folded_written1
    ret
