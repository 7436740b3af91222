# kernel: softmax:16x16 f32
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 17913
# cycles_of_pdojo_snitch: 17913
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
    addi sp, sp, -176
    fsd fs0, 80(sp)
    fsd fs1, 88(sp)
    fsd fs2, 96(sp)
    fsd fs3, 104(sp)
    fsd fs4, 112(sp)
    fsd fs5, 120(sp)
    fsd fs6, 128(sp)
    fsd fs7, 136(sp)
    fsd fs8, 144(sp)
    fsd fs9, 152(sp)
    fsd fs10, 160(sp)
    fsd fs11, 168(sp)
    mv a3, a0
    li a0, -8388608
    fmv.w.x ft3, a0
    fsd ft3, 72(sp)
    fmv.w.x ft3, zero
    fsd ft3, 64(sp)
    la a0, softmax_constants
    fld ft7, 0(a0)
    scfgwi zero, 32
    li a0, 3
    scfgwi a0, 64
    li a0, 64
    scfgwi a0, 192
    li a4, 7
    scfgwi a4, 96
    li a0, -184
    scfgwi a0, 224
    li a0, -1026555904
    fmv.w.x ft8, a0
    li a0, 1118961664
    fmv.w.x ft9, a0
    li a0, 1262485655
    fmv.w.x ft10, a0
    li a0, 1262485607
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
    li a0, 1065353216
    fmv.w.x fs2, a0
    fcvt.d.w fs3, zero
    mv t0, a3
    mv t1, a3
    mv a5, a1
    addi a6, t0, 1024
.Lsoftmax_loop34:
    fld ft3, 72(sp)
    fmv.d fs4, ft3
    fld ft3, 72(sp)
    fmv.d fs5, ft3
    fld ft3, 72(sp)
    fmv.d fs6, ft3
    fld ft3, 72(sp)
    fmv.d fs7, ft3
    fld ft3, 64(sp)
    fmv.d fs8, ft3
    fld ft3, 64(sp)
    fmv.d fs9, ft3
    fld ft3, 64(sp)
    fmv.d fs10, ft3
    fld ft3, 64(sp)
    fmv.d fs11, ft3
    fmv.d ft3, ft7
    fmv.d ft4, ft7
    fmv.d ft5, ft7
    fmv.d ft6, ft7
    scfgwi t0, 800
    csrrsi zero, 1984, 1
    frep.o a4, 4, 0, 0
    vfmax.s ft3, ft3, ft0
    vfmax.s ft4, ft4, ft0
    vfmax.s ft5, ft5, ft0
    vfmax.s ft6, ft6, ft0
    csrrci zero, 1984, 1
    fsd ft3, 0(sp)
    fsd ft4, 8(sp)
    fsd ft5, 16(sp)
    fsd ft6, 24(sp)
    flw ft3, 0(sp)
    flw ft4, 4(sp)
    flw ft5, 8(sp)
    flw ft6, 12(sp)
    flw ft0, 16(sp)
    fmax.s ft1, ft3, ft4
    flw ft3, 20(sp)
    fmax.s ft4, ft5, ft6
    flw ft5, 24(sp)
    fmax.s ft6, ft0, ft3
    flw ft3, 28(sp)
    fmax.s fs4, fs4, ft1
    fmax.s fs5, fs5, ft4
    fmax.s ft3, ft5, ft3
    fmax.s fs6, fs6, ft6
    fmax.s fs7, fs7, ft3
    mv a7, a2
    addi t2, t1, 64
.Lsoftmax_loop33:
    fld ft3, 0(t1)
    vfcpka.s.s ft4, fs4, fs4
    vfsub.s ft3, ft3, ft4
    fld ft4, 64(t1)
    fsd ft3, 0(a7)
    flw ft3, 0(a7)
    vfcpka.s.s ft5, fs5, fs5
    feq.s a0, ft3, ft3
    vfsub.s ft4, ft4, ft5
    fmax.s ft5, ft3, ft8
    bne a0, zero, .Lsoftmax_ordered1
    fadd.s ft5, ft3, ft8
.Lsoftmax_ordered1:
    fld ft3, 128(t1)
    fsd ft4, 64(a7)
    vfcpka.s.s ft4, fs6, fs6
    feq.s a0, ft5, ft5
    vfsub.s ft3, ft3, ft4
    fmin.s ft6, ft5, ft9
    bne a0, zero, .Lsoftmax_ordered2
    fadd.s ft6, ft5, ft9
