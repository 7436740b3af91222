# kernel: layernorm:16x64 f32
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 26833
# cycles_of_pdojo_snitch: 26833
# arguments, in a0 and so on:
#   --arg 'f32[16,64]'
#   --arg 'f32[64]'
#   --arg 'f32[64]'
#   --arg 'f32[16,64]=out'
#   --arg 'i8[2048]=zero'
.text
.globl layernorm
.p2align 2
layernorm:
    addi sp, sp, -16
    mv t1, a1
    mv t2, a2
    fmv.w.x ft11, zero
    fcvt.d.w fa0, zero
    scfgwi zero, 32
    li a1, 3
    scfgwi a1, 64
    li a1, 256
    scfgwi a1, 192
    li a1, 31
    scfgwi a1, 96
    li a2, -760
    scfgwi a2, 224
    li a2, 1015021568
    fmv.w.x fa1, a2
    li a2, 925353388
    fmv.w.x fa2, a2
    li a2, 1065353216
    fmv.w.x fa3, a2
    li a2, 4096
    mv a5, a0
    mv a6, a0
    add a2, a0, a2
.Llayernorm_loop4:
    fmv.d ft8, ft11
    fmv.d ft9, ft11
    fmv.d ft10, ft11
    fmv.d fa4, ft11
    fmv.d ft3, fa0
    fmv.d ft4, fa0
    fmv.d ft5, fa0
    fmv.d ft6, fa0
    scfgwi a0, 800
    csrrsi zero, 1984, 1
    frep.o a1, 4, 0, 0
    vfadd.s ft3, ft3, ft0
    vfadd.s ft4, ft4, ft0
    vfadd.s ft5, ft5, ft0
    vfadd.s ft6, ft6, ft0
    csrrci zero, 1984, 1
    fsd ft3, 0(sp)
    flw ft3, 0(sp)
    flw ft7, 4(sp)
    fadd.s ft3, ft3, ft7
    fadd.s ft3, ft8, ft3
    fmv.d ft8, ft3
    fsd ft4, 0(sp)
    flw ft3, 0(sp)
    flw ft4, 4(sp)
    fadd.s ft3, ft3, ft4
    fadd.s ft3, ft9, ft3
    fmv.d ft9, ft3
    fsd ft5, 0(sp)
    flw ft3, 0(sp)
    flw ft4, 4(sp)
    fadd.s ft3, ft3, ft4
    fadd.s ft3, ft10, ft3
    fmv.d ft10, ft3
    fsd ft6, 0(sp)
    flw ft3, 0(sp)
    flw ft4, 4(sp)
    fadd.s ft3, ft3, ft4
    fadd.s ft3, fa4, ft3
    fmv.d fa4, ft3
    fmul.s ft8, ft8, fa1
    fmul.s ft9, ft9, fa1
    fmul.s ft10, ft10, fa1
    fmul.s fa4, fa4, fa1
    fmv.d ft5, ft11
    fmv.d ft6, ft11
    fmv.d ft7, ft11
    fmv.d fa5, ft11
    mv a7, a4
    addi t0, a5, 256
.Llayernorm_loop1:
    fld ft3, 0(a5)
    vfcpka.s.s ft4, ft8, ft8
    vfsub.s ft3, ft3, ft4
    fsd ft3, 0(a7)
    fld ft3, 256(a5)
    vfcpka.s.s ft4, ft9, ft9
    vfsub.s ft3, ft3, ft4
    fsd ft3, 256(a7)
    fld ft3, 512(a5)
    vfcpka.s.s ft4, ft10, ft10
    vfsub.s ft3, ft3, ft4
    fsd ft3, 512(a7)
    fld ft3, 768(a5)
    vfcpka.s.s ft4, fa4, fa4
    vfsub.s ft3, ft3, ft4
    fsd ft3, 768(a7)
    fld ft3, 0(a5)
    vfcpka.s.s ft4, ft8, ft8
    vfsub.s ft3, ft3, ft4
    fsd ft3, 1024(a7)
    fld ft3, 256(a5)
    vfcpka.s.s ft4, ft9, ft9
    vfsub.s ft3, ft3, ft4
    fsd ft3, 1280(a7)
    fld ft3, 512(a5)
    vfcpka.s.s ft4, ft10, ft10
    vfsub.s ft3, ft3, ft4
    fsd ft3, 1536(a7)
    fld ft3, 768(a5)
    vfcpka.s.s ft4, fa4, fa4
    vfsub.s ft3, ft3, ft4
    fsd ft3, 1792(a7)
    addi a5, a5, 8
    addi a7, a7, 8
    bne a5, t0, .Llayernorm_loop1
    mv a7, a4
    addi t0, a7, 256
