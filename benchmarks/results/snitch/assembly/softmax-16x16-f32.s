# kernel: softmax:16x16 f32
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 26411
# cycles_of_pdojo_snitch: 26411
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]=out'
#   --arg 'i8[256]=zero'
.data
.balign 8
softmax_constants:
.word 0xff800000, 0xff800000
.text
.globl softmax
.p2align 2
softmax:
    addi sp, sp, -128
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
    mv a5, a0
    li a0, -8388608
    fmv.w.x ft3, a0
    fsd ft3, 16(sp)
    fmv.w.x ft3, zero
    fsd ft3, 8(sp)
    la a0, softmax_constants
    fld ft7, 0(a0)
    scfgwi zero, 32
    li a0, 3
    scfgwi a0, 64
    li a0, 64
    scfgwi a0, 192
    li a3, 7
    scfgwi a3, 96
    li a0, -184
    scfgwi a0, 224
    li a0, -1026555904
    fmv.w.x ft8, a0
    li a0, 1118961664
    fmv.w.x ft9, a0
    li a0, 1262485528
    fmv.w.x ft10, a0
    li a0, 1262485480
    fmv.w.x ft11, a0
    li a0, 864026624
    fmv.w.x fa0, a0
    li a0, 1266679808
    fmv.w.x fa1, a0
    li a0, 1069066811
    fmv.w.x fa2, a0
    li a0, -1087278568
    fmv.w.x fa3, a0
    li a0, 822272776
    fmv.w.x fa4, a0
    li a0, 984966190
    fmv.w.x fa5, a0
    li a0, 1007230712
    fmv.w.x fa6, a0
    li a0, 1026206764
    fmv.w.x fa7, a0
    li a0, 1042983494
    fmv.w.x fs0, a0
    li a0, 1056964606
    fmv.w.x fs1, a0
    li a6, 1065353216
    fmv.w.x fs2, a6
    fcvt.d.w fs3, zero
    mv a7, a5
    mv a4, a1
    addi t0, a5, 1024
.Lsoftmax_loop44:
    fld ft3, 16(sp)
    fmv.d fs4, ft3
    fld ft3, 16(sp)
    fmv.d fs5, ft3
    fld ft3, 16(sp)
    fmv.d fs6, ft3
    fld ft3, 16(sp)
    fmv.d fs7, ft3
    fld ft3, 8(sp)
    fmv.d fs8, ft3
    fld ft3, 8(sp)
    fmv.d fs9, ft3
    fld ft3, 8(sp)
    fmv.d fs10, ft3
    fld ft3, 8(sp)
    fmv.d ft4, ft7
    fmv.d ft5, ft7
    fmv.d ft6, ft7
    fmv.d fs11, ft7
    scfgwi a5, 800
    csrrsi zero, 1984, 1
    frep.o a3, 4, 0, 0
    vfmax.s ft4, ft4, ft0
    vfmax.s ft5, ft5, ft0
    vfmax.s ft6, ft6, ft0
    vfmax.s fs11, fs11, ft0
    csrrci zero, 1984, 1
    fsd ft4, 0(sp)
    flw ft0, 0(sp)
    fmax.s ft1, fs4, ft0
    feq.s a0, fs4, fs4
    feq.s a1, ft0, ft0
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered1
    fadd.s ft1, fs4, ft0
.Lsoftmax_ordered1:
    fmv.d fs4, ft1
    fsd ft4, 0(sp)
    flw ft4, 4(sp)
    fmax.s ft0, fs4, ft4
    feq.s a0, fs4, fs4
    feq.s a1, ft4, ft4
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered2
    fadd.s ft0, fs4, ft4
.Lsoftmax_ordered2:
    fmv.d fs4, ft0
    fsd ft5, 0(sp)
    flw ft4, 0(sp)
    fmax.s ft0, fs5, ft4
    feq.s a0, fs5, fs5
    feq.s a1, ft4, ft4
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered3
    fadd.s ft0, fs5, ft4
.Lsoftmax_ordered3:
    fmv.d fs5, ft0
    fsd ft5, 0(sp)
    flw ft4, 4(sp)
    fmax.s ft5, fs5, ft4
    feq.s a0, fs5, fs5
    feq.s a1, ft4, ft4
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered4
    fadd.s ft5, fs5, ft4
.Lsoftmax_ordered4:
    fmv.d fs5, ft5
    fsd ft6, 0(sp)
    flw ft4, 0(sp)
    fmax.s ft5, fs6, ft4
    feq.s a0, fs6, fs6
    feq.s a1, ft4, ft4
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered5
    fadd.s ft5, fs6, ft4
