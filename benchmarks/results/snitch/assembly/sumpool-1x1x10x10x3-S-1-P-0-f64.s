# kernel: sumpool:1x1x10x10x3,S=1,P=0 f64
# strategy: heuristic
# machine: snitch
# cycles: 640
# cycles_of_pdojo_snitch: 640
# arguments, in a0 and so on:
#   --arg 'f64[1,1,10,10]'
#   --arg 'f64[1,1,8,8]=out'
.text
.globl sumpool
.p2align 2
sumpool:
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
    fcvt.d.w ft3, zero
    li a2, 1
    addi a3, a0, 640
.Lsumpool_loop2:
    scfgwi a0, 864
    scfgwi a1, 929
    csrrsi zero, 1984, 1
    li a4, 4
.Lsumpool_loop1:
    fadd.d ft4, ft3, ft0
    fadd.d ft5, ft3, ft0
    fadd.d ft6, ft3, ft0
    fadd.d ft7, ft3, ft0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    fadd.d ft7, ft7, ft0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    fadd.d ft7, ft7, ft0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    fadd.d ft7, ft7, ft0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    fadd.d ft7, ft7, ft0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    fadd.d ft7, ft7, ft0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    fadd.d ft7, ft7, ft0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    fadd.d ft7, ft7, ft0
    fadd.d ft1, ft4, ft0
    fadd.d ft1, ft5, ft0
    fadd.d ft1, ft6, ft0
    fadd.d ft1, ft7, ft0
    fadd.d ft4, ft3, ft0
    fadd.d ft5, ft3, ft0
    fadd.d ft6, ft3, ft0
    fadd.d ft7, ft3, ft0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    fadd.d ft7, ft7, ft0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    fadd.d ft7, ft7, ft0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    fadd.d ft7, ft7, ft0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    fadd.d ft7, ft7, ft0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    fadd.d ft7, ft7, ft0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    fadd.d ft7, ft7, ft0
    fadd.d ft4, ft4, ft0
    fadd.d ft5, ft5, ft0
    fadd.d ft6, ft6, ft0
    fadd.d ft7, ft7, ft0
    fadd.d ft1, ft4, ft0
    fadd.d ft1, ft5, ft0
    fadd.d ft1, ft6, ft0
    fadd.d ft1, ft7, ft0
    addi a4, a4, -1
    bne a4, zero, .Lsumpool_loop1
    csrrci zero, 1984, 1
    addi a0, a0, 320
    addi a1, a1, 256
    bne a0, a3, .Lsumpool_loop2
.Lsumpool_written3:
    scfgr a0, a2
    bge a0, zero, .Lsumpool_written3
    ret
