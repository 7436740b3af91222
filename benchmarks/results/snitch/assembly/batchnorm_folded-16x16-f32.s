# kernel: batchnorm_folded:16x16 f32
# strategy: heuristic
# machine: snitch
# cycles: 301
# cycles_of_pdojo_snitch: 301
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16]'
#   --arg 'f32[16]'
#   --arg 'f32[16,16]=out'
.text
.globl batchnorm_folded
.p2align 2
batchnorm_folded:
    li a4, 3
    li a5, 15
    li a6, 1
    li a7, 8
    li t0, 40
    li t1, -952
    li t2, -24
    scfgwi zero, 63
    scfgwi a4, 95
    scfgwi a5, 127
    scfgwi a6, 159
    scfgwi a7, 223
    scfgwi t0, 224
    scfgwi t1, 256
    scfgwi a0, 832
    scfgwi t2, 226
    scfgwi a7, 258
    scfgwi a2, 834
    scfgwi t0, 225
    scfgwi t1, 257
    scfgwi a3, 961
    csrrsi zero, 1984, 1
    addi a0, a1, 64
.Lbatchnorm_folded_loop1:
    fld ft3, 0(a1)
    fld ft4, 8(a1)
    fld ft5, 16(a1)
    fld ft6, 24(a1)
    frep.o a5, 8, 0, 0
    vfmul.s ft7, ft0, ft3
    vfmul.s ft8, ft0, ft4
    vfmul.s ft9, ft0, ft5
    vfmul.s ft10, ft0, ft6
    vfadd.s ft1, ft7, ft2
    vfadd.s ft1, ft8, ft2
    vfadd.s ft1, ft9, ft2
    vfadd.s ft1, ft10, ft2
    addi a1, a1, 32
    bne a1, a0, .Lbatchnorm_folded_loop1
    csrrci zero, 1984, 1
.Lbatchnorm_folded_written2:
    scfgr a0, a6
    bge a0, zero, .Lbatchnorm_folded_written2
    ret
