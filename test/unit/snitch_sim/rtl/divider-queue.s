# On RTL, a second fdiv.d waits in the divider's input register; the FP subsystem goes on. Interval 19.
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
 fdiv.d fs2, ft3, ft4
 fdiv.d fs3, ft3, ft5
 fmadd.d fa1, ft3, ft4, ft5
 fmadd.d fa2, ft3, ft4, ft5
 fmadd.d fa3, ft3, ft4, ft5
 fmadd.d fa4, ft3, ft4, ft5
 fmadd.d fa0, ft3, ft4, ft5
 feq.d t5, fa0, fa0
 addi t5, t5, 1
 ret
