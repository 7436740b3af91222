# kernel: batchnorm_folded:16x16 f64
# strategy: heuristic
# machine: snitch
# cycles: 323
# cycles_of_pdojo_snitch: 323
# arguments, in a0 and so on:
#   --arg 'f64[16,16]'
#   --arg 'f64[16]'
#   --arg 'f64[16]'
#   --arg 'f64[16,16]=out'
.text
.globl batchnorm_folded
.p2align 2
batchnorm_folded:
    li a4, 3
    li a5, 15
    li a6, 8
    li a7, 104
    li t0, -1912
    li t1, -24
    scfgwi zero, 63
    scfgwi a4, 95
    scfgwi a5, 127
    scfgwi a4, 159
    scfgwi a6, 223
    scfgwi a7, 225
    scfgwi t0, 257
    scfgwi a0, 833
    scfgwi t1, 226
    scfgwi a6, 258
    scfgwi a2, 834
    scfgwi a7, 224
    scfgwi t0, 256
    scfgwi a3, 960
    csrrsi zero, 1984, 1
    addi a0, a1, 128
.Lbatchnorm_folded_loop1:
    fld ft3, 0(a1)
    fld ft4, 8(a1)
    fld ft5, 16(a1)
    fld ft6, 24(a1)
    frep.o a5, 4, 0, 0
    fmadd.d ft0, ft1, ft3, ft2
    fmadd.d ft0, ft1, ft4, ft2
    fmadd.d ft0, ft1, ft5, ft2
    fmadd.d ft0, ft1, ft6, ft2
    addi a1, a1, 32
    bne a1, a0, .Lbatchnorm_folded_loop1
    csrrci zero, 1984, 1
.Lbatchnorm_folded_written2:
    scfgr a0, zero
    bge a0, zero, .Lbatchnorm_folded_written2
    ret
