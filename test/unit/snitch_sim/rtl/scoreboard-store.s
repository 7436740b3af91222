# On RTL, a store with offset 8 waits for the load of s0 (x8): bits 7 to 11 of a store are its offset.
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
 lw s0, 0(a3)
 sw t0, 8(a1)
 lw s0, 0(a3)
 sw t0, 8(a1)
 lw s0, 0(a3)
 sw t0, 8(a1)
 lw s0, 0(a3)
 sw t0, 8(a1)
 lw s0, 0(a3)
 sw t0, 8(a1)
 lw s0, 0(a3)
 sw t0, 8(a1)
 ret
