# kernel: batchnorm_folded:16x16 f32
# strategy: heuristic
# machine: snitch
# cycles: 826
# cycles_of_pdojo_snitch: 826
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16]'
#   --arg 'f32[16]'
#   --arg 'f32[16,16]=out'
.text
.globl batchnorm_folded
.p2align 2
batchnorm_folded:
    addi a4, a0, 1024
.Lbatchnorm_folded_loop2:
    mv a5, a1
    mv a6, a2
    addi a7, a0, 64
.Lbatchnorm_folded_loop1:
    fld ft3, 0(a6)
    fld ft4, 0(a6)
    fld ft5, 0(a6)
    fld ft6, 0(a6)
    fld ft7, 0(a0)
    fld ft8, 0(a5)
    fld ft9, 64(a0)
    fld ft10, 0(a5)
    fld ft11, 128(a0)
    fld fa0, 0(a5)
    fld fa1, 192(a0)
    fld fa2, 0(a5)
    vfmac.s ft3, ft7, ft8
    vfmac.s ft4, ft9, ft10
    vfmac.s ft5, ft11, fa0
    vfmac.s ft6, fa1, fa2
    fsd ft3, 0(a3)
    fsd ft4, 64(a3)
    fsd ft5, 128(a3)
    fsd ft6, 192(a3)
    addi a0, a0, 8
    addi a5, a5, 8
    addi a6, a6, 8
    addi a3, a3, 8
    bne a0, a7, .Lbatchnorm_folded_loop1
    addi a0, a0, 192
    addi a3, a3, 192
    bne a0, a4, .Lbatchnorm_folded_loop2
    ret
