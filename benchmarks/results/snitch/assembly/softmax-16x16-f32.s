# kernel: softmax:16x16 f32
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 19133
# cycles_of_pdojo_snitch: 19133
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
    addi sp, sp, -208
    fsd fs0, 112(sp)
    fsd fs1, 120(sp)
    fsd fs2, 128(sp)
    fsd fs3, 136(sp)
    fsd fs4, 144(sp)
    fsd fs5, 152(sp)
    fsd fs6, 160(sp)
    fsd fs7, 168(sp)
    fsd fs8, 176(sp)
    fsd fs9, 184(sp)
    fsd fs10, 192(sp)
    fsd fs11, 200(sp)
    mv t0, a0
    mv a4, a2
    li a0, -8388608
    fmv.w.x ft3, a0
    fsd ft3, 104(sp)
    fmv.w.x ft3, zero
    fsd ft3, 96(sp)
    la a0, softmax_constants
    fld ft7, 0(a0)
    scfgwi zero, 32
    li a0, 3
    scfgwi a0, 64
    li a0, 64
    scfgwi a0, 192
    li a6, 7
    scfgwi a6, 96
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
    li t1, 1065353216
    fmv.w.x fs2, t1
    fcvt.d.w fs3, zero
    mv t2, t0
    mv a7, a1
    addi t3, t0, 1024
.Lsoftmax_loop44:
    fld ft3, 104(sp)
    fmv.d fs4, ft3
    fld ft3, 104(sp)
    fmv.d fs5, ft3
    fld ft3, 104(sp)
    fmv.d fs6, ft3
    fld ft3, 104(sp)
    fmv.d fs7, ft3
    fld ft3, 96(sp)
    fmv.d fs8, ft3
    fld ft3, 96(sp)
    fmv.d fs9, ft3
    fld ft3, 96(sp)
    fmv.d fs10, ft3
    fld ft3, 96(sp)
    fmv.d ft4, ft3
    fmv.d ft3, ft7
    fmv.d ft5, ft7
    fmv.d ft6, ft7
    fmv.d fs11, ft7
    scfgwi t0, 800
    csrrsi zero, 1984, 1
    frep.o a6, 4, 0, 0
    vfmax.s ft3, ft3, ft0
    vfmax.s ft5, ft5, ft0
    vfmax.s ft6, ft6, ft0
    vfmax.s fs11, fs11, ft0
    csrrci zero, 1984, 1
    fsd ft3, 0(sp)
    feq.s a0, fs4, fs4
    fsd ft5, 16(sp)
    fsd ft3, 8(sp)
    flw ft3, 0(sp)
    feq.s a1, fs5, fs5
    fsd ft6, 32(sp)
    feq.s a2, ft3, ft3
    fsd ft5, 24(sp)
    fmax.s ft5, fs4, ft3
    feq.s a3, fs6, fs6
    fsd fs11, 48(sp)
    and a0, a0, a2
    bne a0, zero, .Lsoftmax_ordered1
    fadd.s ft5, fs4, ft3
.Lsoftmax_ordered1:
    flw ft3, 16(sp)
    fsd ft6, 40(sp)
    flw ft6, 12(sp)
    feq.s a0, ft3, ft3
    fmv.d fs4, ft5
    fmax.s ft5, fs5, ft3
    feq.s a2, fs4, fs4
    feq.s a5, ft6, ft6
    and a0, a1, a0
    bne a0, zero, .Lsoftmax_ordered3
    fadd.s ft5, fs5, ft3
.Lsoftmax_ordered3:
    flw ft3, 32(sp)
    and a0, a2, a5
    fmv.d fs5, ft5
    feq.s a1, ft3, ft3
    fmax.s ft5, fs4, ft6
    bne a0, zero, .Lsoftmax_ordered2
    fadd.s ft5, fs4, ft6
