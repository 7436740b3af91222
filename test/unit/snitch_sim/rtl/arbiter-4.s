# An frep of two fmadd.d and two fmax.d: 5 cycles an iteration on RTL.
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
 li t3, 63
 frep.o t3, 4, 0, 0
 fmadd.d fa0, ft3, ft4, ft5
 fmadd.d fa1, ft3, ft4, ft5
 fmax.d fa2, ft3, ft4
 fmax.d fa3, ft3, ft4
 feq.d t5, ft3, ft3
 addi t5, t5, 1
 ret
