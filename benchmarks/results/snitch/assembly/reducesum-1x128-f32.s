# kernel: reducesum:1x128 f32
# strategy: heuristic
# machine: snitch
# cycles: 99
# cycles_of_pdojo_snitch: 99
# arguments, in a0 and so on:
#   --arg 'f32[1,128]'
#   --arg 'f32[1]=out'
.text
.globl reducesum
.p2align 2
reducesum:
    li a2, 63
    li a3, 8
    fmv.w.x ft3, zero
    fcvt.d.w ft4, zero
    li a4, 15
    scfgwi zero, 32
    scfgwi a2, 64
    scfgwi a3, 192
    scfgwi a0, 768
    csrrsi zero, 1984, 1
    fmv.d ft5, ft4
    fmv.d ft6, ft4
    fmv.d ft7, ft4
    frep.o a4, 4, 0, 0
    vfadd.s ft4, ft4, ft0
    vfadd.s ft5, ft5, ft0
    vfadd.s ft6, ft6, ft0
    vfadd.s ft7, ft7, ft0
    vfsum.s ft3, ft4
    vfsum.s ft3, ft5
    vfsum.s ft3, ft6
    vfsum.s ft3, ft7
    csrrci zero, 1984, 1
    fsw ft3, 0(a1)
    ret
