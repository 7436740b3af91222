# Four fdiv.s: interval 12 on RTL.
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
 fdiv.s fs2, fs0, fs1
 fdiv.s fs3, fs0, fs1
 fdiv.s fs4, fs0, fs1
 fdiv.s fs5, fs0, fs1
 fcvt.d.s fa0, fs5
 feq.d t5, fa0, fa0
 addi t5, t5, 1
 ret
