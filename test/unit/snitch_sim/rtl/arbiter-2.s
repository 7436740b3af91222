# An frep of fcvt.s.d and fmadd.d: 4.5 cycles an iteration on RTL; the arbiter of the FPU's results takes turns.
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
 frep.o t3, 2, 0, 0
 fcvt.s.d fa1, ft3
 fmadd.d fa0, ft3, ft4, ft5
 feq.d t5, ft3, ft3
 addi t5, t5, 1
 ret