.Lsoftmax_ordered2:
    flw ft6, 28(sp)
    feq.s a0, fs5, fs5
    and a1, a3, a1
    feq.s a2, ft6, ft6
    fmv.d fs4, ft5
    fmax.s ft5, fs6, ft3
    bne a1, zero, .Lsoftmax_ordered5
    fadd.s ft5, fs6, ft3
.Lsoftmax_ordered5:
    flw ft3, 48(sp)
    feq.s a1, fs7, fs7
    and a0, a0, a2
    feq.s a2, ft3, ft3
    fmv.d fs6, ft5
    fmax.s ft5, fs5, ft6
    bne a0, zero, .Lsoftmax_ordered4
    fadd.s ft5, fs5, ft6
.Lsoftmax_ordered4:
    flw ft6, 44(sp)
    feq.s a0, fs6, fs6
    and a1, a1, a2
    feq.s a2, ft6, ft6
    fmv.d fs5, ft5
    fmax.s ft5, fs7, ft3
    fsd fs11, 56(sp)
    bne a1, zero, .Lsoftmax_ordered7
    fadd.s ft5, fs7, ft3
.Lsoftmax_ordered7:
    fmax.s ft3, fs6, ft6
    flw ft0, 60(sp)
    fmv.d fs7, ft5
    and a0, a0, a2
    bne a0, zero, .Lsoftmax_ordered6
    fadd.s ft3, fs6, ft6
.Lsoftmax_ordered6:
    feq.s a0, fs7, fs7
    feq.s a1, ft0, ft0
    fmv.d fs6, ft3
    fmax.s ft3, fs7, ft0
    mv a3, a4
    addi a5, t2, 64
    and a0, a0, a1
    bne a0, zero, .Lsoftmax_ordered8
    fadd.s ft3, fs7, ft0
.Lsoftmax_ordered8:
    fmv.d fs7, ft3
.Lsoftmax_loop41:
    fld ft3, 0(t2)
    vfcpka.s.s ft5, fs4, fs4
    vfsub.s ft3, ft3, ft5
    fld ft5, 64(t2)
    fsd ft3, 0(a3)
    flw ft3, 0(a3)
    vfcpka.s.s ft6, fs5, fs5
    feq.s a0, ft3, ft3
    vfsub.s ft5, ft5, ft6
    fmax.s ft6, ft3, ft8
    bne a0, zero, .Lsoftmax_ordered9
    fadd.s ft6, ft3, ft8
.Lsoftmax_ordered9:
    fld ft3, 128(t2)
    fsd ft5, 64(a3)
    vfcpka.s.s ft5, fs6, fs6
    feq.s a0, ft6, ft6
    vfsub.s ft3, ft3, ft5
    fmin.s ft0, ft6, ft9
    bne a0, zero, .Lsoftmax_ordered10
    fadd.s ft0, ft6, ft9
.Lsoftmax_ordered10:
    fld ft5, 192(t2)
    fsd ft3, 128(a3)
    vfcpka.s.s ft3, fs7, fs7
    fmv.x.w a0, ft0
    vfsub.s ft3, ft5, ft3
    fmv.d ft5, ft10
    slt a0, a0, zero
    bne a0, zero, .Lsoftmax_chosen11
    fmv.d ft5, ft11
.Lsoftmax_chosen11:
    fsd ft3, 192(a3)
    fmadd.s ft3, ft0, fa2, ft5
    fsub.s ft5, ft3, ft5
    fmv.x.w a1, ft3
    fmadd.s ft3, ft5, fa3, ft0
    flw ft6, 4(a3)
    feq.s a2, ft6, ft6
    fmadd.s ft5, ft5, fa4, ft3
    fmax.s ft0, ft6, ft8
    bne a2, zero, .Lsoftmax_ordered13
    fadd.s ft0, ft6, ft8
