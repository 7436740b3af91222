# kernel: rmsnorm:16x64 f32
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 4284
# cycles_of_pdojo_snitch: 4284
# arguments, in a0 and so on:
#   --arg 'f32[16,64]'
#   --arg 'f32[64]'
#   --arg 'f32[16,64]=out'
.text
.globl rmsnorm
.p2align 2
rmsnorm:
    fmv.w.x ft7, zero
    li a3, 1015021568
    fmv.w.x ft8, a3
    li a3, 925353388
    fmv.w.x ft9, a3
    li a3, 1065353216
    fmv.w.x ft10, a3
    scfgwi zero, 32
    li a3, 3
    scfgwi a3, 64
    li a4, 256
    scfgwi a4, 192
    li a5, 31
    scfgwi a5, 96
    li a6, -760
    scfgwi a6, 224
    scfgwi a3, 34
    scfgwi a5, 66
    li a7, 8
    scfgwi a7, 194
    scfgwi zero, 33
    scfgwi a3, 65
    scfgwi a4, 193
    scfgwi a5, 97
    scfgwi a6, 225
    li a3, 4096
    li a4, 1
    mv a5, a0
    add a3, a0, a3
.Lrmsnorm_loop3:
    fmv.d ft11, ft7
    fmv.d fa0, ft7
    fmv.d fa1, ft7
    fmv.d fa2, ft7
    addi a6, a0, 256
