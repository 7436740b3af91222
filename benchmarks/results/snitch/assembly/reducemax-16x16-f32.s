# kernel: reducemax:16x16 f32
# strategy: heuristic
# machine: snitch
# cycles: 512
# cycles_of_pdojo_snitch: 512
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16]=out'
.data
.balign 8
reducemax_constants:
.word 0xff800000, 0xff800000
.text
.globl reducemax
.p2align 2
reducemax:
    addi sp, sp, -80
    fsd fs0, 64(sp)
    li a2, -8388608
    fmv.w.x fa7, a2
    la a2, reducemax_constants
    fld fs0, 0(a2)
    scfgwi zero, 32
    li a2, 3
    scfgwi a2, 64
    li a2, 64
    scfgwi a2, 192
    li t0, 7
    scfgwi t0, 96
    li a2, -184
    scfgwi a2, 224
    mv t2, a1
    mv t1, a0
    addi t3, t2, 64
.Lreducemax_loop9:
    fmv.d ft3, fs0
    fmv.d ft4, fs0
    fmv.d ft5, fs0
    fmv.d ft6, fs0
    fsw fa7, 0(t2)
    fsw fa7, 4(t2)
    fsw fa7, 8(t2)
    fsw fa7, 12(t2)
    scfgwi t1, 800
    csrrsi zero, 1984, 1
    frep.o t0, 4, 0, 0
    vfmax.s ft3, ft3, ft0
    vfmax.s ft4, ft4, ft0
    vfmax.s ft5, ft5, ft0
    vfmax.s ft6, ft6, ft0
    csrrci zero, 1984, 1
    fsd ft3, 0(sp)
    fsd ft4, 16(sp)
    fsd ft5, 32(sp)
    fsd ft6, 48(sp)
    flw ft7, 0(sp)
    flw ft8, 0(t2)
    flw ft9, 16(sp)
    flw ft10, 4(t2)
    flw ft11, 32(sp)
    flw fa0, 8(t2)
    flw fa1, 48(sp)
    flw fa2, 12(t2)
    feq.s a0, ft8, ft8
    feq.s a1, ft7, ft7
    feq.s a2, ft10, ft10
    feq.s a3, ft9, ft9
    feq.s a4, fa0, fa0
    feq.s a5, ft11, ft11
    feq.s a6, fa2, fa2
    feq.s a7, fa1, fa1
    fmax.s fa3, ft8, ft7
    fmax.s fa4, ft10, ft9
    fmax.s fa5, fa0, ft11
    fmax.s fa6, fa2, fa1
    and a0, a0, a1
    and a1, a2, a3
    and a2, a4, a5
    and a3, a6, a7
    bne a0, zero, .Lreducemax_ordered1
    fadd.s fa3, ft8, ft7
.Lreducemax_ordered1:
    bne a1, zero, .Lreducemax_ordered3
    fadd.s fa4, ft10, ft9
.Lreducemax_ordered3:
    bne a2, zero, .Lreducemax_ordered5
    fadd.s fa5, fa0, ft11
.Lreducemax_ordered5:
    bne a3, zero, .Lreducemax_ordered7
    fadd.s fa6, fa2, fa1
.Lreducemax_ordered7:
    fsw fa3, 0(t2)
    fsd ft3, 8(sp)
    fsw fa4, 4(t2)
    fsd ft4, 24(sp)
    fsw fa5, 8(t2)
    fsd ft5, 40(sp)
    fsw fa6, 12(t2)
    fsd ft6, 56(sp)
    flw ft3, 12(sp)
    flw ft4, 0(t2)
    flw ft5, 28(sp)
    flw ft6, 4(t2)
    flw ft7, 44(sp)
    flw ft8, 8(t2)
    flw ft9, 60(sp)
    flw ft10, 12(t2)
    feq.s a0, ft4, ft4
    feq.s a1, ft3, ft3
    feq.s a2, ft6, ft6
    feq.s a3, ft5, ft5
    feq.s a4, ft8, ft8
    feq.s a5, ft7, ft7
    feq.s a6, ft10, ft10
    feq.s a7, ft9, ft9
    fmax.s ft11, ft4, ft3
    fmax.s fa0, ft6, ft5
    fmax.s fa1, ft8, ft7
    fmax.s fa2, ft10, ft9
    and a0, a0, a1
    and a1, a2, a3
    and a2, a4, a5
    and a3, a6, a7
    bne a0, zero, .Lreducemax_ordered2
    fadd.s ft11, ft4, ft3
.Lreducemax_ordered2:
    bne a1, zero, .Lreducemax_ordered4
    fadd.s fa0, ft6, ft5
.Lreducemax_ordered4:
    bne a2, zero, .Lreducemax_ordered6
    fadd.s fa1, ft8, ft7
.Lreducemax_ordered6:
    bne a3, zero, .Lreducemax_ordered8
    fadd.s fa2, ft10, ft9
.Lreducemax_ordered8:
    fsw ft11, 0(t2)
    fsw fa0, 4(t2)
    fsw fa1, 8(t2)
    fsw fa2, 12(t2)
    addi t2, t2, 16
    addi t1, t1, 256
    bne t2, t3, .Lreducemax_loop9
    fld fs0, 64(sp)
    addi sp, sp, 80
    ret
