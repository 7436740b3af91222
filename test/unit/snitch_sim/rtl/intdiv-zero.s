# A division by 0: on RTL, the time of 32 bits of the quotient, and one cycle.
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
 li t1, 100
 li t2, 0
 div t5, t1, t2
 addi t6, t5, 1
 ret
