# kernel: sigmoid:16x16 f32
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 10531
# cycles_of_pdojo_snitch: 10517
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]=out'
#   --arg 'i8[1024]=zero'
.data
.balign 8
sigmoid_constants:
.word 0x3f800000, 0x3f800000
.text
.globl sigmoid
.p2align 2
sigmoid:
    addi sp, sp, -128
    sw s0, 0(sp)
    sw s1, 8(sp)
    sw s2, 16(sp)
    fsd fs0, 24(sp)
    fsd fs1, 32(sp)
    fsd fs2, 40(sp)
    fsd fs3, 48(sp)
    fsd fs4, 56(sp)
    fsd fs5, 64(sp)
    fsd fs6, 72(sp)
    fsd fs7, 80(sp)
    fsd fs8, 88(sp)
    fsd fs9, 96(sp)
    fsd fs10, 104(sp)
    fsd fs11, 112(sp)
    li a3, -1026555904
    fmv.w.x ft9, a3
    li a3, 1118961664
    fmv.w.x ft10, a3
    li a3, 1262485655
    fmv.w.x ft11, a3
    li a3, 1262485607
    fmv.w.x fa0, a3
    li a3, 864026624
    fmv.w.x fa1, a3
    li a3, 1266679808
    fmv.w.x fa2, a3
    li a3, 1069066811
    fmv.w.x fa3, a3
    li a3, -1087278568
    fmv.w.x fa4, a3
    li a3, 822272776
    fmv.w.x fa5, a3
    li a3, 984966190
    fmv.w.x fa6, a3
    li a3, 1007230712
    fmv.w.x fa7, a3
    li a3, 1026206764
    fmv.w.x ft0, a3
    li a3, 1042983494
    fmv.w.x ft1, a3
    li a3, 1056964606
    fmv.w.x ft2, a3
    li a3, 1065353216
    fmv.w.x fs0, a3
    la a3, sigmoid_constants
    fld fs1, 0(a3)
    mv t0, a0
    mv t1, a2
    mv a7, a1
    addi t2, t0, 1024
.Lsigmoid_loop33:
    fld ft3, 0(t0)
    fld ft4, 8(t0)
    fld ft5, 16(t0)
    fld ft6, 24(t0)
    vfsgnjn.s ft3, ft3, ft3
    vfsgnjn.s ft4, ft4, ft4
    vfsgnjn.s ft5, ft5, ft5
    vfsgnjn.s ft6, ft6, ft6
    fsd ft3, 0(t1)
    fsd ft4, 8(t1)
    fsd ft5, 16(t1)
    fsd ft6, 24(t1)
    flw ft3, 0(t1)
    flw ft4, 4(t1)
    flw ft5, 8(t1)
    feq.s a0, ft3, ft3
    flw ft6, 12(t1)
    feq.s a1, ft4, ft4
    fmax.s ft7, ft3, ft9
    flw ft8, 16(t1)
    feq.s a2, ft5, ft5
    fmax.s fs2, ft4, ft9
    bne a0, zero, .Lsigmoid_ordered1
    fadd.s ft7, ft3, ft9
.Lsigmoid_ordered1:
    flw fs3, 20(t1)
    feq.s a0, ft6, ft6
    fmax.s fs4, ft5, ft9
    feq.s a3, ft7, ft7
    bne a1, zero, .Lsigmoid_ordered5
    fadd.s fs2, ft4, ft9
.Lsigmoid_ordered5:
    flw ft4, 24(t1)
    feq.s a1, ft8, ft8
    fmax.s fs7, ft6, ft9
    feq.s a4, fs2, fs2
    bne a2, zero, .Lsigmoid_ordered9
    fadd.s fs4, ft5, ft9
.Lsigmoid_ordered9:
    fmin.s fs5, ft7, ft10
    feq.s a2, fs3, fs3
    flw ft5, 28(t1)
    fmax.s fs9, ft8, ft9
    feq.s a5, fs4, fs4
    bne a0, zero, .Lsigmoid_ordered13
    fadd.s fs7, ft6, ft9
.Lsigmoid_ordered13:
    fmin.s fs6, fs2, ft10
    feq.s a0, ft4, ft4
    bne a3, zero, .Lsigmoid_ordered2
    fadd.s fs5, ft7, ft10
.Lsigmoid_ordered2:
    fmax.s ft3, fs3, ft9
    feq.s a3, fs7, fs7
    bne a1, zero, .Lsigmoid_ordered17
    fadd.s fs9, ft8, ft9
