# kernel: sigmoid:16x16 f32
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 25543
# cycles_of_pdojo_snitch: 25529
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
    li a3, -1026555904
    fmv.w.x ft7, a3
    li a3, 1118961664
    fmv.w.x ft8, a3
    li a3, 1262485528
    fmv.w.x ft9, a3
    li a3, 1262485480
    fmv.w.x ft10, a3
    li a3, 864026624
    fmv.w.x ft11, a3
    li a3, 1266679808
    fmv.w.x fa0, a3
    li a3, 1069066811
    fmv.w.x fa1, a3
    li a3, -1087278568
    fmv.w.x fa2, a3
    li a3, 822272776
    fmv.w.x fa3, a3
    li a3, 984966190
    fmv.w.x fa4, a3
    li a3, 1007230712
    fmv.w.x fa5, a3
    li a3, 1026206764
    fmv.w.x fa6, a3
    li a3, 1042983494
    fmv.w.x fa7, a3
    li a3, 1056964606
    fmv.w.x ft0, a3
    li a4, 1065353216
    fmv.w.x ft1, a4
    la a3, sigmoid_constants
    fld ft2, 0(a3)
    mv a3, a0
    mv a5, a2
    mv a2, a1
    addi a6, a3, 1024
.Lsigmoid_loop33:
    fld ft3, 0(a3)
    vfsgnjn.s ft3, ft3, ft3
    fsd ft3, 0(a5)
    fld ft3, 8(a3)
    vfsgnjn.s ft3, ft3, ft3
    fsd ft3, 8(a5)
    fld ft3, 16(a3)
    vfsgnjn.s ft3, ft3, ft3
    fsd ft3, 16(a5)
    fld ft3, 24(a3)
    vfsgnjn.s ft3, ft3, ft3
    fsd ft3, 24(a5)
    flw ft3, 0(a5)
    fmax.s ft4, ft3, ft7
    feq.s a0, ft3, ft3
    feq.s a1, ft7, ft7
    and a0, a0, a1
    bne a0, zero, .Lsigmoid_ordered1
    fadd.s ft4, ft3, ft7
.Lsigmoid_ordered1:
    fmin.s ft3, ft4, ft8
    feq.s a0, ft4, ft4
    feq.s a1, ft8, ft8
    and a0, a0, a1
    bne a0, zero, .Lsigmoid_ordered2
    fadd.s ft3, ft4, ft8
.Lsigmoid_ordered2:
    fmv.x.w a0, ft3
    slt a0, a0, zero
    fmv.d ft4, ft9
    bne a0, zero, .Lsigmoid_chosen3
    fmv.d ft4, ft10
.Lsigmoid_chosen3:
    fmv.d ft5, ft11
    bne a0, zero, .Lsigmoid_chosen4
    fmv.d ft5, fa0
.Lsigmoid_chosen4:
    fmadd.s ft6, ft3, fa1, ft4
    fsub.s ft4, ft6, ft4
    fmv.x.w a0, ft6
    fmadd.s ft3, ft4, fa2, ft3
    fmadd.s ft3, ft4, fa3, ft3
    fmadd.s ft4, fa4, ft3, fa5
    fmadd.s ft4, ft4, ft3, fa6
    fmadd.s ft4, ft4, ft3, fa7
    fmadd.s ft4, ft4, ft3, ft0
    fmadd.s ft4, ft4, ft3, ft1
    fmadd.s ft3, ft4, ft3, ft1
    slli a0, a0, 23
    add a0, a0, a4
    fmv.w.x ft4, a0
    fmul.s ft3, ft3, ft4
    fmul.s ft3, ft3, ft5
    fsw ft3, 0(a5)
    flw ft3, 4(a5)
    fmax.s ft4, ft3, ft7
    feq.s a0, ft3, ft3
    feq.s a1, ft7, ft7
    and a0, a0, a1
    bne a0, zero, .Lsigmoid_ordered5
    fadd.s ft4, ft3, ft7
.Lsigmoid_ordered5:
    fmin.s ft3, ft4, ft8
    feq.s a0, ft4, ft4
    feq.s a1, ft8, ft8
    and a0, a0, a1
    bne a0, zero, .Lsigmoid_ordered6
    fadd.s ft3, ft4, ft8
.Lsigmoid_ordered6:
    fmv.x.w a0, ft3
    slt a0, a0, zero
    fmv.d ft4, ft9
    bne a0, zero, .Lsigmoid_chosen7
    fmv.d ft4, ft10