.Lsoftmax_ordered13:
    fmadd.s ft3, fa5, ft5, fa6
    fmadd.s ft3, ft3, ft5, fa7
    fmadd.s ft3, ft3, ft5, fs0
    fmadd.s ft3, ft3, ft5, fs1
    fmadd.s ft3, ft3, ft5, fs2
    slli a1, a1, 23
    feq.s a2, ft0, ft0
    fmadd.s ft3, ft3, ft5, fs2
    fmin.s ft6, ft0, ft9
    add a1, a1, t1
    bne a2, zero, .Lsoftmax_ordered14
    fadd.s ft6, ft0, ft9
.Lsoftmax_ordered14:
    fmv.w.x ft5, a1
    fmul.s ft3, ft3, ft5
    fmv.d ft5, fa0
    fmv.x.w a1, ft6
    bne a0, zero, .Lsoftmax_chosen12
    fmv.d ft5, fa1
.Lsoftmax_chosen12:
    fmul.s ft3, ft3, ft5
    fmv.d ft5, ft10
    slt a0, a1, zero
    bne a0, zero, .Lsoftmax_chosen15
    fmv.d ft5, ft11
.Lsoftmax_chosen15:
    fsw ft3, 0(a3)
    fmadd.s ft3, ft6, fa2, ft5
    fsub.s ft5, ft3, ft5
    fmv.x.w a1, ft3
    fmadd.s ft3, ft5, fa3, ft6
    flw ft6, 64(a3)
    feq.s a2, ft6, ft6
    fmadd.s ft5, ft5, fa4, ft3
    fmax.s ft0, ft6, ft8
    bne a2, zero, .Lsoftmax_ordered17
    fadd.s ft0, ft6, ft8
.Lsoftmax_ordered17:
    fmadd.s ft3, fa5, ft5, fa6
    fmadd.s ft3, ft3, ft5, fa7
    fmadd.s ft3, ft3, ft5, fs0
    fmadd.s ft3, ft3, ft5, fs1
    fmadd.s ft3, ft3, ft5, fs2
    slli a1, a1, 23
    feq.s a2, ft0, ft0
    fmadd.s ft3, ft3, ft5, fs2
    fmin.s ft6, ft0, ft9
    add a1, a1, t1
    bne a2, zero, .Lsoftmax_ordered18
    fadd.s ft6, ft0, ft9
.Lsoftmax_ordered18:
    fmv.w.x ft5, a1
    fmul.s ft3, ft3, ft5
    fmv.d ft5, fa0
    fmv.x.w a1, ft6
    bne a0, zero, .Lsoftmax_chosen16
    fmv.d ft5, fa1
.Lsoftmax_chosen16:
    fmul.s ft3, ft3, ft5
    fmv.d ft5, ft10
    slt a0, a1, zero
    bne a0, zero, .Lsoftmax_chosen19
    fmv.d ft5, ft11
.Lsoftmax_chosen19:
    fsw ft3, 4(a3)
    fmadd.s ft3, ft6, fa2, ft5
    fsub.s ft5, ft3, ft5
    fmv.x.w a1, ft3
    fmadd.s ft3, ft5, fa3, ft6
    flw ft6, 68(a3)
    feq.s a2, ft6, ft6
    fmadd.s ft5, ft5, fa4, ft3
    fmax.s ft0, ft6, ft8
    bne a2, zero, .Lsoftmax_ordered21
    fadd.s ft0, ft6, ft8
.Lsoftmax_ordered21:
    fmadd.s ft3, fa5, ft5, fa6
    fmadd.s ft3, ft3, ft5, fa7
    fmadd.s ft3, ft3, ft5, fs0
    fmadd.s ft3, ft3, ft5, fs1
    fmadd.s ft3, ft3, ft5, fs2
    slli a1, a1, 23
    feq.s a2, ft0, ft0
    fmadd.s ft3, ft3, ft5, fs2
    fmin.s ft6, ft0, ft9
    add a1, a1, t1
    bne a2, zero, .Lsoftmax_ordered22
    fadd.s ft6, ft0, ft9