.Lsoftmax_ordered2:
    fld ft4, 192(t1)
    fsd ft3, 128(a7)
    vfcpka.s.s ft3, fs7, fs7
    fmv.x.w a0, ft6
    vfsub.s ft3, ft4, ft3
    fmv.d ft4, ft10
    slt a0, a0, zero
    bne a0, zero, .Lsoftmax_chosen3
    fmv.d ft4, ft11
.Lsoftmax_chosen3:
    fsd ft3, 192(a7)
    fmadd.s ft3, ft6, fa2, ft4
    fsub.s ft4, ft3, ft4
    fmv.x.w a1, ft3
    fmadd.s ft3, ft4, fa3, ft6
    flw ft5, 4(a7)
    feq.s a3, ft5, ft5
    fmadd.s ft4, ft4, fa4, ft3
    fmax.s ft6, ft5, ft8
    bne a3, zero, .Lsoftmax_ordered5
    fadd.s ft6, ft5, ft8
.Lsoftmax_ordered5:
    fmadd.s ft3, fa5, ft4, fa6
    fmadd.s ft3, ft3, ft4, fa7
    fmadd.s ft3, ft3, ft4, fs0
    fmadd.s ft3, ft3, ft4, fs1
    fmadd.s ft3, ft3, ft4, fs2
    feq.s a3, ft6, ft6
    fmadd.s ft3, ft3, ft4, fs2
    fmin.s ft5, ft6, ft9
    slli a1, a1, 23
    bne a3, zero, .Lsoftmax_ordered6
    fadd.s ft5, ft6, ft9
.Lsoftmax_ordered6:
    fmv.w.x ft4, a1
    fmul.s ft3, ft3, ft4
    fmv.d ft4, fa0
    bne a0, zero, .Lsoftmax_chosen4
    fmv.d ft4, fa1
.Lsoftmax_chosen4:
    fmv.x.w a0, ft5
    fmul.s ft3, ft3, ft4
    fmv.d ft4, ft10
    slt a0, a0, zero
    bne a0, zero, .Lsoftmax_chosen7
    fmv.d ft4, ft11
.Lsoftmax_chosen7:
    fsw ft3, 0(a7)
    fmadd.s ft3, ft5, fa2, ft4
    fsub.s ft4, ft3, ft4
    fmv.x.w a1, ft3
    fmadd.s ft3, ft4, fa3, ft5
    flw ft5, 64(a7)
    feq.s a3, ft5, ft5
    fmadd.s ft4, ft4, fa4, ft3
    fmax.s ft6, ft5, ft8
    bne a3, zero, .Lsoftmax_ordered9
    fadd.s ft6, ft5, ft8
.Lsoftmax_ordered9:
    fmadd.s ft3, fa5, ft4, fa6
    fmadd.s ft3, ft3, ft4, fa7
    fmadd.s ft3, ft3, ft4, fs0
    fmadd.s ft3, ft3, ft4, fs1
    fmadd.s ft3, ft3, ft4, fs2
    feq.s a3, ft6, ft6
    fmadd.s ft3, ft3, ft4, fs2
    fmin.s ft5, ft6, ft9
    slli a1, a1, 23
    bne a3, zero, .Lsoftmax_ordered10
    fadd.s ft5, ft6, ft9
.Lsoftmax_ordered10:
    fmv.w.x ft4, a1
    fmul.s ft3, ft3, ft4
    fmv.d ft4, fa0
    bne a0, zero, .Lsoftmax_chosen8
    fmv.d ft4, fa1
.Lsoftmax_chosen8:
    fmv.x.w a0, ft5
    fmul.s ft3, ft3, ft4
    fmv.d ft4, ft10
    slt a0, a0, zero
    bne a0, zero, .Lsoftmax_chosen11
    fmv.d ft4, ft11
.Lsoftmax_chosen11:
    fsw ft3, 4(a7)
    fmadd.s ft3, ft5, fa2, ft4
    fsub.s ft4, ft3, ft4
    fmv.x.w a1, ft3
    fmadd.s ft3, ft4, fa3, ft5
    flw ft5, 68(a7)
    feq.s a3, ft5, ft5
    fmadd.s ft4, ft4, fa4, ft3
    fmax.s ft6, ft5, ft8
    bne a3, zero, .Lsoftmax_ordered13
    fadd.s ft6, ft5, ft8
