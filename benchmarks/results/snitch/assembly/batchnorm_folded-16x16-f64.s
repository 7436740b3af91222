# kernel: batchnorm_folded:16x16 f64
# strategy: transformed
# machine: snitch
# cycles: 349
# cycles_of_pdojo_snitch: 352
# arguments, in a0 and so on:
#   --arg 'f64[16,16]'
#   --arg 'f64[16]'
#   --arg 'f64[16]'
#   --arg 'f64[16,16]=out'
.text
.globl batchnorm_folded
.p2align 2
batchnorm_folded:
    addi sp, sp, -16
    li a4, 15
    li a5, 128
    li a6, -1912
    scfgwi zero, 63
    scfgwi a4, 95
    scfgwi a4, 127
    scfgwi a5, 223
    scfgwi a6, 255
    scfgwi a0, 801
    scfgwi a3, 928
    csrrsi zero, 1984, 1
    addi a0, a1, 128
.Lbatchnorm_folded_loop1:
    fld ft3, 0(a1)
    fld ft4, 8(a1)
    fld ft5, 16(a1)
    fld ft6, 24(a1)
    fld ft7, 0(a2)
    fld ft8, 8(a2)
    fld ft9, 16(a2)
    fld ft10, 24(a2)
    frep.o a4, 1, 0, 0
    fmadd.d ft0, ft1, ft3, ft7
    frep.o a4, 1, 0, 0
    fmadd.d ft0, ft1, ft4, ft8
    frep.o a4, 1, 0, 0
    fmadd.d ft0, ft1, ft5, ft9
    frep.o a4, 1, 0, 0
    fmadd.d ft0, ft1, ft6, ft10
    addi a1, a1, 32
    addi a2, a2, 32
    bne a1, a0, .Lbatchnorm_folded_loop1
    csrrci zero, 1984, 1
.Lbatchnorm_folded_written2:
    scfgr a0, zero
    bge a0, zero, .Lbatchnorm_folded_written2
    addi sp, sp, 16
    ret
