# kernel: fill:16x16 f32
# strategy: greedy
# machine: snitch
# cycles: 150
# cycles_of_pdojo_snitch: 150
# arguments, in a0 and so on:
#   --arg 'f32[1]'
#   --arg 'f32[16,16]=out'
.text
.globl fill
.p2align 2
fill:
    flw ft3, 0(a0)
    li a0, 127
    li a2, 8
    scfgwi zero, 32
    scfgwi a0, 64
    scfgwi a2, 192
    scfgwi a1, 896
    csrrsi zero, 1984, 1
    frep.o a0, 1, 0, 0
    vfcpka.s.s ft0, ft3, ft3
    csrrci zero, 1984, 1
.Lfill_written1:
    scfgr a0, zero
    bge a0, zero, .Lfill_written1
    ret