.Lsoftmax_ordered22:
    fmv.w.x ft5, a1
    fmul.s ft3, ft3, ft5
    fmv.d ft5, fa0
    fmv.x.w a1, ft6
    bne a0, zero, .Lsoftmax_chosen20
    fmv.d ft5, fa1
.Lsoftmax_chosen20:
    fmul.s ft3, ft3, ft5
    fmv.d ft5, ft10
    slt a0, a1, zero
    bne a0, zero, .Lsoftmax_chosen23
    fmv.d ft5, ft11
.Lsoftmax_chosen23:
    fsw ft3, 64(a3)
    fmadd.s ft3, ft6, fa2, ft5
    fsub.s ft5, ft3, ft5
    fmv.x.w a1, ft3
    fmadd.s ft3, ft5, fa3, ft6
    flw ft6, 128(a3)
    feq.s a2, ft6, ft6
    fmadd.s ft5, ft5, fa4, ft3
    fmax.s ft0, ft6, ft8
    bne a2, zero, .Lsoftmax_ordered25
    fadd.s ft0, ft6, ft8
.Lsoftmax_ordered25:
    fmadd.s ft3, fa5, ft5, fa6
    fmadd.s ft3, ft3, ft5, fa7
    fmadd.s ft3, ft3, ft5, fs0
    fmadd.s ft3, ft3, ft5, fs1
    fmadd.s ft3, ft3, ft5, fs2
    slli a1, a1, 23
    feq.s a2, ft0, ft0
    fmadd.s ft3, ft3, ft5, fs2
    fmin.s ft6, ft0, ft9
    add a1, a1, t1
    bne a2, zero, .Lsoftmax_ordered26
    fadd.s ft6, ft0, ft9
.Lsoftmax_ordered26:
    fmv.w.x ft5, a1
    fmul.s ft3, ft3, ft5
    fmv.d ft5, fa0
    fmv.x.w a1, ft6
    bne a0, zero, .Lsoftmax_chosen24
    fmv.d ft5, fa1
.Lsoftmax_chosen24:
    fmul.s ft3, ft3, ft5
    fmv.d ft5, ft10
    slt a0, a1, zero
    bne a0, zero, .Lsoftmax_chosen27
    fmv.d ft5, ft11
.Lsoftmax_chosen27:
    fsw ft3, 68(a3)
    fmadd.s ft3, ft6, fa2, ft5
    fsub.s ft5, ft3, ft5
    fmv.x.w a1, ft3
    fmadd.s ft3, ft5, fa3, ft6
    flw ft6, 132(a3)
    feq.s a2, ft6, ft6
    fmadd.s ft5, ft5, fa4, ft3
    fmax.s ft0, ft6, ft8
    bne a2, zero, .Lsoftmax_ordered29
    fadd.s ft0, ft6, ft8
.Lsoftmax_ordered29:
    fmadd.s ft3, fa5, ft5, fa6
    fmadd.s ft3, ft3, ft5, fa7
    fmadd.s ft3, ft3, ft5, fs0
    fmadd.s ft3, ft3, ft5, fs1
    fmadd.s ft3, ft3, ft5, fs2
    slli a1, a1, 23
    feq.s a2, ft0, ft0
    fmadd.s ft3, ft3, ft5, fs2
    fmin.s ft6, ft0, ft9
    add a1, a1, t1
    bne a2, zero, .Lsoftmax_ordered30
    fadd.s ft6, ft0, ft9
.Lsoftmax_ordered30:
    fmv.w.x ft5, a1
    fmul.s ft3, ft3, ft5
    fmv.d ft5, fa0
    fmv.x.w a1, ft6
    bne a0, zero, .Lsoftmax_chosen28
    fmv.d ft5, fa1