.Lsigmoid_chosen7:
    fmv.d ft5, ft11
    bne a0, zero, .Lsigmoid_chosen8
    fmv.d ft5, fa0
.Lsigmoid_chosen8:
    fmadd.s ft6, ft3, fa1, ft4
    fsub.s ft4, ft6, ft4
    fmv.x.w a0, ft6
    fmadd.s ft3, ft4, fa2, ft3
    fmadd.s ft3, ft4, fa3, ft3
    fmadd.s ft4, fa4, ft3, fa5
    fmadd.s ft4, ft4, ft3, fa6
    fmadd.s ft4, ft4, ft3, fa7
    fmadd.s ft4, ft4, ft3, ft0
    fmadd.s ft4, ft4, ft3, ft1
    fmadd.s ft3, ft4, ft3, ft1
    slli a0, a0, 23
    add a0, a0, a4
    fmv.w.x ft4, a0
    fmul.s ft3, ft3, ft4
    fmul.s ft3, ft3, ft5
    fsw ft3, 4(a5)
    flw ft3, 8(a5)
    fmax.s ft4, ft3, ft7
    feq.s a0, ft3, ft3
    feq.s a1, ft7, ft7
    and a0, a0, a1
    bne a0, zero, .Lsigmoid_ordered9
    fadd.s ft4, ft3, ft7
.Lsigmoid_ordered9:
    fmin.s ft3, ft4, ft8
    feq.s a0, ft4, ft4
    feq.s a1, ft8, ft8
    and a0, a0, a1
    bne a0, zero, .Lsigmoid_ordered10
    fadd.s ft3, ft4, ft8
.Lsigmoid_ordered10:
    fmv.x.w a0, ft3
    slt a0, a0, zero
    fmv.d ft4, ft9
    bne a0, zero, .Lsigmoid_chosen11
    fmv.d ft4, ft10
.Lsigmoid_chosen11:
    fmv.d ft5, ft11
    bne a0, zero, .Lsigmoid_chosen12
    fmv.d ft5, fa0
.Lsigmoid_chosen12:
    fmadd.s ft6, ft3, fa1, ft4
    fsub.s ft4, ft6, ft4
    fmv.x.w a0, ft6
    fmadd.s ft3, ft4, fa2, ft3
    fmadd.s ft3, ft4, fa3, ft3
    fmadd.s ft4, fa4, ft3, fa5
    fmadd.s ft4, ft4, ft3, fa6
    fmadd.s ft4, ft4, ft3, fa7
    fmadd.s ft4, ft4, ft3, ft0
    fmadd.s ft4, ft4, ft3, ft1
    fmadd.s ft3, ft4, ft3, ft1
    slli a0, a0, 23
    add a0, a0, a4
    fmv.w.x ft4, a0
    fmul.s ft3, ft3, ft4
    fmul.s ft3, ft3, ft5
    fsw ft3, 8(a5)
    flw ft3, 12(a5)
    fmax.s ft4, ft3, ft7
    feq.s a0, ft3, ft3
    feq.s a1, ft7, ft7
    and a0, a0, a1
    bne a0, zero, .Lsigmoid_ordered13
    fadd.s ft4, ft3, ft7
.Lsigmoid_ordered13:
    fmin.s ft3, ft4, ft8
    feq.s a0, ft4, ft4
    feq.s a1, ft8, ft8
    and a0, a0, a1
    bne a0, zero, .Lsigmoid_ordered14
    fadd.s ft3, ft4, ft8
.Lsigmoid_ordered14:
    fmv.x.w a0, ft3
    slt a0, a0, zero
    fmv.d ft4, ft9
    bne a0, zero, .Lsigmoid_chosen15
    fmv.d ft4, ft10
.Lsigmoid_chosen15:
    fmv.d ft5, ft11
    bne a0, zero, .Lsigmoid_chosen16
    fmv.d ft5, fa0
