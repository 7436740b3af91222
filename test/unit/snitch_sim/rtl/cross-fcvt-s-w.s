# On RTL, fcvt.s.w(u) waits for an empty ring, unlike fcvt.d.w(u) and fmv.w.x.
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
 addi t0, t0, 1
 fcvt.s.w ft8, t0
 fadd.s ft9, ft8, fs0
 addi t0, t0, 1
 fcvt.s.w ft8, t0
 fadd.s ft9, ft8, fs0
 addi t0, t0, 1
 fcvt.s.w ft8, t0
 fadd.s ft9, ft8, fs0
 addi t0, t0, 1
 fcvt.s.w ft8, t0
 fadd.s ft9, ft8, fs0
 addi t0, t0, 1
 fcvt.s.w ft8, t0
 fadd.s ft9, ft8, fs0
 addi t0, t0, 1
 fcvt.s.w ft8, t0
 fadd.s ft9, ft8, fs0
 addi t0, t0, 1
 fcvt.s.w ft8, t0
 fadd.s ft9, ft8, fs0
 addi t0, t0, 1
 fcvt.s.w ft8, t0
 fadd.s ft9, ft8, fs0
 ret
