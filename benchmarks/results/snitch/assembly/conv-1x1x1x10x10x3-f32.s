# kernel: conv:1x1x1x10x10x3 f32
# strategy: heuristic
# machine: snitch
# cycles: 1097
# cycles_of_pdojo_snitch: 1097
# arguments, in a0 and so on:
#   --arg 'f32[1,1,10,10]'
#   --arg 'f32[1,1,3,3]'
#   --arg 'f32[1,1,8,8]=out'
.text
.globl conv
.p2align 2
conv:
    addi sp, sp, -48
    fsd fs0, 0(sp)
    fsd fs1, 8(sp)
    fsd fs2, 16(sp)
    fsd fs3, 24(sp)
    fsd fs4, 32(sp)
    fsd fs5, 40(sp)
    fmv.w.x fa0, zero
    addi a3, a0, 320
.Lconv_loop2:
    addi a4, a0, 32
.Lconv_loop1:
    flw ft3, 0(a0)
    flw ft4, 0(a1)
    flw ft5, 40(a0)
    flw ft6, 80(a0)
    flw ft7, 120(a0)
    fmv.d fa1, fa0
    fmv.d fa2, fa0
    fmv.d fa3, fa0
    fmv.d fa4, fa0
    fmadd.s fa1, ft3, ft4, fa1
    fmadd.s fa2, ft5, ft4, fa2
    fmadd.s fa3, ft6, ft4, fa3
    fmadd.s fa4, ft7, ft4, fa4
    flw ft3, 4(a0)
    flw ft4, 4(a1)
    flw ft8, 44(a0)
    flw ft9, 84(a0)
    flw ft10, 124(a0)
    fmadd.s fa1, ft3, ft4, fa1
    fmadd.s fa2, ft8, ft4, fa2
    fmadd.s fa3, ft9, ft4, fa3
    fmadd.s fa4, ft10, ft4, fa4
    flw ft3, 8(a0)
    flw ft4, 8(a1)
    flw ft11, 48(a0)
    flw fa7, 88(a0)
    flw ft0, 128(a0)
    fmadd.s fa1, ft3, ft4, fa1
    fmadd.s fa2, ft11, ft4, fa2
    fmadd.s fa3, fa7, ft4, fa3
    fmadd.s fa4, ft0, ft4, fa4
    flw ft1, 12(a1)
    flw ft3, 160(a0)
    flw ft2, 16(a1)
    fmadd.s fa1, ft5, ft1, fa1
    fmadd.s fa2, ft6, ft1, fa2
    fmadd.s fa3, ft7, ft1, fa3
    fmadd.s fa4, ft3, ft1, fa4
    flw fs0, 164(a0)
    fmadd.s fa1, ft8, ft2, fa1
    fmadd.s fa2, ft9, ft2, fa2
    fmadd.s fa3, ft10, ft2, fa3
    fmadd.s fa4, fs0, ft2, fa4
    flw fa5, 20(a1)
    flw fa6, 168(a0)
    flw fs1, 24(a1)
    fmadd.s fa1, ft11, fa5, fa1
    fmadd.s fa2, fa7, fa5, fa2
    fmadd.s fa3, ft0, fa5, fa3
    fmadd.s fa4, fa6, fa5, fa4
    flw ft4, 200(a0)
    fmadd.s fa1, ft6, fs1, fa1
    fmadd.s fa2, ft7, fs1, fa2
    fmadd.s fa3, ft3, fs1, fa3
    fmadd.s fa4, ft4, fs1, fa4
    flw fs3, 28(a1)
    flw fs4, 204(a0)
    flw fs5, 32(a1)
    fmadd.s fa1, ft9, fs3, fa1
    fmadd.s fa2, ft10, fs3, fa2
    fmadd.s fa3, fs0, fs3, fa3
    fmadd.s fa4, fs4, fs3, fa4
    flw ft3, 208(a0)
    fmadd.s fa1, fa7, fs5, fa1
    fmadd.s fa2, ft0, fs5, fa2
    fmadd.s fa3, fa6, fs5, fa3
    fmadd.s fa4, ft3, fs5, fa4
    fsw fa1, 0(a2)
    fsw fa2, 32(a2)
    fsw fa3, 64(a2)
    fsw fa4, 96(a2)
    flw ft4, 4(a0)
    flw ft5, 0(a1)
    flw ft6, 44(a0)
    flw ft7, 84(a0)
    flw ft8, 124(a0)
    fmv.d fa1, fa0
    fmv.d fa2, fa0
    fmv.d fa3, fa0
    fmv.d fa4, fa0
    fmadd.s fa1, ft4, ft5, fa1
    fmadd.s fa2, ft6, ft5, fa2
    fmadd.s fa3, ft7, ft5, fa3
    fmadd.s fa4, ft8, ft5, fa4
    flw ft4, 8(a0)
    flw ft5, 4(a1)
    flw ft9, 48(a0)
    flw ft10, 12(a0)
    fmadd.s fa1, ft4, ft5, fa1
    fmadd.s fa2, ft9, ft5, fa2
    fmadd.s fa3, fa7, ft5, fa3
    fmadd.s fa4, ft0, ft5, fa4
    flw ft4, 8(a1)
    flw ft5, 52(a0)
    flw ft11, 92(a0)
    flw fs2, 132(a0)
    fmadd.s fa1, ft10, ft4, fa1
    fmadd.s fa2, ft5, ft4, fa2
    fmadd.s fa3, ft11, ft4, fa3
    fmadd.s fa4, fs2, ft4, fa4
    fmadd.s fa1, ft6, ft1, fa1
    fmadd.s fa2, ft7, ft1, fa2
    fmadd.s fa3, ft8, ft1, fa3
    fmadd.s fa4, fs0, ft1, fa4
    fmadd.s fa1, ft9, ft2, fa1
    fmadd.s fa2, fa7, ft2, fa2
    fmadd.s fa3, ft0, ft2, fa3
    fmadd.s fa4, fa6, ft2, fa4
    flw ft4, 172(a0)
    fmadd.s fa1, ft5, fa5, fa1
    fmadd.s fa2, ft11, fa5, fa2
    fmadd.s fa3, fs2, fa5, fa3
    fmadd.s fa4, ft4, fa5, fa4
    fmadd.s fa1, ft7, fs1, fa1
    fmadd.s fa2, ft8, fs1, fa2
    fmadd.s fa3, fs0, fs1, fa3
    fmadd.s fa4, fs4, fs1, fa4
    fmadd.s fa1, fa7, fs3, fa1
    fmadd.s fa2, ft0, fs3, fa2
    fmadd.s fa3, fa6, fs3, fa3
    fmadd.s fa4, ft3, fs3, fa4
    flw ft3, 212(a0)
    fmadd.s fa1, ft11, fs5, fa1
    fmadd.s fa2, fs2, fs5, fa2
    fmadd.s fa3, ft4, fs5, fa3
    fmadd.s fa4, ft3, fs5, fa4
    fsw fa1, 4(a2)
    fsw fa2, 36(a2)
    fsw fa3, 68(a2)
    fsw fa4, 100(a2)
    addi a0, a0, 8
    addi a2, a2, 8
    bne a0, a4, .Lconv_loop1
    addi a0, a0, 128
    addi a2, a2, 96
    bne a0, a3, .Lconv_loop2
    fld fs0, 0(sp)
    fld fs1, 8(sp)
    fld fs2, 16(sp)
    fld fs3, 24(sp)
    fld fs4, 32(sp)
    fld fs5, 40(sp)
    addi sp, sp, 48
    ret