.Lsigmoid_ordered17:
    fmin.s fs8, fs4, ft10
    feq.s a1, ft5, ft5
    fmv.x.w a6, fs5
    bne a4, zero, .Lsigmoid_ordered6
    fadd.s fs6, fs2, ft10
.Lsigmoid_ordered6:
    fmax.s ft8, ft4, ft9
    feq.s a4, fs9, fs9
    bne a2, zero, .Lsigmoid_ordered21
    fadd.s ft3, fs3, ft9
.Lsigmoid_ordered21:
    fmin.s fs2, fs7, ft10
    fmv.x.w a2, fs6
    bne a5, zero, .Lsigmoid_ordered10
    fadd.s fs8, fs4, ft10
.Lsigmoid_ordered10:
    fmax.s fs3, ft5, ft9
    feq.s a5, ft3, ft3
    bne a0, zero, .Lsigmoid_ordered25
    fadd.s ft8, ft4, ft9
.Lsigmoid_ordered25:
    fmin.s ft7, fs9, ft10
    fmv.x.w a0, fs8
    fmv.d fs4, ft11
    bne a3, zero, .Lsigmoid_ordered14
    fadd.s fs2, fs7, ft10
.Lsigmoid_ordered14:
    feq.s a3, ft8, ft8
    bne a1, zero, .Lsigmoid_ordered29
    fadd.s fs3, ft5, ft9
.Lsigmoid_ordered29:
    slt a6, a6, zero
    fmin.s fs7, ft3, ft10
    fmv.x.w a1, fs2
    fmv.d fs10, ft11
    bne a4, zero, .Lsigmoid_ordered18
    fadd.s ft7, fs9, ft10
.Lsigmoid_ordered18:
    feq.s a4, fs3, fs3
    bne a6, zero, .Lsigmoid_chosen3
    fmv.d fs4, fa0
.Lsigmoid_chosen3:
    slt t3, a2, zero
    fmin.s ft6, ft8, ft10
    fmv.x.w a2, ft7
    fmv.d fs9, ft11
    bne a5, zero, .Lsigmoid_ordered22
    fadd.s fs7, ft3, ft10
.Lsigmoid_ordered22:
    fmadd.s ft4, fs5, fa3, fs4
    bne t3, zero, .Lsigmoid_chosen7
    fmv.d fs10, fa0
.Lsigmoid_chosen7:
    slt t4, a0, zero
    fmin.s ft5, fs3, ft10
    fmv.x.w a0, fs7
    fmv.d fs11, ft11
    bne a3, zero, .Lsigmoid_ordered26
    fadd.s ft6, ft8, ft10
.Lsigmoid_ordered26:
    fmadd.s ft3, fs6, fa3, fs10
    bne t4, zero, .Lsigmoid_chosen11
    fmv.d fs9, fa0
.Lsigmoid_chosen11:
    slt t5, a1, zero
    fmv.x.w a1, ft6
    fmv.d ft8, ft11
    bne a4, zero, .Lsigmoid_ordered30
    fadd.s ft5, fs3, ft10
.Lsigmoid_ordered30:
    fmadd.s fs3, fs8, fa3, fs9
    bne t5, zero, .Lsigmoid_chosen15
    fmv.d fs11, fa0
.Lsigmoid_chosen15:
    slt t6, a2, zero
    fmv.x.w a2, ft5
    fsub.s fs4, ft4, fs4
    bne t6, zero, .Lsigmoid_chosen19
    fmv.d ft8, fa0
.Lsigmoid_chosen19:
    slt s0, a0, zero
    fsub.s fs10, ft3, fs10
    slt s1, a1, zero
    fsub.s fs9, fs3, fs9
    slt s2, a2, zero
    fmadd.s fs5, fs4, fa4, fs5
    fmadd.s fs6, fs10, fa4, fs6
    fmadd.s fs8, fs9, fa4, fs8
    fmv.x.w a0, ft4
    fmv.d ft4, ft11
    bne s0, zero, .Lsigmoid_chosen23
    fmv.d ft4, fa0
.Lsigmoid_chosen23:
    fmadd.s fs4, fs4, fa5, fs5
    fmadd.s fs5, fs2, fa3, fs11
    fmadd.s fs6, fs10, fa5, fs6
    fmv.d fs10, ft11
    bne s1, zero, .Lsigmoid_chosen27
    fmv.d fs10, fa0