.Lsoftmax_ordered13:
    fmadd.s ft3, fa5, ft4, fa6
    fmadd.s ft3, ft3, ft4, fa7
    fmadd.s ft3, ft3, ft4, fs0
    fmadd.s ft3, ft3, ft4, fs1
    fmadd.s ft3, ft3, ft4, fs2
    feq.s a3, ft6, ft6
    fmadd.s ft3, ft3, ft4, fs2
    fmin.s ft5, ft6, ft9
    slli a1, a1, 23
    bne a3, zero, .Lsoftmax_ordered14
    fadd.s ft5, ft6, ft9
.Lsoftmax_ordered14:
    fmv.w.x ft4, a1
    fmul.s ft3, ft3, ft4
    fmv.d ft4, fa0
    bne a0, zero, .Lsoftmax_chosen12
    fmv.d ft4, fa1
.Lsoftmax_chosen12:
    fmv.x.w a0, ft5
    fmul.s ft3, ft3, ft4
    fmv.d ft4, ft10
    slt a0, a0, zero
    bne a0, zero, .Lsoftmax_chosen15
    fmv.d ft4, ft11
.Lsoftmax_chosen15:
    fsw ft3, 64(a7)
    fmadd.s ft3, ft5, fa2, ft4
    fsub.s ft4, ft3, ft4
    fmv.x.w a1, ft3
    fmadd.s ft3, ft4, fa3, ft5
    flw ft5, 128(a7)
    feq.s a3, ft5, ft5
    fmadd.s ft4, ft4, fa4, ft3
    fmax.s ft6, ft5, ft8
    bne a3, zero, .Lsoftmax_ordered17
    fadd.s ft6, ft5, ft8
.Lsoftmax_ordered17:
    fmadd.s ft3, fa5, ft4, fa6
    fmadd.s ft3, ft3, ft4, fa7
    fmadd.s ft3, ft3, ft4, fs0
    fmadd.s ft3, ft3, ft4, fs1
    fmadd.s ft3, ft3, ft4, fs2
    feq.s a3, ft6, ft6
    fmadd.s ft3, ft3, ft4, fs2
    fmin.s ft5, ft6, ft9
    slli a1, a1, 23
    bne a3, zero, .Lsoftmax_ordered18
    fadd.s ft5, ft6, ft9
.Lsoftmax_ordered18:
    fmv.w.x ft4, a1
    fmul.s ft3, ft3, ft4
    fmv.d ft4, fa0
    bne a0, zero, .Lsoftmax_chosen16
    fmv.d ft4, fa1
.Lsoftmax_chosen16:
    fmv.x.w a0, ft5
    fmul.s ft3, ft3, ft4
    fmv.d ft4, ft10
    slt a0, a0, zero
    bne a0, zero, .Lsoftmax_chosen19
    fmv.d ft4, ft11
.Lsoftmax_chosen19:
    fsw ft3, 68(a7)
    fmadd.s ft3, ft5, fa2, ft4
    fsub.s ft4, ft3, ft4
    fmv.x.w a1, ft3
    fmadd.s ft3, ft4, fa3, ft5
    flw ft5, 132(a7)
    feq.s a3, ft5, ft5
    fmadd.s ft4, ft4, fa4, ft3
    fmax.s ft6, ft5, ft8
    bne a3, zero, .Lsoftmax_ordered21
    fadd.s ft6, ft5, ft8
.Lsoftmax_ordered21:
    fmadd.s ft3, fa5, ft4, fa6
    fmadd.s ft3, ft3, ft4, fa7
    fmadd.s ft3, ft3, ft4, fs0
    fmadd.s ft3, ft3, ft4, fs1
    fmadd.s ft3, ft3, ft4, fs2
    feq.s a3, ft6, ft6
    fmadd.s ft3, ft3, ft4, fs2
    fmin.s ft5, ft6, ft9
    slli a1, a1, 23
    bne a3, zero, .Lsoftmax_ordered22
    fadd.s ft5, ft6, ft9
.Lsoftmax_ordered22:
    fmv.w.x ft4, a1
    fmul.s ft3, ft3, ft4
    fmv.d ft4, fa0
    bne a0, zero, .Lsoftmax_chosen20
    fmv.d ft4, fa1
