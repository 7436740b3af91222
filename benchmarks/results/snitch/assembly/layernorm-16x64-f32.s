# kernel: layernorm:16x64 f32
# strategy: heuristic
# machine: snitch, with a divider
# cycles: 10985
# cycles_of_pdojo_snitch: 10985
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
    addi sp, sp, -128
    fsd fs0, 32(sp)
    fsd fs1, 40(sp)
    fsd fs2, 48(sp)
    fsd fs3, 56(sp)
    fsd fs4, 64(sp)
    fsd fs5, 72(sp)
    fsd fs6, 80(sp)
    fsd fs7, 88(sp)
    fsd fs8, 96(sp)
    fsd fs9, 104(sp)
    fsd fs10, 112(sp)
    fsd fs11, 120(sp)
    mv t1, a1
    mv t2, a2
    fmv.w.x fa2, zero
    fcvt.d.w fa3, zero
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
    fmv.w.x fa4, a2
    li a2, 925353388
    fmv.w.x fa5, a2
    li a2, 1065353216
    fmv.w.x fa6, a2
    li a2, 4096
    mv a5, a0
    mv a6, a0
    add a2, a0, a2
.Llayernorm_loop4:
    fmv.d ft11, fa2
    fmv.d fa0, fa2
    fmv.d fa1, fa2
    fmv.d fa7, fa2
    fmv.d ft3, fa3
    fmv.d ft4, fa3
    fmv.d ft5, fa3
    fmv.d ft6, fa3
    scfgwi a0, 800
    csrrsi zero, 1984, 1
    frep.o a1, 4, 0, 0
    vfadd.s ft3, ft3, ft0
    vfadd.s ft4, ft4, ft0
    vfadd.s ft5, ft5, ft0
    vfadd.s ft6, ft6, ft0
    csrrci zero, 1984, 1
    fsd ft3, 0(sp)
    fsd ft4, 8(sp)
    fsd ft5, 16(sp)
    fsd ft6, 24(sp)
    flw ft3, 0(sp)
    flw ft4, 4(sp)
    flw ft5, 8(sp)
    flw ft6, 12(sp)
    flw ft7, 16(sp)
    flw ft8, 20(sp)
    flw ft9, 24(sp)
    flw ft10, 28(sp)
    fadd.s ft3, ft3, ft4
    fadd.s ft4, ft5, ft6
    fadd.s ft5, ft7, ft8
    fadd.s ft6, ft9, ft10
    fadd.s ft3, ft11, ft3
    fadd.s ft4, fa0, ft4
    fadd.s ft5, fa1, ft5
    fadd.s ft6, fa7, ft6
    fmv.d ft11, ft3
    fmv.d fa0, ft4
    fmv.d fa1, ft5
    fmv.d fa7, ft6
    fmul.s ft11, ft11, fa4
    fmul.s fa0, fa0, fa4
    fmul.s fa1, fa1, fa4
    fmul.s fa7, fa7, fa4
    fmv.d ft4, fa2
    fmv.d ft5, fa2
    fmv.d ft6, fa2
    fmv.d ft7, fa2
    mv a7, a4
    addi t0, a5, 256
