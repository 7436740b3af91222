# Loads of the core and of the FP subsystem, whose response waits for the result of fsub.d: 111 cycles on RTL.
.text
f:
 li s0, 10
1:
 fsub.d fa3, fa7, fa2
 flw fs3, 40(a2)
 lw t2, 44(a3)
 fcvt.w.d t2, fa5
 addi s0, s0, -1
 bnez s0, 1b
 ret