.Lsigmoid_chosen27:
    fsub.s fs11, fs5, fs11
    fmadd.s fs8, fs9, fa5, fs8
    fmadd.s fs9, ft7, fa3, ft8
    fmv.x.w a1, ft3
    fmv.d ft3, ft11
    bne s2, zero, .Lsigmoid_chosen31
    fmv.d ft3, fa0
.Lsigmoid_chosen31:
    fsub.s ft8, fs9, ft8
    fmadd.s fs2, fs11, fa4, fs2
    fmv.x.w a2, fs3
    fmadd.s fs3, fs7, fa3, ft4
    fmadd.s ft7, ft8, fa4, ft7
    fmadd.s fs2, fs11, fa5, fs2
    fmadd.s fs11, ft6, fa3, fs10
    fsub.s ft4, fs3, ft4
    fmadd.s ft7, ft8, fa5, ft7
    fmadd.s ft8, ft5, fa3, ft3
    fsub.s fs10, fs11, fs10
    fmadd.s fs7, ft4, fa4, fs7
    fmv.x.w a3, fs5
    fsub.s ft3, ft8, ft3
    fmadd.s fs5, fa6, fs4, fa7
    fmadd.s ft6, fs10, fa4, ft6
    fmadd.s ft4, ft4, fa5, fs7
    fmadd.s fs7, fa6, fs6, fa7
    fmadd.s ft5, ft3, fa4, ft5
    fmadd.s fs5, fs5, fs4, ft0
    fmadd.s ft6, fs10, fa5, ft6
    fmadd.s fs10, fa6, fs8, fa7
    fmadd.s fs7, fs7, fs6, ft0
    fmadd.s ft3, ft3, fa5, ft5
    fmadd.s ft5, fa6, fs2, fa7
    fmadd.s fs10, fs10, fs8, ft0
    fmadd.s fs5, fs5, fs4, ft1
    fmadd.s fs7, fs7, fs6, ft1
    fmadd.s ft5, ft5, fs2, ft0
    fmadd.s fs10, fs10, fs8, ft1
    fmadd.s fs5, fs5, fs4, ft2
    fmadd.s fs7, fs7, fs6, ft2
    fmadd.s ft5, ft5, fs2, ft1
    fmadd.s fs10, fs10, fs8, ft2
    fmadd.s fs5, fs5, fs4, fs0
    fmadd.s fs7, fs7, fs6, fs0
    fmadd.s ft5, ft5, fs2, ft2
    fmadd.s fs10, fs10, fs8, fs0
    fmadd.s fs4, fs5, fs4, fs0
    fmadd.s fs5, fa6, ft7, fa7
    fmadd.s ft5, ft5, fs2, fs0
    slli a0, a0, 23
    fmadd.s fs6, fs7, fs6, fs0
    fmadd.s fs7, fa6, ft4, fa7
    fmadd.s fs5, fs5, ft7, ft0
    fmv.x.w a4, fs9
    fmadd.s fs9, fa6, ft6, fa7
    fmadd.s fs7, fs7, ft4, ft0
    fmadd.s fs5, fs5, ft7, ft1
    slli a1, a1, 23
    fmadd.s fs9, fs9, ft6, ft0
    fmadd.s fs7, fs7, ft4, ft1
    fmadd.s fs5, fs5, ft7, ft2
    fmadd.s fs8, fs10, fs8, fs0
    fmadd.s fs10, fa6, ft3, fa7
    fmadd.s fs9, fs9, ft6, ft1
    fmadd.s fs7, fs7, ft4, ft2
    fmadd.s fs5, fs5, ft7, fs0
    fmadd.s fs10, fs10, ft3, ft0
    fmadd.s fs9, fs9, ft6, ft2
    fmadd.s fs7, fs7, ft4, fs0
    fmv.x.w a5, fs3
    fmadd.s fs10, fs10, ft3, ft1
    fmv.w.x fs3, a0
    slli a0, a2, 23
    fmul.s fs4, fs4, fs3
    fmadd.s fs3, fs10, ft3, ft2
    fmv.w.x fs10, a1
    fmadd.s ft5, ft5, fs2, fs0
    fmv.d fs2, fa1
    fmadd.s fs9, fs9, ft6, fs0
    fmv.x.w a1, fs11
    fmv.w.x fs11, a0
    slli a0, a3, 23
    fmul.s fs6, fs6, fs10
    fmadd.s ft7, fs5, ft7, fs0
    fmv.d fs5, fa1
    fmadd.s fs3, fs3, ft3, fs0
    bne a6, zero, .Lsigmoid_chosen4
    fmv.d fs2, fa2
