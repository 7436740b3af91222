# kernel: batchnorm_folded:16x16 f32
# strategy: heuristic
# machine: snitch
# cycles: 1288
# cycles_of_pdojo_snitch: 1288
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
    fld ft3, 0(a0)
    fld ft4, 0(a5)
    fld ft5, 0(a6)
    vfmac.s ft5, ft3, ft4
    fsd ft5, 0(a3)
    fld ft3, 64(a0)
    fld ft4, 0(a5)
    fld ft5, 0(a6)
    vfmac.s ft5, ft3, ft4
    fsd ft5, 64(a3)
    fld ft3, 128(a0)
    fld ft4, 0(a5)
    fld ft5, 0(a6)
    vfmac.s ft5, ft3, ft4
    fsd ft5, 128(a3)
    fld ft3, 192(a0)
    fld ft4, 0(a5)
    fld ft5, 0(a6)
    vfmac.s ft5, ft3, ft4
    fsd ft5, 192(a3)
    addi a0, a0, 8
    addi a5, a5, 8
    addi a6, a6, 8
    addi a3, a3, 8
    bne a0, a7, .Lbatchnorm_folded_loop1
    addi a0, a0, 192
    addi a3, a3, 192
    bne a0, a4, .Lbatchnorm_folded_loop2
    ret