.Lsoftmax_chosen20:
    fmv.x.w a0, ft5
    fmul.s ft3, ft3, ft4
    fmv.d ft4, ft10
    slt a0, a0, zero
    bne a0, zero, .Lsoftmax_chosen23
    fmv.d ft4, ft11
.Lsoftmax_chosen23:
    fsw ft3, 128(a7)
    fmadd.s ft3, ft5, fa2, ft4
    fsub.s ft4, ft3, ft4
    fmv.x.w a1, ft3
    fmadd.s ft3, ft4, fa3, ft5
    flw ft5, 192(a7)
    feq.s a3, ft5, ft5
    fmadd.s ft4, ft4, fa4, ft3
    fmax.s ft6, ft5, ft8
    bne a3, zero, .Lsoftmax_ordered25
    fadd.s ft6, ft5, ft8
.Lsoftmax_ordered25:
    fmadd.s ft3, fa5, ft4, fa6
    fmadd.s ft3, ft3, ft4, fa7
    fmadd.s ft3, ft3, ft4, fs0
    fmadd.s ft3, ft3, ft4, fs1
    fmadd.s ft3, ft3, ft4, fs2
    feq.s a3, ft6, ft6
    fmadd.s ft3, ft3, ft4, fs2
    fmin.s ft5, ft6, ft9
    slli a1, a1, 23
    bne a3, zero, .Lsoftmax_ordered26
    fadd.s ft5, ft6, ft9
.Lsoftmax_ordered26:
    fmv.w.x ft4, a1
    fmul.s ft3, ft3, ft4
    fmv.d ft4, fa0
    bne a0, zero, .Lsoftmax_chosen24
    fmv.d ft4, fa1
.Lsoftmax_chosen24:
    fmv.x.w a0, ft5
    fmul.s ft6, ft3, ft4
    fmv.d ft3, ft10
    slt a0, a0, zero
    bne a0, zero, .Lsoftmax_chosen27
    fmv.d ft3, ft11
.Lsoftmax_chosen27:
    fmadd.s ft4, ft5, fa2, ft3
    fsub.s ft3, ft4, ft3
    fmadd.s ft5, ft3, fa3, ft5
    fmadd.s ft5, ft3, fa4, ft5
    fmv.x.w a1, ft4
    fmadd.s ft3, fa5, ft5, fa6
    fmadd.s ft3, ft3, ft5, fa7
    fmadd.s ft3, ft3, ft5, fs0
    fmadd.s ft3, ft3, ft5, fs1
    fmadd.s ft3, ft3, ft5, fs2
    fmadd.s ft3, ft3, ft5, fs2
    slli a1, a1, 23
    fmv.w.x ft4, a1
    fmul.s ft3, ft3, ft4
    fmv.d ft4, fa0
    bne a0, zero, .Lsoftmax_chosen28
    fmv.d ft4, fa1
.Lsoftmax_chosen28:
    fmul.s ft0, ft3, ft4
    flw ft3, 196(a7)
    feq.s a0, ft3, ft3
    fmax.s ft4, ft3, ft8
    bne a0, zero, .Lsoftmax_ordered29
    fadd.s ft4, ft3, ft8
.Lsoftmax_ordered29:
    feq.s a0, ft4, ft4
    fmin.s ft3, ft4, ft9
    bne a0, zero, .Lsoftmax_ordered30
    fadd.s ft3, ft4, ft9
.Lsoftmax_ordered30:
    fmv.x.w a0, ft3
    fmv.d ft4, ft10
    slt a0, a0, zero
    bne a0, zero, .Lsoftmax_chosen31
    fmv.d ft4, ft11
.Lsoftmax_chosen31:
    fmadd.s ft5, ft3, fa2, ft4
    fsub.s ft4, ft5, ft4
    fmv.x.w a1, ft5
    fmadd.s ft3, ft4, fa3, ft3
    fmadd.s ft4, ft4, fa4, ft3
    fmadd.s ft3, fa5, ft4, fa6
    fmadd.s ft3, ft3, ft4, fa7
    fmadd.s ft3, ft3, ft4, fs0
    fmadd.s ft3, ft3, ft4, fs1
    fmadd.s ft3, ft3, ft4, fs2
    fmadd.s ft3, ft3, ft4, fs2
    slli a1, a1, 23
    fmv.w.x ft4, a1
    fmul.s ft3, ft3, ft4
    fmv.d ft4, fa0
    bne a0, zero, .Lsoftmax_chosen32
    fmv.d ft4, fa1