.Lsigmoid_chosen4:
    fmv.w.x fs10, a0
    fmv.x.w a0, ft8
    slli a2, a4, 23
    fmul.s fs8, fs8, fs11
    fmadd.s ft8, fs7, ft4, fs0
    fmv.d fs7, fa1
    bne t3, zero, .Lsigmoid_chosen8
    fmv.d fs5, fa2
.Lsigmoid_chosen8:
    fmv.w.x fs11, a2
    fmul.s fs2, fs4, fs2
    slli a2, a5, 23
    fmul.s ft5, ft5, fs10
    fmadd.s ft4, fs9, ft6, fs0
    fmv.d ft6, fa1
    bne t4, zero, .Lsigmoid_chosen12
    fmv.d fs7, fa2
.Lsigmoid_chosen12:
    fmv.w.x fs9, a2
    fmul.s fs4, fs6, fs5
    slli a1, a1, 23
    fmul.s fs5, ft7, fs11
    fmadd.s fs3, fs3, ft3, fs0
    fmv.d fs6, fa1
    bne t5, zero, .Lsigmoid_chosen16
    fmv.d ft6, fa2
.Lsigmoid_chosen16:
    fmv.w.x fs10, a1
    fmul.s fs7, fs8, fs7
    slli a0, a0, 23
    fmul.s ft7, ft8, fs9
    fmv.d ft8, fa1
    fsw fs2, 0(t1)
    bne t6, zero, .Lsigmoid_chosen20
    fmv.d fs6, fa2
.Lsigmoid_chosen20:
    fmv.w.x ft3, a0
    fmul.s fs8, ft5, ft6
    fmul.s ft4, ft4, fs10
    fmv.d ft5, fa1
    fsw fs4, 4(t1)
    bne s0, zero, .Lsigmoid_chosen24
    fmv.d ft8, fa2
.Lsigmoid_chosen24:
    fmul.s ft6, fs5, fs6
    fmul.s ft3, fs3, ft3
    fmv.d fs2, fa1
    fsw fs7, 8(t1)
    bne s1, zero, .Lsigmoid_chosen28
    fmv.d ft5, fa2
.Lsigmoid_chosen28:
    fmul.s ft7, ft7, ft8
    fsw fs8, 12(t1)
    bne s2, zero, .Lsigmoid_chosen32
    fmv.d fs2, fa2
.Lsigmoid_chosen32:
    fmul.s ft4, ft4, ft5
    fsw ft6, 16(t1)
    fmul.s ft3, ft3, fs2
    fsw ft7, 20(t1)
    fsw ft4, 24(t1)
    fld ft4, 0(t1)
    fsw ft3, 28(t1)
    fld ft3, 8(t1)
    fld ft5, 16(t1)
    fld ft6, 24(t1)
    vfadd.s ft4, ft4, fs1
    vfadd.s ft3, ft3, fs1
    vfadd.s ft5, ft5, fs1
    vfadd.s ft6, ft6, fs1
    fsd ft4, 0(t1)
    fsd ft3, 8(t1)
    fsd ft5, 16(t1)
    fsd ft6, 24(t1)
    fld ft3, 0(t1)
    fld ft4, 8(t1)
    fld ft5, 16(t1)
    fld ft6, 24(t1)
    vfdiv.s ft3, fs1, ft3
    vfdiv.s ft4, fs1, ft4
    vfdiv.s ft5, fs1, ft5
    vfdiv.s ft6, fs1, ft6
    addi t0, t0, 32
    addi t1, t1, 32
    fsd ft3, 0(a7)
    fsd ft4, 8(a7)
    fsd ft5, 16(a7)
    fsd ft6, 24(a7)
    addi a7, a7, 32
    bne t0, t2, .Lsigmoid_loop33
    lw s0, 0(sp)
    lw s1, 8(sp)
    lw s2, 16(sp)
    fld fs0, 24(sp)
    fld fs1, 32(sp)
    fld fs2, 40(sp)
    fld fs3, 48(sp)
    fld fs4, 56(sp)
    fld fs5, 64(sp)
    fld fs6, 72(sp)
    fld fs7, 80(sp)
    fld fs8, 88(sp)
    fld fs9, 96(sp)
    fld fs10, 104(sp)
    fld fs11, 112(sp)
    addi sp, sp, 128
    ret
