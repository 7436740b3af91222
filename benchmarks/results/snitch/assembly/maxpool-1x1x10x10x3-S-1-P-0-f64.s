# kernel: maxpool:1x1x10x10x3,S=1,P=0 f64
# strategy: heuristic
# machine: snitch
# cycles: 642
# cycles_of_pdojo_snitch: 642
# arguments, in a0 and so on:
#   --arg 'f64[1,1,10,10]'
#   --arg 'f64[1,1,8,8]=out'
.data
.balign 8
maxpool_constants:
.word 0x00000000, 0xfff00000
.text
.globl maxpool
.p2align 2
maxpool:
    scfgwi zero, 32
    li a2, 3
    scfgwi a2, 64
    li a3, 80
    scfgwi a3, 192
    li a3, 2
    scfgwi a3, 96
    li a4, -232
    scfgwi a4, 224
    scfgwi a3, 128
    li a3, -176
    scfgwi a3, 256
    li a3, 7
    scfgwi a3, 160
    li a4, -408
    scfgwi a4, 288
    scfgwi zero, 33
    scfgwi a2, 65
    li a2, 64
    scfgwi a2, 193
    scfgwi a3, 97
    li a2, -184
    scfgwi a2, 225
    la a2, maxpool_constants
    fld ft3, 0(a2)
    li a2, 1
    addi a3, a0, 640
.Lmaxpool_loop2:
    scfgwi a0, 864
    scfgwi a1, 929
    csrrsi zero, 1984, 1
    li a4, 4
.Lmaxpool_loop1:
    fmax.d ft4, ft3, ft0
    fmax.d ft5, ft3, ft0
    fmax.d ft6, ft3, ft0
    fmax.d ft7, ft3, ft0
    fmax.d ft4, ft4, ft0
    fmax.d ft5, ft5, ft0
    fmax.d ft6, ft6, ft0
    fmax.d ft7, ft7, ft0
    fmax.d ft4, ft4, ft0
    fmax.d ft5, ft5, ft0
    fmax.d ft6, ft6, ft0
    fmax.d ft7, ft7, ft0
    fmax.d ft4, ft4, ft0
    fmax.d ft5, ft5, ft0
    fmax.d ft6, ft6, ft0
    fmax.d ft7, ft7, ft0
    fmax.d ft4, ft4, ft0
    fmax.d ft5, ft5, ft0
    fmax.d ft6, ft6, ft0
    fmax.d ft7, ft7, ft0
    fmax.d ft4, ft4, ft0
    fmax.d ft5, ft5, ft0
    fmax.d ft6, ft6, ft0
    fmax.d ft7, ft7, ft0
    fmax.d ft4, ft4, ft0
    fmax.d ft5, ft5, ft0
    fmax.d ft6, ft6, ft0
    fmax.d ft7, ft7, ft0
    fmax.d ft4, ft4, ft0
    fmax.d ft5, ft5, ft0
    fmax.d ft6, ft6, ft0
    fmax.d ft7, ft7, ft0
    fmax.d ft1, ft4, ft0
    fmax.d ft1, ft5, ft0
    fmax.d ft1, ft6, ft0
    fmax.d ft1, ft7, ft0
    fmax.d ft4, ft3, ft0
    fmax.d ft5, ft3, ft0
    fmax.d ft6, ft3, ft0
    fmax.d ft7, ft3, ft0
    fmax.d ft4, ft4, ft0
    fmax.d ft5, ft5, ft0
    fmax.d ft6, ft6, ft0
    fmax.d ft7, ft7, ft0
    fmax.d ft4, ft4, ft0
    fmax.d ft5, ft5, ft0
    fmax.d ft6, ft6, ft0
    fmax.d ft7, ft7, ft0
    fmax.d ft4, ft4, ft0
    fmax.d ft5, ft5, ft0
    fmax.d ft6, ft6, ft0
    fmax.d ft7, ft7, ft0
    fmax.d ft4, ft4, ft0
    fmax.d ft5, ft5, ft0
    fmax.d ft6, ft6, ft0
    fmax.d ft7, ft7, ft0
    fmax.d ft4, ft4, ft0
    fmax.d ft5, ft5, ft0
    fmax.d ft6, ft6, ft0
    fmax.d ft7, ft7, ft0
    fmax.d ft4, ft4, ft0
    fmax.d ft5, ft5, ft0
    fmax.d ft6, ft6, ft0
    fmax.d ft7, ft7, ft0
    fmax.d ft4, ft4, ft0
    fmax.d ft5, ft5, ft0
    fmax.d ft6, ft6, ft0
    fmax.d ft7, ft7, ft0
    fmax.d ft1, ft4, ft0
    fmax.d ft1, ft5, ft0
    fmax.d ft1, ft6, ft0
    fmax.d ft1, ft7, ft0
    addi a4, a4, -1
    bne a4, zero, .Lmaxpool_loop1
    csrrci zero, 1984, 1
    addi a0, a0, 320
    addi a1, a1, 256
    bne a0, a3, .Lmaxpool_loop2
.Lmaxpool_written3:
    scfgr a0, a2
    bge a0, zero, .Lmaxpool_written3
    ret
