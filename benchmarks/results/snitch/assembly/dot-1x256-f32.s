# kernel: dot:1x256 f32
# strategy: heuristic
# machine: snitch
# cycles: 164
# cycles_of_pdojo_snitch: 164
# arguments, in a0 and so on:
#   --arg 'f32[1,256]'
#   --arg 'f32[1,256]'
#   --arg 'f32[1]=out'
.text
.globl dot
.p2align 2
dot:
    li a3, 127
    li a4, 8
    fmv.w.x ft3, zero
    fcvt.d.w ft4, zero
    li a5, 31
    scfgwi zero, 63
    scfgwi a3, 95
    scfgwi a4, 223
    scfgwi a0, 768
    scfgwi a1, 769
    csrrsi zero, 1984, 1
    fmv.d ft5, ft4
    fmv.d ft6, ft4
    fmv.d ft7, ft4
    frep.o a5, 4, 0, 0
    vfmac.s ft4, ft0, ft1
    vfmac.s ft5, ft0, ft1
    vfmac.s ft6, ft0, ft1
    vfmac.s ft7, ft0, ft1
    vfsum.s ft3, ft4
    vfsum.s ft3, ft5
    vfsum.s ft3, ft6
    vfsum.s ft3, ft7
    csrrci zero, 1984, 1
    fsw ft3, 0(a2)
    ret