.Lsoftmax_ordered5:
    fmv.d fs6, ft5
    fsd ft6, 0(sp)
    flw ft4, 4(sp)
    fmax.s ft5, fs6, ft4
    feq.s a0, fs6, fs6
    feq.s a1, ft4, ft4
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered6
    fadd.s ft5, fs6, ft4
.Lsoftmax_ordered6:
    fmv.d fs6, ft5
    fsd fs11, 0(sp)
    flw ft4, 0(sp)
    fmax.s ft5, fs7, ft4
    feq.s a0, fs7, fs7
    feq.s a1, ft4, ft4
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered7
    fadd.s ft5, fs7, ft4
.Lsoftmax_ordered7:
    fmv.d fs7, ft5
    fsd fs11, 0(sp)
    flw ft4, 4(sp)
    fmax.s ft5, fs7, ft4
    feq.s a0, fs7, fs7
    feq.s a1, ft4, ft4
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered8
    fadd.s ft5, fs7, ft4
.Lsoftmax_ordered8:
    fmv.d fs7, ft5
    mv t1, a2
    addi t2, a7, 64
.Lsoftmax_loop41:
    fld ft4, 0(a7)
    vfcpka.s.s ft5, fs4, fs4
    vfsub.s ft4, ft4, ft5
    fsd ft4, 0(t1)
    fld ft4, 64(a7)
    vfcpka.s.s ft5, fs5, fs5
    vfsub.s ft4, ft4, ft5
    fsd ft4, 64(t1)
    fld ft4, 128(a7)
    vfcpka.s.s ft5, fs6, fs6
    vfsub.s ft4, ft4, ft5
    fsd ft4, 128(t1)
    fld ft4, 192(a7)
    vfcpka.s.s ft5, fs7, fs7
    vfsub.s ft4, ft4, ft5
    fsd ft4, 192(t1)
    flw ft4, 0(t1)
    fmax.s ft5, ft4, ft8
    feq.s a0, ft4, ft4
    feq.s a1, ft8, ft8
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered9
    fadd.s ft5, ft4, ft8
.Lsoftmax_ordered9:
    fmin.s ft4, ft5, ft9
    feq.s a0, ft5, ft5
    feq.s a1, ft9, ft9
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered10
    fadd.s ft4, ft5, ft9
.Lsoftmax_ordered10:
    fmv.x.w a0, ft4
    slt a0, a0, zero
    fmv.d ft5, ft10
    bne a0, zero, .Lsoftmax_chosen11
    fmv.d ft5, ft11
.Lsoftmax_chosen11:
    fmv.d ft0, fa0
    bne a0, zero, .Lsoftmax_chosen12
    fmv.d ft0, fa1
.Lsoftmax_chosen12:
    fmadd.s ft6, ft4, fa2, ft5
    fsub.s ft5, ft6, ft5
    fmv.x.w a0, ft6
    fmadd.s ft4, ft5, fa3, ft4
    fmadd.s ft4, ft5, fa4, ft4
    fmadd.s ft5, fa5, ft4, fa6
    fmadd.s ft5, ft5, ft4, fa7
    fmadd.s ft5, ft5, ft4, fs0
    fmadd.s ft5, ft5, ft4, fs1
    fmadd.s ft5, ft5, ft4, fs2
    fmadd.s ft4, ft5, ft4, fs2
    slli a0, a0, 23
    add a0, a0, a6
    fmv.w.x ft5, a0
    fmul.s ft4, ft4, ft5
    fmul.s ft4, ft4, ft0
    fsw ft4, 0(t1)
    flw ft4, 4(t1)
    fmax.s ft5, ft4, ft8
    feq.s a0, ft4, ft4
    feq.s a1, ft8, ft8
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered13
    fadd.s ft5, ft4, ft8
.Lsoftmax_ordered13:
    fmin.s ft4, ft5, ft9
    feq.s a0, ft5, ft5
    feq.s a1, ft9, ft9
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered14
    fadd.s ft4, ft5, ft9
.Lsoftmax_ordered14:
    fmv.x.w a0, ft4
    slt a0, a0, zero
    fmv.d ft5, ft10
    bne a0, zero, .Lsoftmax_chosen15
    fmv.d ft5, ft11
.Lsoftmax_chosen15:
    fmv.d ft0, fa0
    bne a0, zero, .Lsoftmax_chosen16
    fmv.d ft0, fa1
