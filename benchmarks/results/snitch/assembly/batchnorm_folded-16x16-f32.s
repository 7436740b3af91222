# kernel: batchnorm_folded:16x16 f32
# strategy: heuristic
# machine: snitch
# cycles: 295
# cycles_of_pdojo_snitch: 295
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16]'
#   --arg 'f32[16]'
#   --arg 'f32[16,16]=out'
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
    li a1, 8
    li a4, 127
    li a5, 7
    li a6, 15
    li a7, -56
    li t0, 1
    scfgwi zero, 63
    scfgwi a1, 223
    scfgwi a4, 64
    scfgwi a0, 768
    scfgwi a5, 66
    scfgwi a6, 98
    scfgwi a7, 226
    scfgwi a2, 802
    scfgwi a4, 65
    scfgwi a3, 897
    csrrsi zero, 1984, 1
    frep.o a6, 16, 0, 0
    vfmul.s ft11, ft0, ft3
    vfmul.s fa0, ft0, ft4
    vfmul.s fa1, ft0, ft5
    vfmul.s fa2, ft0, ft6
    vfmul.s fa3, ft0, ft7
    vfmul.s fa4, ft0, ft8
    vfmul.s fa5, ft0, ft9
    vfmul.s fa6, ft0, ft10
    vfadd.s ft1, ft11, ft2
    vfadd.s ft1, fa0, ft2
    vfadd.s ft1, fa1, ft2
    vfadd.s ft1, fa2, ft2
    vfadd.s ft1, fa3, ft2
    vfadd.s ft1, fa4, ft2
    vfadd.s ft1, fa5, ft2
    vfadd.s ft1, fa6, ft2
    csrrci zero, 1984, 1
.Lbatchnorm_folded_written1:
    scfgr a0, t0
    bge a0, zero, .Lbatchnorm_folded_written1
    ret
