# On RTL, fmv.d fa0 (f10) waits for the answer of feq.d a0 (x10).
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
 feq.d a0, ft3, ft4
 fmv.d fa0, ft5
 feq.d a0, ft3, ft4
 fmv.d fa0, ft5
 feq.d a0, ft3, ft4
 fmv.d fa0, ft5
 feq.d a0, ft3, ft4
 fmv.d fa0, ft5
 feq.d a0, ft3, ft4
 fmv.d fa0, ft5
 feq.d a0, ft3, ft4
 fmv.d fa0, ft5
 ret