.Lsoftmax_chosen16:
    fmadd.s ft6, ft4, fa2, ft5
    fsub.s ft5, ft6, ft5
    fmv.x.w a0, ft6
    fmadd.s ft4, ft5, fa3, ft4
    fmadd.s ft4, ft5, fa4, ft4
    fmadd.s ft5, fa5, ft4, fa6
    fmadd.s ft5, ft5, ft4, fa7
    fmadd.s ft5, ft5, ft4, fs0
    fmadd.s ft5, ft5, ft4, fs1
    fmadd.s ft5, ft5, ft4, fs2
    fmadd.s ft4, ft5, ft4, fs2
    slli a0, a0, 23
    add a0, a0, a6
    fmv.w.x ft5, a0
    fmul.s ft4, ft4, ft5
    fmul.s ft4, ft4, ft0
    fsw ft4, 4(t1)
    flw ft4, 64(t1)
    fmax.s ft5, ft4, ft8
    feq.s a0, ft4, ft4
    feq.s a1, ft8, ft8
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered17
    fadd.s ft5, ft4, ft8
.Lsoftmax_ordered17:
    fmin.s ft4, ft5, ft9
    feq.s a0, ft5, ft5
    feq.s a1, ft9, ft9
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered18
    fadd.s ft4, ft5, ft9
.Lsoftmax_ordered18:
    fmv.x.w a0, ft4
    slt a0, a0, zero
    fmv.d ft5, ft10
    bne a0, zero, .Lsoftmax_chosen19
    fmv.d ft5, ft11
.Lsoftmax_chosen19:
    fmv.d ft0, fa0
    bne a0, zero, .Lsoftmax_chosen20
    fmv.d ft0, fa1
.Lsoftmax_chosen20:
    fmadd.s ft6, ft4, fa2, ft5
    fsub.s ft5, ft6, ft5
    fmv.x.w a0, ft6
    fmadd.s ft4, ft5, fa3, ft4
    fmadd.s ft4, ft5, fa4, ft4
    fmadd.s ft5, fa5, ft4, fa6
    fmadd.s ft5, ft5, ft4, fa7
    fmadd.s ft5, ft5, ft4, fs0
    fmadd.s ft5, ft5, ft4, fs1
    fmadd.s ft5, ft5, ft4, fs2
    fmadd.s ft4, ft5, ft4, fs2
    slli a0, a0, 23
    add a0, a0, a6
    fmv.w.x ft5, a0
    fmul.s ft4, ft4, ft5
    fmul.s ft4, ft4, ft0
    fsw ft4, 64(t1)
    flw ft4, 68(t1)
    fmax.s ft5, ft4, ft8
    feq.s a0, ft4, ft4
    feq.s a1, ft8, ft8
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered21
    fadd.s ft5, ft4, ft8
.Lsoftmax_ordered21:
    fmin.s ft4, ft5, ft9
    feq.s a0, ft5, ft5
    feq.s a1, ft9, ft9
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered22
    fadd.s ft4, ft5, ft9
.Lsoftmax_ordered22:
    fmv.x.w a0, ft4
    slt a0, a0, zero
    fmv.d ft5, ft10
    bne a0, zero, .Lsoftmax_chosen23
    fmv.d ft5, ft11
.Lsoftmax_chosen23:
    fmv.d ft0, fa0
    bne a0, zero, .Lsoftmax_chosen24
    fmv.d ft0, fa1
.Lsoftmax_chosen24:
    fmadd.s ft6, ft4, fa2, ft5
    fsub.s ft5, ft6, ft5
    fmv.x.w a0, ft6
    fmadd.s ft4, ft5, fa3, ft4
    fmadd.s ft4, ft5, fa4, ft4
    fmadd.s ft5, fa5, ft4, fa6
    fmadd.s ft5, ft5, ft4, fa7
    fmadd.s ft5, ft5, ft4, fs0
    fmadd.s ft5, ft5, ft4, fs1
    fmadd.s ft5, ft5, ft4, fs2
    fmadd.s ft4, ft5, ft4, fs2
    slli a0, a0, 23
    add a0, a0, a6
    fmv.w.x ft5, a0
    fmul.s ft4, ft4, ft5
    fmul.s ft4, ft4, ft0
    fsw ft4, 68(t1)
    flw ft4, 128(t1)
    fmax.s ft5, ft4, ft8
    feq.s a0, ft4, ft4
    feq.s a1, ft8, ft8
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered25
    fadd.s ft5, ft4, ft8
.Lsoftmax_ordered25:
    fmin.s ft4, ft5, ft9
    feq.s a0, ft5, ft5
    feq.s a1, ft9, ft9
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered26
    fadd.s ft4, ft5, ft9