.Lrmsnorm_loop1:
    flw ft3, 0(a0)
    flw ft4, 256(a0)
    flw ft5, 512(a0)
    flw ft6, 768(a0)
    fmadd.s ft11, ft3, ft3, ft11
    fmadd.s fa0, ft4, ft4, fa0
    fmadd.s fa1, ft5, ft5, fa1
    fmadd.s fa2, ft6, ft6, fa2
    flw ft3, 4(a0)
    flw ft4, 260(a0)
    flw ft5, 516(a0)
    flw ft6, 772(a0)
    fmadd.s ft11, ft3, ft3, ft11
    fmadd.s fa0, ft4, ft4, fa0
    fmadd.s fa1, ft5, ft5, fa1
    fmadd.s fa2, ft6, ft6, fa2
    flw ft3, 8(a0)
    flw ft4, 264(a0)
    flw ft5, 520(a0)
    flw ft6, 776(a0)
    fmadd.s ft11, ft3, ft3, ft11
    fmadd.s fa0, ft4, ft4, fa0
    fmadd.s fa1, ft5, ft5, fa1
    fmadd.s fa2, ft6, ft6, fa2
    flw ft3, 12(a0)
    flw ft4, 268(a0)
    flw ft5, 524(a0)
    flw ft6, 780(a0)
    fmadd.s ft11, ft3, ft3, ft11
    fmadd.s fa0, ft4, ft4, fa0
    fmadd.s fa1, ft5, ft5, fa1
    fmadd.s fa2, ft6, ft6, fa2
    flw ft3, 16(a0)
    flw ft4, 272(a0)
    flw ft5, 528(a0)
    flw ft6, 784(a0)
    fmadd.s ft11, ft3, ft3, ft11
    fmadd.s fa0, ft4, ft4, fa0
    fmadd.s fa1, ft5, ft5, fa1
    fmadd.s fa2, ft6, ft6, fa2
    flw ft3, 20(a0)
    flw ft4, 276(a0)
    flw ft5, 532(a0)
    flw ft6, 788(a0)
    fmadd.s ft11, ft3, ft3, ft11
    fmadd.s fa0, ft4, ft4, fa0
    fmadd.s fa1, ft5, ft5, fa1
    fmadd.s fa2, ft6, ft6, fa2
    flw ft3, 24(a0)
    flw ft4, 280(a0)
    flw ft5, 536(a0)
    flw ft6, 792(a0)
    fmadd.s ft11, ft3, ft3, ft11
    fmadd.s fa0, ft4, ft4, fa0
    fmadd.s fa1, ft5, ft5, fa1
    fmadd.s fa2, ft6, ft6, fa2
    flw ft3, 28(a0)
    flw ft4, 284(a0)
    flw ft5, 540(a0)
    flw ft6, 796(a0)
    fmadd.s ft11, ft3, ft3, ft11
    fmadd.s fa0, ft4, ft4, fa0
    fmadd.s fa1, ft5, ft5, fa1
    fmadd.s fa2, ft6, ft6, fa2
    flw ft3, 32(a0)
    flw ft4, 288(a0)
    flw ft5, 544(a0)
    flw ft6, 800(a0)
    fmadd.s ft11, ft3, ft3, ft11
    fmadd.s fa0, ft4, ft4, fa0
    fmadd.s fa1, ft5, ft5, fa1
    fmadd.s fa2, ft6, ft6, fa2
    flw ft3, 36(a0)
    flw ft4, 292(a0)
    flw ft5, 548(a0)
    flw ft6, 804(a0)
    fmadd.s ft11, ft3, ft3, ft11
    fmadd.s fa0, ft4, ft4, fa0
    fmadd.s fa1, ft5, ft5, fa1
    fmadd.s fa2, ft6, ft6, fa2
    flw ft3, 40(a0)
    flw ft4, 296(a0)
    flw ft5, 552(a0)
    flw ft6, 808(a0)
    fmadd.s ft11, ft3, ft3, ft11
    fmadd.s fa0, ft4, ft4, fa0
    fmadd.s fa1, ft5, ft5, fa1
    fmadd.s fa2, ft6, ft6, fa2
    flw ft3, 44(a0)
    flw ft4, 300(a0)
    flw ft5, 556(a0)
    flw ft6, 812(a0)
    fmadd.s ft11, ft3, ft3, ft11
    fmadd.s fa0, ft4, ft4, fa0
    fmadd.s fa1, ft5, ft5, fa1
    fmadd.s fa2, ft6, ft6, fa2
    flw ft3, 48(a0)
    flw ft4, 304(a0)
    flw ft5, 560(a0)
    flw ft6, 816(a0)
    fmadd.s ft11, ft3, ft3, ft11
    fmadd.s fa0, ft4, ft4, fa0
    fmadd.s fa1, ft5, ft5, fa1
    fmadd.s fa2, ft6, ft6, fa2
    flw ft3, 52(a0)
    flw ft4, 308(a0)
    flw ft5, 564(a0)
    flw ft6, 820(a0)
    fmadd.s ft11, ft3, ft3, ft11
    fmadd.s fa0, ft4, ft4, fa0
    fmadd.s fa1, ft5, ft5, fa1
    fmadd.s fa2, ft6, ft6, fa2
    flw ft3, 56(a0)
    flw ft4, 312(a0)
    flw ft5, 568(a0)
    flw ft6, 824(a0)
    fmadd.s ft11, ft3, ft3, ft11
    fmadd.s fa0, ft4, ft4, fa0
    fmadd.s fa1, ft5, ft5, fa1
    fmadd.s fa2, ft6, ft6, fa2
    flw ft3, 60(a0)
    flw ft4, 316(a0)
    flw ft5, 572(a0)
    flw ft6, 828(a0)
    fmadd.s ft11, ft3, ft3, ft11
    fmadd.s fa0, ft4, ft4, fa0
    fmadd.s fa1, ft5, ft5, fa1
    fmadd.s fa2, ft6, ft6, fa2
    addi a0, a0, 64
    bne a0, a6, .Lrmsnorm_loop1
    fmul.s ft11, ft11, ft8
    fmul.s fa0, fa0, ft8
    fmul.s fa1, fa1, ft8
    fmul.s fa2, fa2, ft8
    fadd.s ft11, ft11, ft9
    fadd.s fa0, fa0, ft9
    fadd.s fa1, fa1, ft9
    fadd.s fa2, fa2, ft9
    fsqrt.s ft3, ft11
    fsqrt.s ft4, fa0
    fsqrt.s ft5, fa1
    fsqrt.s ft6, fa2
    fdiv.s ft11, ft10, ft3
    fdiv.s fa0, ft10, ft4
    fdiv.s fa1, ft10, ft5
    fdiv.s fa2, ft10, ft6
    scfgwi a5, 800
    scfgwi a1, 770
    scfgwi a2, 929
    csrrsi zero, 1984, 1
    li a6, 32
.Lrmsnorm_loop2:
    vfcpka.s.s ft3, ft11, ft11
    vfcpka.s.s ft4, fa0, fa0
    vfcpka.s.s ft5, fa1, fa1
    vfmul.s ft3, ft0, ft3
    vfcpka.s.s ft6, fa2, fa2
    vfmul.s ft4, ft0, ft4
    vfmul.s ft5, ft0, ft5
    vfmul.s ft6, ft0, ft6
    vfmul.s ft1, ft3, ft2
    vfmul.s ft1, ft4, ft2
    vfmul.s ft1, ft5, ft2
    vfmul.s ft1, ft6, ft2
    addi a6, a6, -1
    bne a6, zero, .Lrmsnorm_loop2
    csrrci zero, 1984, 1
    addi a0, a0, 768
    addi a5, a5, 1024
    addi a2, a2, 1024
    bne a0, a3, .Lrmsnorm_loop3
.Lrmsnorm_written4:
    scfgr a0, a4
    bge a0, zero, .Lrmsnorm_written4
    ret