.Lsoftmax_chosen28:
    fmul.s ft3, ft3, ft5
    fmv.d ft5, ft10
    slt a0, a1, zero
    bne a0, zero, .Lsoftmax_chosen31
    fmv.d ft5, ft11
.Lsoftmax_chosen31:
    fsw ft3, 128(a3)
    fmadd.s ft3, ft6, fa2, ft5
    fsub.s ft5, ft3, ft5
    fmv.x.w a1, ft3
    fmadd.s ft3, ft5, fa3, ft6
    flw ft6, 192(a3)
    feq.s a2, ft6, ft6
    fmadd.s ft5, ft5, fa4, ft3
    fmax.s ft0, ft6, ft8
    bne a2, zero, .Lsoftmax_ordered33
    fadd.s ft0, ft6, ft8
.Lsoftmax_ordered33:
    fmadd.s ft3, fa5, ft5, fa6
    fmadd.s ft3, ft3, ft5, fa7
    fmadd.s ft3, ft3, ft5, fs0
    fmadd.s ft3, ft3, ft5, fs1
    fmadd.s ft3, ft3, ft5, fs2
    slli a1, a1, 23
    feq.s a2, ft0, ft0
    fmadd.s ft3, ft3, ft5, fs2
    fmin.s ft6, ft0, ft9
    add a1, a1, t1
    bne a2, zero, .Lsoftmax_ordered34
    fadd.s ft6, ft0, ft9
.Lsoftmax_ordered34:
    fmv.w.x ft5, a1
    fmul.s ft3, ft3, ft5
    fmv.d ft5, fa0
    fmv.x.w a1, ft6
    bne a0, zero, .Lsoftmax_chosen32
    fmv.d ft5, fa1
.Lsoftmax_chosen32:
    fmul.s ft0, ft3, ft5
    fmv.d ft3, ft10
    slt a0, a1, zero
    bne a0, zero, .Lsoftmax_chosen35
    fmv.d ft3, ft11
.Lsoftmax_chosen35:
    fmadd.s ft5, ft6, fa2, ft3
    fsub.s ft3, ft5, ft3
    fmadd.s ft6, ft3, fa3, ft6
    fmadd.s ft6, ft3, fa4, ft6
    fmv.x.w a1, ft5
    fmadd.s ft3, fa5, ft6, fa6
    fmadd.s ft3, ft3, ft6, fa7
    fmadd.s ft3, ft3, ft6, fs0
    fmadd.s ft3, ft3, ft6, fs1
    fmadd.s ft3, ft3, ft6, fs2
    slli a1, a1, 23
    fmadd.s ft3, ft3, ft6, fs2
    add a1, a1, t1
    fmv.w.x ft5, a1
    fmul.s ft3, ft3, ft5
    fmv.d ft5, fa0
    bne a0, zero, .Lsoftmax_chosen36
    fmv.d ft5, fa1
.Lsoftmax_chosen36:
    fmul.s ft1, ft3, ft5
    flw ft3, 196(a3)
    feq.s a0, ft3, ft3
    fmax.s ft5, ft3, ft8
    bne a0, zero, .Lsoftmax_ordered37
    fadd.s ft5, ft3, ft8
.Lsoftmax_ordered37:
    feq.s a0, ft5, ft5
    fmin.s ft3, ft5, ft9
    bne a0, zero, .Lsoftmax_ordered38
    fadd.s ft3, ft5, ft9
.Lsoftmax_ordered38:
    fmv.x.w a0, ft3
    fmv.d ft5, ft10
    slt a0, a0, zero
    bne a0, zero, .Lsoftmax_chosen39
    fmv.d ft5, ft11