.Lsigmoid_chosen16:
    fmadd.s ft6, ft3, fa1, ft4
    fsub.s ft4, ft6, ft4
    fmv.x.w a0, ft6
    fmadd.s ft3, ft4, fa2, ft3
    fmadd.s ft3, ft4, fa3, ft3
    fmadd.s ft4, fa4, ft3, fa5
    fmadd.s ft4, ft4, ft3, fa6
    fmadd.s ft4, ft4, ft3, fa7
    fmadd.s ft4, ft4, ft3, ft0
    fmadd.s ft4, ft4, ft3, ft1
    fmadd.s ft3, ft4, ft3, ft1
    slli a0, a0, 23
    add a0, a0, a4
    fmv.w.x ft4, a0
    fmul.s ft3, ft3, ft4
    fmul.s ft3, ft3, ft5
    fsw ft3, 12(a5)
    flw ft3, 16(a5)
    fmax.s ft4, ft3, ft7
    feq.s a0, ft3, ft3
    feq.s a1, ft7, ft7
    and a0, a0, a1
    bne a0, zero, .Lsigmoid_ordered17
    fadd.s ft4, ft3, ft7
.Lsigmoid_ordered17:
    fmin.s ft3, ft4, ft8
    feq.s a0, ft4, ft4
    feq.s a1, ft8, ft8
    and a0, a0, a1
    bne a0, zero, .Lsigmoid_ordered18
    fadd.s ft3, ft4, ft8
.Lsigmoid_ordered18:
    fmv.x.w a0, ft3
    slt a0, a0, zero
    fmv.d ft4, ft9
    bne a0, zero, .Lsigmoid_chosen19
    fmv.d ft4, ft10
.Lsigmoid_chosen19:
    fmv.d ft5, ft11
    bne a0, zero, .Lsigmoid_chosen20
    fmv.d ft5, fa0
.Lsigmoid_chosen20:
    fmadd.s ft6, ft3, fa1, ft4
    fsub.s ft4, ft6, ft4
    fmv.x.w a0, ft6
    fmadd.s ft3, ft4, fa2, ft3
    fmadd.s ft3, ft4, fa3, ft3
    fmadd.s ft4, fa4, ft3, fa5
    fmadd.s ft4, ft4, ft3, fa6
    fmadd.s ft4, ft4, ft3, fa7
    fmadd.s ft4, ft4, ft3, ft0
    fmadd.s ft4, ft4, ft3, ft1
    fmadd.s ft3, ft4, ft3, ft1
    slli a0, a0, 23
    add a0, a0, a4
    fmv.w.x ft4, a0
    fmul.s ft3, ft3, ft4
    fmul.s ft3, ft3, ft5
    fsw ft3, 16(a5)
    flw ft3, 20(a5)
    fmax.s ft4, ft3, ft7
    feq.s a0, ft3, ft3
    feq.s a1, ft7, ft7
    and a0, a0, a1
    bne a0, zero, .Lsigmoid_ordered21
    fadd.s ft4, ft3, ft7
.Lsigmoid_ordered21:
    fmin.s ft3, ft4, ft8
    feq.s a0, ft4, ft4
    feq.s a1, ft8, ft8
    and a0, a0, a1
    bne a0, zero, .Lsigmoid_ordered22
    fadd.s ft3, ft4, ft8
.Lsigmoid_ordered22:
    fmv.x.w a0, ft3
    slt a0, a0, zero
    fmv.d ft4, ft9
    bne a0, zero, .Lsigmoid_chosen23
    fmv.d ft4, ft10
.Lsigmoid_chosen23:
    fmv.d ft5, ft11
    bne a0, zero, .Lsigmoid_chosen24
    fmv.d ft5, fa0
.Lsigmoid_chosen24:
    fmadd.s ft6, ft3, fa1, ft4
    fsub.s ft4, ft6, ft4
    fmv.x.w a0, ft6
    fmadd.s ft3, ft4, fa2, ft3
    fmadd.s ft3, ft4, fa3, ft3
    fmadd.s ft4, fa4, ft3, fa5
    fmadd.s ft4, ft4, ft3, fa6
    fmadd.s ft4, ft4, ft3, fa7
    fmadd.s ft4, ft4, ft3, ft0
    fmadd.s ft4, ft4, ft3, ft1
    fmadd.s ft3, ft4, ft3, ft1
    slli a0, a0, 23
    add a0, a0, a4
    fmv.w.x ft4, a0
    fmul.s ft3, ft3, ft4
    fmul.s ft3, ft3, ft5
    fsw ft3, 20(a5)
    flw ft3, 24(a5)
    fmax.s ft4, ft3, ft7
    feq.s a0, ft3, ft3
    feq.s a1, ft7, ft7
    and a0, a0, a1
    bne a0, zero, .Lsigmoid_ordered25
    fadd.s ft4, ft3, ft7