.Llayernorm_loop2:
    flw ft3, 0(a7)
    flw ft4, 1024(a7)
    fmadd.s ft5, ft3, ft4, ft5
    flw ft3, 256(a7)
    flw ft4, 1280(a7)
    fmadd.s ft6, ft3, ft4, ft6
    flw ft3, 512(a7)
    flw ft4, 1536(a7)
    fmadd.s ft7, ft3, ft4, ft7
    flw ft3, 768(a7)
    flw ft4, 1792(a7)
    fmadd.s fa5, ft3, ft4, fa5
    addi a7, a7, 4
    bne a7, t0, .Llayernorm_loop2
    fmul.s ft5, ft5, fa1
    fmul.s ft6, ft6, fa1
    fmul.s ft7, ft7, fa1
    fmul.s fa5, fa5, fa1
    fadd.s ft5, ft5, fa2
    fadd.s ft6, ft6, fa2
    fadd.s ft7, ft7, fa2
    fadd.s fa5, fa5, fa2
    fsqrt.s ft3, ft5
    fdiv.s ft5, fa3, ft3
    fsqrt.s ft3, ft6
    fdiv.s ft6, fa3, ft3
    fsqrt.s ft3, ft7
    fdiv.s ft7, fa3, ft3
    fsqrt.s ft3, fa5
    fdiv.s fa5, fa3, ft3
    mv a7, t1
    mv t0, t2
    addi t3, a6, 256
.Llayernorm_loop3:
    fld ft3, 0(a6)
    vfcpka.s.s ft4, ft8, ft8
    vfsub.s ft3, ft3, ft4
    fld ft4, 256(a6)
    vfcpka.s.s fa6, ft9, ft9
    vfsub.s ft4, ft4, fa6
    fld fa6, 512(a6)
    vfcpka.s.s fa7, ft10, ft10
    vfsub.s fa6, fa6, fa7
    fld fa7, 768(a6)
    vfcpka.s.s ft0, fa4, fa4
    vfsub.s fa7, fa7, ft0
    vfcpka.s.s ft0, ft5, ft5
    vfmul.s ft3, ft3, ft0
    vfcpka.s.s ft0, ft6, ft6
    vfmul.s ft4, ft4, ft0
    vfcpka.s.s ft0, ft7, ft7
    vfmul.s fa6, fa6, ft0
    vfcpka.s.s ft0, fa5, fa5
    vfmul.s fa7, fa7, ft0
    fld ft0, 0(a7)
    fld ft1, 0(t0)
    vfmac.s ft1, ft3, ft0
    fsd ft1, 0(a3)
    fld ft3, 0(a7)
    fld ft0, 0(t0)
    vfmac.s ft0, ft4, ft3
    fsd ft0, 256(a3)
    fld ft3, 0(a7)
    fld ft4, 0(t0)
    vfmac.s ft4, fa6, ft3
    fsd ft4, 512(a3)
    fld ft3, 0(a7)
    fld ft4, 0(t0)
    vfmac.s ft4, fa7, ft3
    fsd ft4, 768(a3)
    addi a6, a6, 8
    addi a7, a7, 8
    addi t0, t0, 8
    addi a3, a3, 8
    bne a6, t3, .Llayernorm_loop3
    addi a0, a0, 1024
    addi a5, a5, 768
    addi a6, a6, 768
    addi a3, a3, 768
    bne a0, a2, .Llayernorm_loop4
    addi sp, sp, 16
    ret
