# A chain of vfdiv.s: latency 14 on RTL.
.text
f:
 fld ft3, 0(a0)
 fld ft4, 8(a0)
 fld ft5, 16(a0)
 fcvt.s.d fs0, ft3
 fcvt.s.d fs1, ft4
 li t0, 3
 nop
 nop
 nop
 nop
 nop
 nop
 nop
 nop
 vfcpka.s.s ft6, fs0, fs1
 vfcpka.s.s ft7, fs1, fs0
 vfdiv.s fa0, ft6, ft7
 vfdiv.s fa0, fa0, ft7
 vfdiv.s fa0, fa0, ft7
 feq.d t5, fa0, fa0
 addi t5, t5, 1
 ret