.Lsoftmax_ordered26:
    fmv.x.w a0, ft4
    slt a0, a0, zero
    fmv.d ft5, ft10
    bne a0, zero, .Lsoftmax_chosen27
    fmv.d ft5, ft11
.Lsoftmax_chosen27:
    fmv.d ft0, fa0
    bne a0, zero, .Lsoftmax_chosen28
    fmv.d ft0, fa1
.Lsoftmax_chosen28:
    fmadd.s ft6, ft4, fa2, ft5
    fsub.s ft5, ft6, ft5
    fmv.x.w a0, ft6
    fmadd.s ft4, ft5, fa3, ft4
    fmadd.s ft4, ft5, fa4, ft4
    fmadd.s ft5, fa5, ft4, fa6
    fmadd.s ft5, ft5, ft4, fa7
    fmadd.s ft5, ft5, ft4, fs0
    fmadd.s ft5, ft5, ft4, fs1
    fmadd.s ft5, ft5, ft4, fs2
    fmadd.s ft4, ft5, ft4, fs2
    slli a0, a0, 23
    add a0, a0, a6
    fmv.w.x ft5, a0
    fmul.s ft4, ft4, ft5
    fmul.s ft4, ft4, ft0
    fsw ft4, 128(t1)
    flw ft4, 132(t1)
    fmax.s ft5, ft4, ft8
    feq.s a0, ft4, ft4
    feq.s a1, ft8, ft8
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered29
    fadd.s ft5, ft4, ft8
.Lsoftmax_ordered29:
    fmin.s ft4, ft5, ft9
    feq.s a0, ft5, ft5
    feq.s a1, ft9, ft9
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered30
    fadd.s ft4, ft5, ft9
.Lsoftmax_ordered30:
    fmv.x.w a0, ft4
    slt a0, a0, zero
    fmv.d ft5, ft10
    bne a0, zero, .Lsoftmax_chosen31
    fmv.d ft5, ft11
.Lsoftmax_chosen31:
    fmv.d ft0, fa0
    bne a0, zero, .Lsoftmax_chosen32
    fmv.d ft0, fa1
.Lsoftmax_chosen32:
    fmadd.s ft6, ft4, fa2, ft5
    fsub.s ft5, ft6, ft5
    fmv.x.w a0, ft6
    fmadd.s ft4, ft5, fa3, ft4
    fmadd.s ft4, ft5, fa4, ft4
    fmadd.s ft5, fa5, ft4, fa6
    fmadd.s ft5, ft5, ft4, fa7
    fmadd.s ft5, ft5, ft4, fs0
    fmadd.s ft5, ft5, ft4, fs1
    fmadd.s ft5, ft5, ft4, fs2
    fmadd.s ft4, ft5, ft4, fs2
    slli a0, a0, 23
    add a0, a0, a6
    fmv.w.x ft5, a0
    fmul.s ft4, ft4, ft5
    fmul.s ft4, ft4, ft0
    fsw ft4, 132(t1)
    flw ft4, 192(t1)
    fmax.s ft5, ft4, ft8
    feq.s a0, ft4, ft4
    feq.s a1, ft8, ft8
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered33
    fadd.s ft5, ft4, ft8
.Lsoftmax_ordered33:
    fmin.s ft4, ft5, ft9
    feq.s a0, ft5, ft5
    feq.s a1, ft9, ft9
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered34
    fadd.s ft4, ft5, ft9
.Lsoftmax_ordered34:
    fmv.x.w a0, ft4
    slt a0, a0, zero
    fmv.d ft5, ft10
    bne a0, zero, .Lsoftmax_chosen35
    fmv.d ft5, ft11
.Lsoftmax_chosen35:
    fmv.d ft0, fa0
    bne a0, zero, .Lsoftmax_chosen36
    fmv.d ft0, fa1
.Lsoftmax_chosen36:
    fmadd.s ft6, ft4, fa2, ft5
    fsub.s ft5, ft6, ft5
    fmv.x.w a0, ft6
    fmadd.s ft4, ft5, fa3, ft4
    fmadd.s ft4, ft5, fa4, ft4
    fmadd.s ft5, fa5, ft4, fa6
    fmadd.s ft5, ft5, ft4, fa7
    fmadd.s ft5, ft5, ft4, fs0
    fmadd.s ft5, ft5, ft4, fs1
    fmadd.s ft5, ft5, ft4, fs2
    fmadd.s ft4, ft5, ft4, fs2
    slli a0, a0, 23
    add a0, a0, a6
    fmv.w.x ft5, a0
    fmul.s ft4, ft4, ft5
    fmul.s ft4, ft4, ft0
    fsw ft4, 192(t1)
    flw ft4, 196(t1)
    fmax.s ft5, ft4, ft8
    feq.s a0, ft4, ft4
    feq.s a1, ft8, ft8
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered37
    fadd.s ft5, ft4, ft8