.Llayernorm_loop1:
    fld ft3, 0(a5)
    vfcpka.s.s ft8, ft11, ft11
    fld ft9, 256(a5)
    vfcpka.s.s ft10, fa0, fa0
    fld ft0, 512(a5)
    vfcpka.s.s ft1, fa1, fa1
    fld ft2, 768(a5)
    vfcpka.s.s fs0, fa7, fa7
    fld fs1, 8(a5)
    fld fs2, 264(a5)
    fld fs3, 520(a5)
    fld fs4, 776(a5)
    fld fs5, 16(a5)
    fld fs6, 272(a5)
    fld fs7, 528(a5)
    fld fs8, 784(a5)
    fld fs9, 24(a5)
    fld fs10, 280(a5)
    fld fs11, 536(a5)
    vfsub.s ft3, ft3, ft8
    vfsub.s ft9, ft9, ft10
    vfsub.s ft0, ft0, ft1
    vfsub.s ft2, ft2, fs0
    vfsub.s fs1, fs1, ft8
    vfsub.s fs2, fs2, ft10
    vfsub.s fs3, fs3, ft1
    vfsub.s fs4, fs4, fs0
    vfsub.s fs5, fs5, ft8
    vfsub.s fs6, fs6, ft10
    vfsub.s fs7, fs7, ft1
    vfsub.s fs8, fs8, fs0
    fsd ft3, 0(a7)
    vfsub.s fs9, fs9, ft8
    fsd ft9, 256(a7)
    vfsub.s fs10, fs10, ft10
    fsd ft0, 512(a7)
    vfsub.s fs11, fs11, ft1
    fsd ft2, 768(a7)
    fsd ft3, 1024(a7)
    fld ft3, 792(a5)
    fsd ft9, 1280(a7)
    fsd ft0, 1536(a7)
    vfsub.s ft9, ft3, fs0
    fsd ft2, 1792(a7)
    fsd fs1, 8(a7)
    fld ft3, 32(a5)
    fsd fs2, 264(a7)
    fld ft0, 288(a5)
    vfsub.s ft3, ft3, ft8
    fsd fs3, 520(a7)
    fld ft2, 544(a5)
    vfsub.s ft0, ft0, ft10
    fsd fs4, 776(a7)
    vfsub.s ft2, ft2, ft1
    fsd fs1, 1032(a7)
    fld fs1, 800(a5)
    fsd fs2, 1288(a7)
    fsd fs3, 1544(a7)
    vfsub.s fs2, fs1, fs0
    fsd fs4, 1800(a7)
    fsd fs5, 16(a7)
    fld fs1, 40(a5)
    fsd fs6, 272(a7)
    fld fs3, 296(a5)
    vfsub.s fs1, fs1, ft8
    fsd fs7, 528(a7)
    fld fs4, 552(a5)
    vfsub.s fs3, fs3, ft10
    fsd fs8, 784(a7)
    vfsub.s fs4, fs4, ft1
    fsd fs5, 1040(a7)
    fld fs5, 808(a5)
    fsd fs6, 1296(a7)
    fsd fs7, 1552(a7)
    vfsub.s fs6, fs5, fs0
    fsd fs8, 1808(a7)
    fsd fs9, 24(a7)
    fld fs5, 48(a5)
    fsd fs10, 280(a7)
    fld fs7, 304(a5)
    vfsub.s fs5, fs5, ft8
    fsd fs11, 536(a7)
    fld fs8, 560(a5)
    vfsub.s fs7, fs7, ft10
    fsd ft9, 792(a7)
    vfsub.s fs8, fs8, ft1
    fsd fs9, 1048(a7)
    fld fs9, 816(a5)
    fsd fs10, 1304(a7)
    fsd fs11, 1560(a7)
    vfsub.s fs9, fs9, fs0
    fsd ft9, 1816(a7)
    fsd ft3, 32(a7)
    fld ft9, 56(a5)
    fsd ft0, 288(a7)
    fld fs10, 312(a5)
    vfsub.s fs11, ft9, ft8
    fsd ft2, 544(a7)
    fld ft9, 568(a5)
    vfsub.s ft10, fs10, ft10
    fsd fs2, 800(a7)
    fld ft8, 824(a5)
    vfsub.s ft9, ft9, ft1
    fsd ft3, 1056(a7)
    vfsub.s ft3, ft8, fs0
    fsd ft0, 1312(a7)
    fsd ft2, 1568(a7)
    fsd fs2, 1824(a7)
    fsd fs1, 40(a7)
    fsd fs3, 296(a7)
    fsd fs4, 552(a7)
    fsd fs6, 808(a7)
    fsd fs1, 1064(a7)
    fsd fs3, 1320(a7)
    fsd fs4, 1576(a7)
    fsd fs6, 1832(a7)
    fsd fs5, 48(a7)
    fsd fs7, 304(a7)
    fsd fs8, 560(a7)
    fsd fs9, 816(a7)
    fsd fs5, 1072(a7)
    fsd fs7, 1328(a7)
    fsd fs8, 1584(a7)
    fsd fs9, 1840(a7)
    fsd fs11, 56(a7)
    fsd ft10, 312(a7)
    fsd ft9, 568(a7)
    fsd ft3, 824(a7)
    fsd fs11, 1080(a7)
    fsd ft10, 1336(a7)
    fsd ft9, 1592(a7)
    fsd ft3, 1848(a7)
    addi a5, a5, 64
    addi a7, a7, 64
    bne a5, t0, .Llayernorm_loop1
    mv a7, a4
    addi t0, a7, 256