.Lsoftmax_chosen32:
    fmul.s ft3, ft3, ft4
    fsw ft6, 132(a7)
    fsw ft0, 192(a7)
    addi t1, t1, 8
    fsw ft3, 196(a7)
    addi a7, a7, 8
    bne t1, t2, .Lsoftmax_loop33
    fmv.d ft0, fs3
    fmv.d ft1, fs3
    fld ft3, 0(a2)
    fmv.d ft2, fs3
    fmv.d fs4, fs3
    fld ft4, 64(a2)
    fld ft5, 128(a2)
    fld ft6, 192(a2)
    vfadd.s ft0, ft0, ft3
    vfadd.s ft1, ft1, ft4
    vfadd.s ft2, ft2, ft5
    vfadd.s fs4, fs4, ft6
    fld ft3, 8(a2)
    fld ft4, 72(a2)
    fld ft5, 136(a2)
    fld ft6, 200(a2)
    vfadd.s ft0, ft0, ft3
    vfadd.s ft1, ft1, ft4
    vfadd.s ft2, ft2, ft5
    vfadd.s fs4, fs4, ft6
    fld ft3, 16(a2)
    fld ft4, 80(a2)
    fld ft5, 144(a2)
    fld ft6, 208(a2)
    vfadd.s ft0, ft0, ft3
    vfadd.s ft1, ft1, ft4
    vfadd.s ft2, ft2, ft5
    vfadd.s fs4, fs4, ft6
    fld ft3, 24(a2)
    fld ft4, 88(a2)
    fld ft5, 152(a2)
    fld ft6, 216(a2)
    vfadd.s ft0, ft0, ft3
    vfadd.s ft1, ft1, ft4
    vfadd.s ft2, ft2, ft5
    vfadd.s fs4, fs4, ft6
    fld ft3, 32(a2)
    fld ft4, 96(a2)
    fld ft5, 160(a2)
    fld ft6, 224(a2)
    vfadd.s ft0, ft0, ft3
    vfadd.s ft1, ft1, ft4
    vfadd.s ft2, ft2, ft5
    vfadd.s fs4, fs4, ft6
    fld ft3, 40(a2)
    fld ft4, 104(a2)
    fld ft5, 168(a2)
    fld ft6, 232(a2)
    vfadd.s ft0, ft0, ft3
    vfadd.s ft1, ft1, ft4
    vfadd.s ft2, ft2, ft5
    vfadd.s fs4, fs4, ft6
    fld ft3, 48(a2)
    fld ft4, 112(a2)
    fld ft5, 176(a2)
    fld ft6, 240(a2)
    vfadd.s ft0, ft0, ft3
    vfadd.s ft1, ft1, ft4
    vfadd.s ft2, ft2, ft5
    vfadd.s fs4, fs4, ft6
    fld ft3, 56(a2)
    fld ft4, 120(a2)
    fld ft5, 184(a2)
    fld ft6, 248(a2)
    vfadd.s ft0, ft0, ft3
    vfadd.s ft1, ft1, ft4
    vfadd.s ft2, ft2, ft5
    vfadd.s fs4, fs4, ft6
    fsd ft0, 32(sp)
    flw ft3, 32(sp)
    flw ft4, 36(sp)
    fsd ft1, 40(sp)
    flw ft5, 40(sp)
    flw ft6, 44(sp)
    fsd ft2, 48(sp)
    fadd.s ft3, ft3, ft4
    flw ft4, 48(sp)
    flw ft0, 52(sp)
    fsd fs4, 56(sp)
    fadd.s ft5, ft5, ft6
    flw ft6, 56(sp)
    flw ft1, 60(sp)
    fadd.s fs8, fs8, ft3
    fadd.s ft3, ft4, ft0
    fadd.s fs9, fs9, ft5
    fadd.s ft4, ft6, ft1
    fadd.s fs10, fs10, ft3
    fadd.s fs11, fs11, ft4
    fld ft3, 0(a2)
    vfcpka.s.s ft6, fs8, fs8
    fld ft4, 64(a2)
    vfcpka.s.s ft0, fs9, fs9
    fld ft5, 128(a2)
    vfcpka.s.s ft1, fs10, fs10
    vfdiv.s fs5, ft3, ft6
    fld ft3, 192(a2)
    vfcpka.s.s fs4, fs11, fs11
    vfdiv.s ft2, ft4, ft0
    fld ft4, 8(a2)
    vfdiv.s fs6, ft5, ft1
    fld ft5, 72(a2)
    vfdiv.s fs7, ft3, fs4
    fld ft3, 136(a2)
    vfdiv.s fs8, ft4, ft6
    fld ft4, 200(a2)
    vfdiv.s fs9, ft5, ft0
    fld ft5, 16(a2)
    vfdiv.s fs10, ft3, ft1
    vfdiv.s fs11, ft4, fs4
    vfdiv.s ft5, ft5, ft6
    fsd fs5, 0(a5)
    fld ft3, 80(a2)
    fsd ft2, 64(a5)
    fld ft4, 144(a2)
    vfdiv.s ft2, ft3, ft0
    fsd fs6, 128(a5)
    fld ft3, 208(a2)
    vfdiv.s fs5, ft4, ft1
    fsd fs7, 192(a5)
    fld ft4, 24(a2)
    vfdiv.s fs6, ft3, fs4
    fsd fs8, 8(a5)
    fld ft3, 88(a2)
    vfdiv.s fs7, ft4, ft6
    fsd fs9, 72(a5)
    fld ft4, 152(a2)
    vfdiv.s fs8, ft3, ft0
    fsd fs10, 136(a5)
    fld ft3, 216(a2)
    vfdiv.s fs9, ft4, ft1
    fsd fs11, 200(a5)
    fld ft4, 32(a2)
    vfdiv.s fs10, ft3, fs4
    fsd ft5, 16(a5)
    fld ft3, 96(a2)
    vfdiv.s ft5, ft4, ft6
    fsd ft2, 80(a5)
    fld ft4, 160(a2)
    vfdiv.s ft2, ft3, ft0
    fsd fs5, 144(a5)
    fld ft3, 224(a2)
    vfdiv.s fs5, ft4, ft1
    fsd fs6, 208(a5)
    fld ft4, 40(a2)
    vfdiv.s fs6, ft3, fs4
    fsd fs7, 24(a5)
    fld ft3, 104(a2)
    vfdiv.s fs7, ft4, ft6
    fsd fs8, 88(a5)
    fld ft4, 168(a2)
    vfdiv.s fs8, ft3, ft0
    fsd fs9, 152(a5)
    fld ft3, 232(a2)
    vfdiv.s fs9, ft4, ft1
    fsd fs10, 216(a5)
    fld ft4, 48(a2)
    vfdiv.s fs10, ft3, fs4
    fsd ft5, 32(a5)
    fld ft3, 112(a2)
    vfdiv.s ft5, ft4, ft6
    fsd ft2, 96(a5)
    fld ft4, 176(a2)
    vfdiv.s ft2, ft3, ft0
    fsd fs5, 160(a5)
    fld ft3, 240(a2)
    vfdiv.s fs5, ft4, ft1
    fsd fs6, 224(a5)
    fld ft4, 56(a2)
    vfdiv.s fs6, ft3, fs4
    fsd fs7, 40(a5)
    fld ft3, 120(a2)
    vfdiv.s fs7, ft4, ft6
    fld ft4, 184(a2)
    vfdiv.s ft3, ft3, ft0
    fld ft6, 248(a2)
    vfdiv.s ft4, ft4, ft1
    fsd fs8, 104(a5)
    vfdiv.s ft6, ft6, fs4
    fsd fs9, 168(a5)
    fsd fs10, 232(a5)
    fsd ft5, 48(a5)
    fsd ft2, 112(a5)
    fsd fs5, 176(a5)
    fsd fs6, 240(a5)
    addi t0, t0, 256
    fsd fs7, 56(a5)
    addi t1, t1, 192
    fsd ft3, 120(a5)
    fsd ft4, 184(a5)
    fsd ft6, 248(a5)
    addi a5, a5, 256
    bne t0, a6, .Lsoftmax_loop34
    fld fs0, 80(sp)
    fld fs1, 88(sp)
    fld fs2, 96(sp)
    fld fs3, 104(sp)
    fld fs4, 112(sp)
    fld fs5, 120(sp)
    fld fs6, 128(sp)
    fld fs7, 136(sp)
    fld fs8, 144(sp)
    fld fs9, 152(sp)
    fld fs10, 160(sp)
    fld fs11, 168(sp)
    addi sp, sp, 176
    ret
