# kernel: maxpool:1x1x10x10x3,S=1,P=0 f32
# strategy: heuristic
# machine: snitch
# cycles: 4812
# cycles_of_pdojo_snitch: 4812
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
.Lmaxpool_loop8:
    addi a3, a0, 32
.Lmaxpool_loop7:
    fmv.d ft4, ft3
    fmv.d ft5, ft3
    fmv.d ft6, ft3
    fmv.d ft7, ft3
    addi a4, a0, 120
.Lmaxpool_loop6:
    addi a5, a0, 12
.Lmaxpool_loop5:
    flw ft8, 0(a0)
    flw ft9, 40(a0)
    flw ft10, 80(a0)
    flw ft11, 120(a0)
    feq.s a6, ft4, ft4
    feq.s a7, ft8, ft8
    feq.s t0, ft5, ft5
    feq.s t1, ft9, ft9
    feq.s t2, ft6, ft6
    feq.s t3, ft10, ft10
    feq.s t4, ft7, ft7
    feq.s t5, ft11, ft11
    fmax.s fa0, ft4, ft8
    fmax.s fa1, ft5, ft9
    fmax.s fa2, ft6, ft10
    fmax.s fa3, ft7, ft11
    and a6, a6, a7
    and a7, t0, t1
    and t0, t2, t3
    and t1, t4, t5
    bne a6, zero, .Lmaxpool_ordered1
    fadd.s fa0, ft4, ft8
.Lmaxpool_ordered1:
    bne a7, zero, .Lmaxpool_ordered2
    fadd.s fa1, ft5, ft9
.Lmaxpool_ordered2:
    bne t0, zero, .Lmaxpool_ordered3
    fadd.s fa2, ft6, ft10
.Lmaxpool_ordered3:
    bne t1, zero, .Lmaxpool_ordered4
    fadd.s fa3, ft7, ft11
.Lmaxpool_ordered4:
    fmv.d ft4, fa0
    fmv.d ft5, fa1
    fmv.d ft6, fa2
    fmv.d ft7, fa3
    addi a0, a0, 4
    bne a0, a5, .Lmaxpool_loop5
    addi a0, a0, 28
    bne a0, a4, .Lmaxpool_loop6
    fsw ft4, 0(a1)
    fsw ft5, 32(a1)
    fsw ft6, 64(a1)
    fsw ft7, 96(a1)
    addi a0, a0, -116
    addi a1, a1, 4
    bne a0, a3, .Lmaxpool_loop7
    addi a0, a0, 128
    addi a1, a1, 96
    bne a0, a2, .Lmaxpool_loop8
    ret
