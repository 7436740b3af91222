# kernel: maxpool:1x1x10x10x3,S=1,P=0 f32
# strategy: heuristic
# machine: snitch
# cycles: 968
# cycles_of_pdojo_snitch: 968
# arguments, in a0 and so on:
#   --arg 'f32[1,1,10,10]'
#   --arg 'f32[1,1,8,8]=out'
.text
.globl maxpool
.p2align 2
maxpool:
    li a2, -8388608
    fmv.w.x ft3, a2
    addi a2, a0, 320
.Lmaxpool_loop2:
    addi a3, a0, 32
.Lmaxpool_loop1:
    flw ft4, 0(a0)
    flw ft5, 40(a0)
    flw ft6, 80(a0)
    flw ft7, 120(a0)
    fmv.d ft8, ft3
    fmv.d ft9, ft3
    fmv.d ft10, ft3
    fmv.d ft11, ft3
    flw fa0, 4(a0)
    flw fa1, 44(a0)
    flw fa2, 84(a0)
    flw fa3, 124(a0)
    fmax.s ft8, ft8, ft4
    fmax.s ft9, ft9, ft5
    fmax.s ft10, ft10, ft6
    fmax.s ft11, ft11, ft7
    flw ft4, 8(a0)
    flw fa4, 48(a0)
    flw fa5, 88(a0)
    flw fa6, 128(a0)
    fmax.s ft8, ft8, fa0
    fmax.s ft9, ft9, fa1
    fmax.s ft10, ft10, fa2
    fmax.s ft11, ft11, fa3
    flw fa7, 160(a0)
    fmax.s ft8, ft8, ft4
    fmax.s ft9, ft9, fa4
    fmax.s ft10, ft10, fa5
    fmax.s ft11, ft11, fa6
    flw ft0, 164(a0)
    fmax.s ft8, ft8, ft5
    fmax.s ft9, ft9, ft6
    fmax.s ft10, ft10, ft7
    fmax.s ft11, ft11, fa7
    flw ft5, 168(a0)
    fmax.s ft8, ft8, fa1
    fmax.s ft9, ft9, fa2
    fmax.s ft10, ft10, fa3
    fmax.s ft11, ft11, ft0
    flw ft1, 200(a0)
    fmax.s ft8, ft8, fa4
    fmax.s ft9, ft9, fa5
    fmax.s ft10, ft10, fa6
    fmax.s ft11, ft11, ft5
    flw ft2, 204(a0)
    fmax.s ft8, ft8, ft6
    fmax.s ft9, ft9, ft7
    fmax.s ft10, ft10, fa7
    fmax.s ft11, ft11, ft1
    flw ft6, 208(a0)
    fmax.s ft8, ft8, fa2
    fmax.s ft9, ft9, fa3
    fmax.s ft10, ft10, ft0
    fmax.s ft11, ft11, ft2
    fmax.s ft8, ft8, fa5
    fmax.s ft9, ft9, fa6
    fmax.s ft10, ft10, ft5
    fmax.s ft11, ft11, ft6
    fsw ft8, 0(a1)
    fsw ft9, 32(a1)
    fsw ft10, 64(a1)
    fsw ft11, 96(a1)
    fmv.d ft8, ft3
    fmv.d ft9, ft3
    fmv.d ft10, ft3
    fmv.d ft11, ft3
    fmax.s ft8, ft8, fa0
    fmax.s ft9, ft9, fa1
    fmax.s ft10, ft10, fa2
    fmax.s ft11, ft11, fa3
    flw ft7, 12(a0)
    flw fa0, 52(a0)
    flw fa7, 92(a0)
    flw ft1, 132(a0)
    fmax.s ft8, ft8, ft4
    fmax.s ft9, ft9, fa4
    fmax.s ft10, ft10, fa5
    fmax.s ft11, ft11, fa6
    fmax.s ft8, ft8, ft7
    fmax.s ft9, ft9, fa0
    fmax.s ft10, ft10, fa7
    fmax.s ft11, ft11, ft1
    fmax.s ft8, ft8, fa1
    fmax.s ft9, ft9, fa2
    fmax.s ft10, ft10, fa3
    fmax.s ft11, ft11, ft0
    flw ft4, 172(a0)
    fmax.s ft8, ft8, fa4
    fmax.s ft9, ft9, fa5
    fmax.s ft10, ft10, fa6
    fmax.s ft11, ft11, ft5
    fmax.s ft8, ft8, fa0
    fmax.s ft9, ft9, fa7
    fmax.s ft10, ft10, ft1
    fmax.s ft11, ft11, ft4
    fmax.s ft8, ft8, fa2
    fmax.s ft9, ft9, fa3
    fmax.s ft10, ft10, ft0
    fmax.s ft11, ft11, ft2
    flw ft7, 212(a0)
    fmax.s ft8, ft8, fa5
    fmax.s ft9, ft9, fa6
    fmax.s ft10, ft10, ft5
    fmax.s ft11, ft11, ft6
    fmax.s ft8, ft8, fa7
    fmax.s ft9, ft9, ft1
    fmax.s ft10, ft10, ft4
    fmax.s ft11, ft11, ft7
    fsw ft8, 4(a1)
    fsw ft9, 36(a1)
    fsw ft10, 68(a1)
    fsw ft11, 100(a1)
    addi a0, a0, 8
    addi a1, a1, 8
    bne a0, a3, .Lmaxpool_loop1
    addi a0, a0, 128
    addi a1, a1, 96
    bne a0, a2, .Lmaxpool_loop2
    ret
