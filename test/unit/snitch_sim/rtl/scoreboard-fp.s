# On RTL, fadd.d ft9 (f29) waits for the load of t4 (x29).
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
 lw t4, 0(a3)
 fadd.d ft9, ft3, ft4
 lw t4, 0(a3)
 fadd.d ft9, ft3, ft4
 lw t4, 0(a3)
 fadd.d ft9, ft3, ft4
 lw t4, 0(a3)
 fadd.d ft9, ft3, ft4
 lw t4, 0(a3)
 fadd.d ft9, ft3, ft4
 lw t4, 0(a3)
 fadd.d ft9, ft3, ft4
 ret
