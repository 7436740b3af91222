# kernel: conv:1x1x1x10x10x3 f64
# strategy: heuristic
# machine: snitch
# cycles: 648
# cycles_of_pdojo_snitch: 648
# arguments, in a0 and so on:
#   --arg 'f64[1,1,10,10]'
#   --arg 'f64[1,1,3,3]'
#   --arg 'f64[1,1,8,8]=out'
.text
.globl conv
.p2align 2
conv:
    scfgwi zero, 32
    li a3, 3
    scfgwi a3, 64
    li a4, 80
    scfgwi a4, 192
    li a4, 2
    scfgwi a4, 96
    li a5, -232
    scfgwi a5, 224
    scfgwi a4, 128
    li a5, -176
    scfgwi a5, 256
    li a5, 7
    scfgwi a5, 160
    li a6, -408
    scfgwi a6, 288
    scfgwi a3, 33
    li a6, 8
    scfgwi a6, 65
    scfgwi a6, 193
    scfgwi a5, 97
    li a6, -64
    scfgwi a6, 225
    scfgwi zero, 34
    scfgwi a3, 66
    li a3, 64
    scfgwi a3, 194
    scfgwi a5, 98
    li a3, -184
    scfgwi a3, 226
    fcvt.d.w ft3, zero
    addi a3, a0, 640
.Lconv_loop2:
    scfgwi a0, 864
    scfgwi a1, 801
    scfgwi a2, 930
    csrrsi zero, 1984, 1
    li a5, 4
.Lconv_loop1:
    fmadd.d ft4, ft0, ft1, ft3
    fmadd.d ft5, ft0, ft1, ft3
    fmadd.d ft6, ft0, ft1, ft3
    fmadd.d ft7, ft0, ft1, ft3
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft2, ft0, ft1, ft4
    fmadd.d ft2, ft0, ft1, ft5
    fmadd.d ft2, ft0, ft1, ft6
    fmadd.d ft2, ft0, ft1, ft7
    fmadd.d ft4, ft0, ft1, ft3
    fmadd.d ft5, ft0, ft1, ft3
    fmadd.d ft6, ft0, ft1, ft3
    fmadd.d ft7, ft0, ft1, ft3
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft2, ft0, ft1, ft4
    fmadd.d ft2, ft0, ft1, ft5
    fmadd.d ft2, ft0, ft1, ft6
    fmadd.d ft2, ft0, ft1, ft7
    addi a5, a5, -1
    bne a5, zero, .Lconv_loop1
    csrrci zero, 1984, 1
    addi a0, a0, 320
    addi a2, a2, 256
    bne a0, a3, .Lconv_loop2
.Lconv_written3:
    scfgr a0, a4
    bge a0, zero, .Lconv_written3
    ret
