# kernel: sumpool:1x1x10x10x3,S=1,P=0 f32
# strategy: heuristic
# machine: snitch
# cycles: 610
# cycles_of_pdojo_snitch: 610
# arguments, in a0 and so on:
#   --arg 'f32[1,1,10,10]'
#   --arg 'f32[1,1,8,8]=out'
.text
.globl sumpool
.p2align 2
sumpool:
    li a2, 3
    li a3, 32
    li a4, -88
    li a5, 1
    li a6, 8
    fcvt.d.w fa2, zero
    scfgwi zero, 32
    scfgwi a2, 64
    scfgwi a3, 192
    scfgwi a2, 96
    scfgwi a4, 224
    scfgwi a5, 128
    scfgwi a6, 256
    scfgwi a1, 960
    csrrsi zero, 1984, 1
    addi a1, a0, 320
.Lsumpool_loop2:
    addi a2, a0, 32
.Lsumpool_loop1:
    fld ft3, 0(a0)
    fmv.d fa3, fa2
    fld ft4, 40(a0)
    flw ft5, 4(a0)
    fld ft6, 8(a0)
    fmv.d fa4, fa2
    fld ft7, 80(a0)
    flw ft8, 44(a0)
    fld ft9, 48(a0)
    fmv.d fa5, fa2
    vfadd.s fa3, fa3, ft3
    fld ft3, 120(a0)
    flw ft10, 84(a0)
    fld ft11, 88(a0)
    fmv.d fa6, fa2
    vfadd.s fa4, fa4, ft4
    vfcpka.s.s ft5, ft5, ft6
    flw fa0, 124(a0)
    fld fa1, 128(a0)
    vfadd.s fa5, fa5, ft7
    vfcpka.s.s ft8, ft8, ft9
    vfadd.s fa6, fa6, ft3
    vfcpka.s.s ft10, ft10, ft11
    vfadd.s fa3, fa3, ft5
    vfcpka.s.s ft5, fa0, fa1
    vfadd.s fa4, fa4, ft8
    vfadd.s fa5, fa5, ft10
    vfadd.s fa6, fa6, ft5
    vfadd.s fa3, fa3, ft6
    vfadd.s fa4, fa4, ft9
    vfadd.s fa5, fa5, ft11
    vfadd.s fa6, fa6, fa1
    vfadd.s fa3, fa3, ft4
    fld ft4, 160(a0)
    vfadd.s fa4, fa4, ft7
    flw ft6, 164(a0)
    fld fa0, 168(a0)
    vfadd.s fa5, fa5, ft3
    vfadd.s fa6, fa6, ft4
    vfadd.s fa3, fa3, ft8
    vfcpka.s.s ft6, ft6, fa0
    vfadd.s fa4, fa4, ft10
    vfadd.s fa5, fa5, ft5
    vfadd.s fa6, fa6, ft6
    vfadd.s fa3, fa3, ft9
    vfadd.s fa4, fa4, ft11
    vfadd.s fa5, fa5, fa1
    vfadd.s fa6, fa6, fa0
    vfadd.s fa3, fa3, ft7
    fld ft7, 200(a0)
    vfadd.s fa4, fa4, ft3
    flw ft3, 204(a0)
    fld ft8, 208(a0)
    vfadd.s fa5, fa5, ft4
    vfadd.s fa6, fa6, ft7
    vfadd.s fa3, fa3, ft10
    vfcpka.s.s ft3, ft3, ft8
    vfadd.s fa4, fa4, ft5
    vfadd.s fa5, fa5, ft6
    vfadd.s fa6, fa6, ft3
    vfadd.s fa3, fa3, ft11
    vfadd.s fa4, fa4, fa1
    vfadd.s fa5, fa5, fa0
    vfadd.s fa6, fa6, ft8
    fmv.d ft0, fa3
    fld ft3, 8(a0)
    fmv.d ft0, fa4
    fmv.d fa3, fa2
    fld ft4, 48(a0)
    flw ft5, 12(a0)
    fld ft6, 16(a0)
    fmv.d ft0, fa5
    fmv.d fa4, fa2
    fld ft7, 88(a0)
    flw ft8, 52(a0)
    fld ft9, 56(a0)
    fmv.d ft0, fa6
    fmv.d fa5, fa2
    vfadd.s fa3, fa3, ft3
    fld ft3, 128(a0)
    flw ft10, 92(a0)
    fld ft11, 96(a0)
    fmv.d fa6, fa2
    vfadd.s fa4, fa4, ft4
    vfcpka.s.s ft5, ft5, ft6
    flw fa0, 132(a0)
    fld fa1, 136(a0)
    vfadd.s fa5, fa5, ft7
    vfcpka.s.s ft8, ft8, ft9
    vfadd.s fa6, fa6, ft3
    vfcpka.s.s ft10, ft10, ft11
    vfadd.s fa3, fa3, ft5
    vfcpka.s.s ft5, fa0, fa1
    vfadd.s fa4, fa4, ft8
    vfadd.s fa5, fa5, ft10
    vfadd.s fa6, fa6, ft5
    vfadd.s fa3, fa3, ft6
    vfadd.s fa4, fa4, ft9
    vfadd.s fa5, fa5, ft11
    vfadd.s fa6, fa6, fa1
    vfadd.s fa3, fa3, ft4
    fld ft4, 168(a0)
    vfadd.s fa4, fa4, ft7
    flw ft6, 172(a0)
    fld fa0, 176(a0)
    vfadd.s fa5, fa5, ft3
    vfadd.s fa6, fa6, ft4
    vfadd.s fa3, fa3, ft8
    vfcpka.s.s ft6, ft6, fa0
    vfadd.s fa4, fa4, ft10
    vfadd.s fa5, fa5, ft5
    vfadd.s fa6, fa6, ft6
    vfadd.s fa3, fa3, ft9
    vfadd.s fa4, fa4, ft11
    vfadd.s fa5, fa5, fa1
    vfadd.s fa6, fa6, fa0
    vfadd.s fa3, fa3, ft7
    fld ft7, 208(a0)
    vfadd.s fa4, fa4, ft3
    flw ft3, 212(a0)
    fld ft8, 216(a0)
    vfadd.s fa5, fa5, ft4
    vfadd.s fa6, fa6, ft7
    vfadd.s fa3, fa3, ft10
    vfcpka.s.s ft3, ft3, ft8
    vfadd.s fa4, fa4, ft5
    vfadd.s fa5, fa5, ft6
    vfadd.s fa6, fa6, ft3
    vfadd.s fa3, fa3, ft11
    vfadd.s fa4, fa4, fa1
    vfadd.s fa5, fa5, fa0
    vfadd.s fa6, fa6, ft8
    fmv.d ft0, fa3
    fmv.d ft0, fa4
    fmv.d ft0, fa5
    fmv.d ft0, fa6
    addi a0, a0, 16
    bne a0, a2, .Lsumpool_loop1
    addi a0, a0, 128
    bne a0, a1, .Lsumpool_loop2
    csrrci zero, 1984, 1
.Lsumpool_written3:
    scfgr a0, zero
    bge a0, zero, .Lsumpool_written3
    ret