.Lsoftmax_ordered37:
    fmin.s ft4, ft5, ft9
    feq.s a0, ft5, ft5
    feq.s a1, ft9, ft9
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered38
    fadd.s ft4, ft5, ft9
.Lsoftmax_ordered38:
    fmv.x.w a0, ft4
    slt a0, a0, zero
    fmv.d ft5, ft10
    bne a0, zero, .Lsoftmax_chosen39
    fmv.d ft5, ft11
.Lsoftmax_chosen39:
    fmv.d ft0, fa0
    bne a0, zero, .Lsoftmax_chosen40
    fmv.d ft0, fa1
.Lsoftmax_chosen40:
    fmadd.s ft6, ft4, fa2, ft5
    fsub.s ft5, ft6, ft5
    fmv.x.w a0, ft6
    fmadd.s ft4, ft5, fa3, ft4
    fmadd.s ft4, ft5, fa4, ft4
    fmadd.s ft5, fa5, ft4, fa6
    fmadd.s ft5, ft5, ft4, fa7
    fmadd.s ft5, ft5, ft4, fs0
    fmadd.s ft5, ft5, ft4, fs1
    fmadd.s ft5, ft5, ft4, fs2
    fmadd.s ft4, ft5, ft4, fs2
    slli a0, a0, 23
    add a0, a0, a6
    fmv.w.x ft5, a0
    fmul.s ft4, ft4, ft5
    fmul.s ft4, ft4, ft0
    fsw ft4, 196(t1)
    addi a7, a7, 8
    addi t1, t1, 8
    bne a7, t2, .Lsoftmax_loop41
    fmv.d ft4, fs3
    fmv.d ft6, fs3
    fmv.d ft0, fs3
    fmv.d ft1, fs3
    mv a0, a2
    addi a1, a0, 64
.Lsoftmax_loop42:
    fld ft5, 0(a0)
    vfadd.s ft4, ft4, ft5
    fld ft5, 64(a0)
    vfadd.s ft6, ft6, ft5
    fld ft5, 128(a0)
    vfadd.s ft0, ft0, ft5
    fld ft5, 192(a0)
    vfadd.s ft1, ft1, ft5
    addi a0, a0, 8
    bne a0, a1, .Lsoftmax_loop42
    fsd ft4, 0(sp)
    flw ft4, 0(sp)
    flw ft5, 4(sp)
    fadd.s ft4, ft4, ft5
    fadd.s fs8, fs8, ft4
    fsd ft6, 0(sp)
    flw ft4, 0(sp)
    flw ft5, 4(sp)
    fadd.s ft4, ft4, ft5
    fadd.s fs9, fs9, ft4
    fsd ft0, 0(sp)
    flw ft4, 0(sp)
    flw ft5, 4(sp)
    fadd.s ft4, ft4, ft5
    fadd.s fs10, fs10, ft4
    fsd ft1, 0(sp)
    flw ft4, 0(sp)
    flw ft5, 4(sp)
    fadd.s ft4, ft4, ft5
    fadd.s ft3, ft3, ft4
    mv a0, a2
    addi a1, a0, 64
.Lsoftmax_loop43:
    fld ft4, 0(a0)
    vfcpka.s.s ft5, fs8, fs8
    vfdiv.s ft4, ft4, ft5
    fsd ft4, 0(a4)
    fld ft4, 64(a0)
    vfcpka.s.s ft5, fs9, fs9
    vfdiv.s ft4, ft4, ft5
    fsd ft4, 64(a4)
    fld ft4, 128(a0)
    vfcpka.s.s ft5, fs10, fs10
    vfdiv.s ft4, ft4, ft5
    fsd ft4, 128(a4)
    fld ft4, 192(a0)
    vfcpka.s.s ft5, ft3, ft3
    vfdiv.s ft4, ft4, ft5
    fsd ft4, 192(a4)
    addi a0, a0, 8
    addi a4, a4, 8
    bne a0, a1, .Lsoftmax_loop43
    addi a5, a5, 256
    addi a7, a7, 192
    addi a4, a4, 192
    bne a5, t0, .Lsoftmax_loop44
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