.Llayernorm_loop2:
    flw ft3, 0(a7)
    flw ft8, 1024(a7)
    flw ft9, 256(a7)
    flw ft10, 1280(a7)
    flw ft0, 512(a7)
    flw ft1, 1536(a7)
    flw ft2, 768(a7)
    flw fs0, 1792(a7)
    fmadd.s ft4, ft3, ft8, ft4
    fmadd.s ft5, ft9, ft10, ft5
    fmadd.s ft6, ft0, ft1, ft6
    fmadd.s ft7, ft2, fs0, ft7
    flw ft3, 4(a7)
    flw ft8, 1028(a7)
    flw ft9, 260(a7)
    flw ft10, 1284(a7)
    flw ft0, 516(a7)
    flw ft1, 1540(a7)
    flw ft2, 772(a7)
    flw fs0, 1796(a7)
    fmadd.s ft4, ft3, ft8, ft4
    fmadd.s ft5, ft9, ft10, ft5
    fmadd.s ft6, ft0, ft1, ft6
    fmadd.s ft7, ft2, fs0, ft7
    flw ft3, 8(a7)
    flw ft8, 1032(a7)
    flw ft9, 264(a7)
    flw ft10, 1288(a7)
    flw ft0, 520(a7)
    flw ft1, 1544(a7)
    flw ft2, 776(a7)
    flw fs0, 1800(a7)
    fmadd.s ft4, ft3, ft8, ft4
    fmadd.s ft5, ft9, ft10, ft5
    fmadd.s ft6, ft0, ft1, ft6
    fmadd.s ft7, ft2, fs0, ft7
    flw ft3, 12(a7)
    flw ft8, 1036(a7)
    flw ft9, 268(a7)
    flw ft10, 1292(a7)
    flw ft0, 524(a7)
    flw ft1, 1548(a7)
    flw ft2, 780(a7)
    flw fs0, 1804(a7)
    fmadd.s ft4, ft3, ft8, ft4
    fmadd.s ft5, ft9, ft10, ft5
    fmadd.s ft6, ft0, ft1, ft6
    fmadd.s ft7, ft2, fs0, ft7
    flw ft3, 16(a7)
    flw ft8, 1040(a7)
    flw ft9, 272(a7)
    flw ft10, 1296(a7)
    flw ft0, 528(a7)
    flw ft1, 1552(a7)
    flw ft2, 784(a7)
    flw fs0, 1808(a7)
    fmadd.s ft4, ft3, ft8, ft4
    fmadd.s ft5, ft9, ft10, ft5
    fmadd.s ft6, ft0, ft1, ft6
    fmadd.s ft7, ft2, fs0, ft7
    flw ft3, 20(a7)
    flw ft8, 1044(a7)
    flw ft9, 276(a7)
    flw ft10, 1300(a7)
    flw ft0, 532(a7)
    flw ft1, 1556(a7)
    flw ft2, 788(a7)
    flw fs0, 1812(a7)
    fmadd.s ft4, ft3, ft8, ft4
    fmadd.s ft5, ft9, ft10, ft5
    fmadd.s ft6, ft0, ft1, ft6
    fmadd.s ft7, ft2, fs0, ft7
    flw ft3, 24(a7)
    flw ft8, 1048(a7)
    flw ft9, 280(a7)
    flw ft10, 1304(a7)
    flw ft0, 536(a7)
    flw ft1, 1560(a7)
    flw ft2, 792(a7)
    flw fs0, 1816(a7)
    fmadd.s ft4, ft3, ft8, ft4
    fmadd.s ft5, ft9, ft10, ft5
    fmadd.s ft6, ft0, ft1, ft6
    fmadd.s ft7, ft2, fs0, ft7
    flw ft3, 28(a7)
    flw ft8, 1052(a7)
    flw ft9, 284(a7)
    flw ft10, 1308(a7)
    flw ft0, 540(a7)
    flw ft1, 1564(a7)
    flw ft2, 796(a7)
    flw fs0, 1820(a7)
    fmadd.s ft4, ft3, ft8, ft4
    fmadd.s ft5, ft9, ft10, ft5
    fmadd.s ft6, ft0, ft1, ft6
    fmadd.s ft7, ft2, fs0, ft7
    flw ft3, 32(a7)
    flw ft8, 1056(a7)
    flw ft9, 288(a7)
    flw ft10, 1312(a7)
    flw ft0, 544(a7)
    flw ft1, 1568(a7)
    flw ft2, 800(a7)
    flw fs0, 1824(a7)
    fmadd.s ft4, ft3, ft8, ft4
    fmadd.s ft5, ft9, ft10, ft5
    fmadd.s ft6, ft0, ft1, ft6
    fmadd.s ft7, ft2, fs0, ft7
    flw ft3, 36(a7)
    flw ft8, 1060(a7)
    flw ft9, 292(a7)
    flw ft10, 1316(a7)
    flw ft0, 548(a7)
    flw ft1, 1572(a7)
    flw ft2, 804(a7)
    flw fs0, 1828(a7)
    fmadd.s ft4, ft3, ft8, ft4
    fmadd.s ft5, ft9, ft10, ft5
    fmadd.s ft6, ft0, ft1, ft6
    fmadd.s ft7, ft2, fs0, ft7
    flw ft3, 40(a7)
    flw ft8, 1064(a7)
    flw ft9, 296(a7)
    flw ft10, 1320(a7)
    flw ft0, 552(a7)
    flw ft1, 1576(a7)
    flw ft2, 808(a7)
    flw fs0, 1832(a7)
    fmadd.s ft4, ft3, ft8, ft4
    fmadd.s ft5, ft9, ft10, ft5
    fmadd.s ft6, ft0, ft1, ft6
    fmadd.s ft7, ft2, fs0, ft7
    flw ft3, 44(a7)
    flw ft8, 1068(a7)
    flw ft9, 300(a7)
    flw ft10, 1324(a7)
    flw ft0, 556(a7)
    flw ft1, 1580(a7)
    flw ft2, 812(a7)
    flw fs0, 1836(a7)
    fmadd.s ft4, ft3, ft8, ft4
    fmadd.s ft5, ft9, ft10, ft5
    fmadd.s ft6, ft0, ft1, ft6
    fmadd.s ft7, ft2, fs0, ft7
    flw ft3, 48(a7)
    flw ft8, 1072(a7)
    flw ft9, 304(a7)
    flw ft10, 1328(a7)
    flw ft0, 560(a7)
    flw ft1, 1584(a7)
    flw ft2, 816(a7)
    flw fs0, 1840(a7)
    fmadd.s ft4, ft3, ft8, ft4
    fmadd.s ft5, ft9, ft10, ft5
    fmadd.s ft6, ft0, ft1, ft6
    fmadd.s ft7, ft2, fs0, ft7
    flw ft3, 52(a7)
    flw ft8, 1076(a7)
    flw ft9, 308(a7)
    flw ft10, 1332(a7)
    flw ft0, 564(a7)
    flw ft1, 1588(a7)
    flw ft2, 820(a7)
    flw fs0, 1844(a7)
    fmadd.s ft4, ft3, ft8, ft4
    fmadd.s ft5, ft9, ft10, ft5
    fmadd.s ft6, ft0, ft1, ft6
    fmadd.s ft7, ft2, fs0, ft7
    flw ft3, 56(a7)
    flw ft8, 1080(a7)
    flw ft9, 312(a7)
    flw ft10, 1336(a7)
    flw ft0, 568(a7)
    flw ft1, 1592(a7)
    flw ft2, 824(a7)
    flw fs0, 1848(a7)
    fmadd.s ft4, ft3, ft8, ft4
    fmadd.s ft5, ft9, ft10, ft5
    fmadd.s ft6, ft0, ft1, ft6
    fmadd.s ft7, ft2, fs0, ft7
    flw ft3, 60(a7)
    flw ft8, 1084(a7)
    flw ft9, 316(a7)
    flw ft10, 1340(a7)
    flw ft0, 572(a7)
    flw ft1, 1596(a7)
    flw ft2, 828(a7)
    flw fs0, 1852(a7)
    fmadd.s ft4, ft3, ft8, ft4
    fmadd.s ft5, ft9, ft10, ft5
    fmadd.s ft6, ft0, ft1, ft6
    fmadd.s ft7, ft2, fs0, ft7
    addi a7, a7, 64
    bne a7, t0, .Llayernorm_loop2
    fmul.s ft4, ft4, fa4
    fmul.s ft5, ft5, fa4
    fmul.s ft6, ft6, fa4
    fmul.s ft7, ft7, fa4
    fadd.s ft4, ft4, fa5
    fadd.s ft5, ft5, fa5
    fadd.s ft6, ft6, fa5
    fadd.s ft7, ft7, fa5
    fsqrt.s ft3, ft4
    fsqrt.s ft4, ft5
    fsqrt.s ft5, ft6
    fsqrt.s ft6, ft7
    mv a7, t1
    mv t0, t2
    addi t3, a6, 256
    fdiv.s ft3, fa6, ft3
    fdiv.s ft7, fa6, ft4
    fdiv.s ft8, fa6, ft5
    fdiv.s ft9, fa6, ft6
    fmv.d ft4, ft3
    fmv.d ft5, ft7
    fmv.d ft6, ft8
    fmv.d ft7, ft9
