# 3.0 / 3.0: 12 cycles less on RTL than 1.1 / 3.0.
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
 fdiv.d fa0, ft4, ft4
 feq.d t5, fa0, fa0
 addi t5, t5, 1
 ret
