# On RTL, flt.d, fmv.x.w, fcvt.w.d and fcvt.wu.d go through the ring of the sequencer.
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
 fadd.d ft8, ft3, ft4
 flt.d t6, ft8, ft3
 addi t6, t6, 1
 fadd.d ft8, ft3, ft4
 flt.d t6, ft8, ft3
 addi t6, t6, 1
 fadd.d ft8, ft3, ft4
 flt.d t6, ft8, ft3
 addi t6, t6, 1
 fadd.d ft8, ft3, ft4
 flt.d t6, ft8, ft3
 addi t6, t6, 1
 fadd.d ft8, ft3, ft4
 flt.d t6, ft8, ft3
 addi t6, t6, 1
 fadd.d ft8, ft3, ft4
 flt.d t6, ft8, ft3
 addi t6, t6, 1
 fadd.d ft8, ft3, ft4
 flt.d t6, ft8, ft3
 addi t6, t6, 1
 fadd.d ft8, ft3, ft4
 flt.d t6, ft8, ft3
 addi t6, t6, 1
 ret