.Llayernorm_loop3:
    fld ft3, 0(a6)
    vfcpka.s.s fs4, ft11, ft11
    fld ft8, 256(a6)
    vfcpka.s.s fs5, fa0, fa0
    fld ft9, 512(a6)
    vfcpka.s.s fs6, fa1, fa1
    fld ft10, 768(a6)
    vfcpka.s.s fs7, fa7, fa7
    vfsub.s fs8, ft3, fs4
    vfsub.s fs9, ft8, fs5
    vfsub.s fs10, ft9, fs6
    vfsub.s ft8, ft10, fs7
    vfcpka.s.s ft9, ft4, ft4
    vfcpka.s.s ft10, ft5, ft5
    vfcpka.s.s ft0, ft6, ft6
    vfcpka.s.s ft1, ft7, ft7
    fld ft3, 8(a6)
    fld ft2, 264(a6)
    fld fs0, 520(a6)
    fld fs1, 776(a6)
    fld fs2, 0(t0)
    vfmul.s fs3, fs8, ft9
    vfmul.s fs11, fs9, ft10
    vfsub.s fs8, ft3, fs4
    vfmul.s ft3, fs10, ft0
    vfsub.s fs9, ft2, fs5
    vfmul.s ft2, ft8, ft1
    vfsub.s fs10, fs0, fs6
    fld fs0, 0(a7)
    vfsub.s ft8, fs1, fs7
    fmv.d fs1, fs2
    vfmac.s fs1, fs3, fs0
    vfmul.s fs3, fs8, ft9
    fsd fs1, 0(a3)
    fmv.d fs1, fs2
    vfmac.s fs1, fs11, fs0
    vfmul.s fs11, fs9, ft10
    fsd fs1, 256(a3)
    fmv.d fs1, fs2
    vfmac.s fs1, ft3, fs0
    vfmac.s fs2, ft2, fs0
    fld fs0, 16(a6)
    vfmul.s ft3, fs10, ft0
    vfmul.s ft2, ft8, ft1
    vfsub.s fs8, fs0, fs4
    fld ft8, 272(a6)
    fsd fs1, 512(a3)
    fld fs0, 528(a6)
    vfsub.s fs9, ft8, fs5
    fld ft8, 784(a6)
    vfsub.s fs10, fs0, fs6
    fld fs0, 8(t0)
    vfsub.s ft8, ft8, fs7
    fld fs1, 8(a7)
    fsd fs2, 768(a3)
    fmv.d fs2, fs0
    vfmac.s fs2, fs3, fs1
    vfmul.s fs3, fs8, ft9
    fsd fs2, 8(a3)
    fmv.d fs2, fs0
    vfmac.s fs2, fs11, fs1
    vfmul.s fs11, fs9, ft10
    fsd fs2, 264(a3)
    fmv.d fs9, fs0
    fmv.d fs2, fs0
    vfmac.s fs9, ft3, fs1
    vfmac.s fs2, ft2, fs1
    fld fs0, 24(a6)
    vfmul.s ft3, fs10, ft0
    vfmul.s ft2, ft8, ft1
    vfsub.s fs8, fs0, fs4
    fld ft8, 280(a6)
    fsd fs9, 520(a3)
    fld fs0, 536(a6)
    vfsub.s fs9, ft8, fs5
    fld ft8, 792(a6)
    vfsub.s fs10, fs0, fs6
    fld fs0, 16(t0)
    vfsub.s ft8, ft8, fs7
    fld fs1, 16(a7)
    fsd fs2, 776(a3)
    fmv.d fs2, fs0
    vfmac.s fs2, fs3, fs1
    vfmul.s fs3, fs8, ft9
    fsd fs2, 16(a3)
    fmv.d fs2, fs0
    vfmac.s fs2, fs11, fs1
    vfmul.s fs11, fs9, ft10
    fsd fs2, 272(a3)
    fmv.d fs9, fs0
    fmv.d fs2, fs0
    vfmac.s fs9, ft3, fs1
    vfmac.s fs2, ft2, fs1
    fld fs0, 32(a6)
    vfmul.s ft3, fs10, ft0
    vfmul.s ft2, ft8, ft1
    vfsub.s fs8, fs0, fs4
    fld ft8, 288(a6)
    fsd fs9, 528(a3)
    fld fs0, 544(a6)
    vfsub.s fs9, ft8, fs5
    fld ft8, 800(a6)
    vfsub.s fs10, fs0, fs6
    fld fs0, 24(t0)
    vfsub.s ft8, ft8, fs7
    fld fs1, 24(a7)
    fsd fs2, 784(a3)
    fmv.d fs2, fs0
    vfmac.s fs2, fs3, fs1
    vfmul.s fs3, fs8, ft9
    fsd fs2, 24(a3)
    fmv.d fs2, fs0
    vfmac.s fs2, fs11, fs1
    vfmul.s fs11, fs9, ft10
    fsd fs2, 280(a3)
    fmv.d fs9, fs0
    fmv.d fs2, fs0
    vfmac.s fs9, ft3, fs1
    vfmac.s fs2, ft2, fs1
    fld fs0, 40(a6)
    vfmul.s ft3, fs10, ft0
    vfmul.s ft2, ft8, ft1
    vfsub.s fs8, fs0, fs4
    fld ft8, 296(a6)
    fsd fs9, 536(a3)
    fld fs0, 552(a6)
    vfsub.s fs9, ft8, fs5
    fld ft8, 808(a6)
    vfsub.s fs10, fs0, fs6
    fld fs0, 32(t0)
    vfsub.s ft8, ft8, fs7
    fld fs1, 32(a7)
    fsd fs2, 792(a3)
    fmv.d fs2, fs0
    vfmac.s fs2, fs3, fs1
    vfmul.s fs3, fs8, ft9
    fsd fs2, 32(a3)
    fmv.d fs2, fs0
    vfmac.s fs2, fs11, fs1
    vfmul.s fs11, fs9, ft10
    fsd fs2, 288(a3)
    fmv.d fs9, fs0
    fmv.d fs2, fs0
    vfmac.s fs9, ft3, fs1
    vfmac.s fs2, ft2, fs1
    fld fs0, 48(a6)
    vfmul.s ft3, fs10, ft0
    vfmul.s ft2, ft8, ft1
    vfsub.s fs8, fs0, fs4
    fld ft8, 304(a6)
    fsd fs9, 544(a3)
    fld fs0, 560(a6)
    vfsub.s fs9, ft8, fs5
    fld ft8, 816(a6)
    vfsub.s fs10, fs0, fs6
    fld fs0, 40(t0)
    vfsub.s ft8, ft8, fs7
    fld fs1, 40(a7)
    fsd fs2, 800(a3)
    fmv.d fs2, fs0
    vfmac.s fs2, fs3, fs1
    vfmul.s fs3, fs8, ft9
    fsd fs2, 40(a3)
    fmv.d fs2, fs0
    vfmac.s fs2, fs11, fs1
    vfmul.s fs11, fs9, ft10
    fsd fs2, 296(a3)
    fmv.d fs9, fs0
    fmv.d fs2, fs0
    vfmac.s fs9, ft3, fs1
    vfmac.s fs2, ft2, fs1
    fld fs0, 56(a6)
    vfmul.s ft3, fs10, ft0
    vfmul.s ft2, ft8, ft1
    vfsub.s fs8, fs0, fs4
    fld ft8, 312(a6)
    fld fs1, 568(a6)
    fsd fs9, 552(a3)
    fld fs4, 824(a6)
    vfsub.s fs9, ft8, fs5
    fld fs0, 48(t0)
    fld fs5, 48(a7)
    vfsub.s fs10, fs1, fs6
    vfsub.s ft8, fs4, fs7
    fmv.d fs1, fs0
    fmv.d fs4, fs0
    fmv.d fs6, fs0
    fmv.d fs7, fs0
    vfmac.s fs1, fs3, fs5
    vfmac.s fs4, fs11, fs5
    vfmac.s fs6, ft3, fs5
    vfmac.s fs7, ft2, fs5
    fld fs0, 56(t0)
    vfmul.s fs3, fs8, ft9
    vfmul.s fs11, fs9, ft10
    vfmul.s ft3, fs10, ft0
    vfmul.s ft2, ft8, ft1
    fld ft8, 56(a7)
    fmv.d ft9, fs0
    fmv.d ft10, fs0
    fmv.d ft0, fs0
    vfmac.s fs0, fs3, ft8
    vfmac.s ft9, fs11, ft8
    vfmac.s ft10, ft3, ft8
    vfmac.s ft0, ft2, ft8
    fsd fs2, 808(a3)
    fsd fs1, 48(a3)
    fsd fs4, 304(a3)
    fsd fs6, 560(a3)
    fsd fs7, 816(a3)
    fsd fs0, 56(a3)
    fsd ft9, 312(a3)
    fsd ft10, 568(a3)
    fsd ft0, 824(a3)
    addi a6, a6, 64
    addi a7, a7, 64
    addi t0, t0, 64
    addi a3, a3, 64
    bne a6, t3, .Llayernorm_loop3
    addi a0, a0, 1024
    addi a5, a5, 768
    addi a6, a6, 768
    addi a3, a3, 768
    bne a0, a2, .Llayernorm_loop4
    fld fs0, 32(sp)
    fld fs1, 40(sp)
    fld fs2, 48(sp)
    fld fs3, 56(sp)
    fld fs4, 64(sp)
    fld fs5, 72(sp)
    fld fs6, 80(sp)
    fld fs7, 88(sp)
    fld fs8, 96(sp)
    fld fs9, 104(sp)
    fld fs10, 112(sp)
    fld fs11, 120(sp)
    addi sp, sp, 128
    ret