.Lsoftmax_chosen39:
    fmadd.s ft6, ft3, fa2, ft5
    fsub.s ft5, ft6, ft5
    fmv.x.w a1, ft6
    fmadd.s ft3, ft5, fa3, ft3
    fmadd.s ft5, ft5, fa4, ft3
    fmadd.s ft3, fa5, ft5, fa6
    fmadd.s ft3, ft3, ft5, fa7
    fmadd.s ft3, ft3, ft5, fs0
    fmadd.s ft3, ft3, ft5, fs1
    fmadd.s ft3, ft3, ft5, fs2
    fmadd.s ft3, ft3, ft5, fs2
    slli a1, a1, 23
    add a1, a1, t1
    fmv.w.x ft5, a1
    fmul.s ft3, ft3, ft5
    fmv.d ft5, fa0
    bne a0, zero, .Lsoftmax_chosen40
    fmv.d ft5, fa1
.Lsoftmax_chosen40:
    fmul.s ft3, ft3, ft5
    fsw ft0, 132(a3)
    fsw ft1, 192(a3)
    addi t2, t2, 8
    fsw ft3, 196(a3)
    addi a3, a3, 8
    bne t2, a5, .Lsoftmax_loop41
    fmv.d ft3, fs3
    fmv.d ft5, fs3
    fmv.d ft6, fs3
    fmv.d ft0, fs3
    mv a0, a4
    addi a1, a0, 64
.Lsoftmax_loop42:
    fld ft1, 0(a0)
    fld ft2, 64(a0)
    fld fs4, 128(a0)
    fld fs5, 192(a0)
    vfadd.s ft3, ft3, ft1
    vfadd.s ft5, ft5, ft2
    vfadd.s ft6, ft6, fs4
    vfadd.s ft0, ft0, fs5
    addi a0, a0, 8
    bne a0, a1, .Lsoftmax_loop42
    fsd ft3, 64(sp)
    fsd ft5, 72(sp)
    fsd ft6, 80(sp)
    fsd ft0, 88(sp)
    flw ft3, 64(sp)
    flw ft5, 68(sp)
    flw ft6, 72(sp)
    flw ft0, 76(sp)
    flw ft1, 80(sp)
    flw ft2, 84(sp)
    flw fs4, 88(sp)
    flw fs5, 92(sp)
    fadd.s ft3, ft3, ft5
    fadd.s ft5, ft6, ft0
    fadd.s ft6, ft1, ft2
    fadd.s ft0, fs4, fs5
    fadd.s fs8, fs8, ft3
    fadd.s fs9, fs9, ft5
    fadd.s fs10, fs10, ft6
    fadd.s ft4, ft4, ft0
    mv a0, a4
    addi a1, a0, 64
.Lsoftmax_loop43:
    fld ft3, 0(a0)
    vfcpka.s.s ft5, fs8, fs8
    fld ft6, 64(a0)
    vfcpka.s.s ft0, fs9, fs9
    fld ft1, 128(a0)
    vfcpka.s.s ft2, fs10, fs10
    fld fs4, 192(a0)
    vfcpka.s.s fs5, ft4, ft4
    vfdiv.s ft3, ft3, ft5
    vfdiv.s ft5, ft6, ft0
    vfdiv.s ft6, ft1, ft2
    vfdiv.s ft0, fs4, fs5
    addi a0, a0, 8
    fsd ft3, 0(a7)
    fsd ft5, 64(a7)
    fsd ft6, 128(a7)
    fsd ft0, 192(a7)
    addi a7, a7, 8
    bne a0, a1, .Lsoftmax_loop43
    addi t0, t0, 256
    addi t2, t2, 192
    addi a7, a7, 192
    bne t0, t3, .Lsoftmax_loop44
    fld fs0, 112(sp)
    fld fs1, 120(sp)
    fld fs2, 128(sp)
    fld fs3, 136(sp)
    fld fs4, 144(sp)
    fld fs5, 152(sp)
    fld fs6, 160(sp)
    fld fs7, 168(sp)
    fld fs8, 176(sp)
    fld fs9, 184(sp)
    fld fs10, 192(sp)
    fld fs11, 200(sp)
    addi sp, sp, 208
    ret