.Lsigmoid_ordered25:
    fmin.s ft3, ft4, ft8
    feq.s a0, ft4, ft4
    feq.s a1, ft8, ft8
    and a0, a0, a1
    bne a0, zero, .Lsigmoid_ordered26
    fadd.s ft3, ft4, ft8
.Lsigmoid_ordered26:
    fmv.x.w a0, ft3
    slt a0, a0, zero
    fmv.d ft4, ft9
    bne a0, zero, .Lsigmoid_chosen27
    fmv.d ft4, ft10
.Lsigmoid_chosen27:
    fmv.d ft5, ft11
    bne a0, zero, .Lsigmoid_chosen28
    fmv.d ft5, fa0
.Lsigmoid_chosen28:
    fmadd.s ft6, ft3, fa1, ft4
    fsub.s ft4, ft6, ft4
    fmv.x.w a0, ft6
    fmadd.s ft3, ft4, fa2, ft3
    fmadd.s ft3, ft4, fa3, ft3
    fmadd.s ft4, fa4, ft3, fa5
    fmadd.s ft4, ft4, ft3, fa6
    fmadd.s ft4, ft4, ft3, fa7
    fmadd.s ft4, ft4, ft3, ft0
    fmadd.s ft4, ft4, ft3, ft1
    fmadd.s ft3, ft4, ft3, ft1
    slli a0, a0, 23
    add a0, a0, a4
    fmv.w.x ft4, a0
    fmul.s ft3, ft3, ft4
    fmul.s ft3, ft3, ft5
    fsw ft3, 24(a5)
    flw ft3, 28(a5)
    fmax.s ft4, ft3, ft7
    feq.s a0, ft3, ft3
    feq.s a1, ft7, ft7
    and a0, a0, a1
    bne a0, zero, .Lsigmoid_ordered29
    fadd.s ft4, ft3, ft7
.Lsigmoid_ordered29:
    fmin.s ft3, ft4, ft8
    feq.s a0, ft4, ft4
    feq.s a1, ft8, ft8
    and a0, a0, a1
    bne a0, zero, .Lsigmoid_ordered30
    fadd.s ft3, ft4, ft8
.Lsigmoid_ordered30:
    fmv.x.w a0, ft3
    slt a0, a0, zero
    fmv.d ft4, ft9
    bne a0, zero, .Lsigmoid_chosen31
    fmv.d ft4, ft10
.Lsigmoid_chosen31:
    fmv.d ft5, ft11
    bne a0, zero, .Lsigmoid_chosen32
    fmv.d ft5, fa0
.Lsigmoid_chosen32:
    fmadd.s ft6, ft3, fa1, ft4
    fsub.s ft4, ft6, ft4
    fmv.x.w a0, ft6
    fmadd.s ft3, ft4, fa2, ft3
    fmadd.s ft3, ft4, fa3, ft3
    fmadd.s ft4, fa4, ft3, fa5
    fmadd.s ft4, ft4, ft3, fa6
    fmadd.s ft4, ft4, ft3, fa7
    fmadd.s ft4, ft4, ft3, ft0
    fmadd.s ft4, ft4, ft3, ft1
    fmadd.s ft3, ft4, ft3, ft1
    slli a0, a0, 23
    add a0, a0, a4
    fmv.w.x ft4, a0
    fmul.s ft3, ft3, ft4
    fmul.s ft3, ft3, ft5
    fsw ft3, 28(a5)
    fld ft3, 0(a5)
    vfadd.s ft3, ft3, ft2
    fsd ft3, 0(a5)
    fld ft3, 8(a5)
    vfadd.s ft3, ft3, ft2
    fsd ft3, 8(a5)
    fld ft3, 16(a5)
    vfadd.s ft3, ft3, ft2
    fsd ft3, 16(a5)
    fld ft3, 24(a5)
    vfadd.s ft3, ft3, ft2
    fsd ft3, 24(a5)
    fld ft3, 0(a5)
    vfdiv.s ft3, ft2, ft3
    fsd ft3, 0(a2)
    fld ft3, 8(a5)
    vfdiv.s ft3, ft2, ft3
    fsd ft3, 8(a2)
    fld ft3, 16(a5)
    vfdiv.s ft3, ft2, ft3
    fsd ft3, 16(a2)
    fld ft3, 24(a5)
    vfdiv.s ft3, ft2, ft3
    fsd ft3, 24(a2)
    addi a3, a3, 32
    addi a5, a5, 32
    addi a2, a2, 32
    bne a3, a6, .Lsigmoid_loop33
    ret
