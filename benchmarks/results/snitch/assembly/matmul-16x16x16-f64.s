# kernel: matmul:16x16x16 f64
# strategy: heuristic
# machine: snitch
# cycles: 4146
# cycles_of_pdojo_snitch: 4146
# arguments, in a0 and so on:
#   --arg 'f64[16,16]'
#   --arg 'f64[16,16]'
#   --arg 'f64[16,16]=out'
.text
.globl matmul
.p2align 2
matmul:
    li a3, 15
    li a4, 128
    li a5, 3
    li a6, -376
    li a7, -504
    li t0, 8
    li t1, -1912
    li t2, -2040
    fcvt.d.w ft3, zero
    li t3, 13
    li t4, 63
    li t5, 2
    scfgwi a3, 127
    scfgwi a4, 223
    scfgwi zero, 32
    scfgwi a5, 64
    scfgwi a6, 224
    scfgwi a3, 128
    scfgwi a7, 256
    scfgwi a5, 160
    scfgwi t0, 288
    scfgwi a0, 864
    scfgwi a5, 33
    scfgwi a3, 65
    scfgwi t1, 225
    scfgwi a5, 129
    scfgwi t2, 257
    scfgwi a1, 833
    scfgwi zero, 34
    scfgwi a5, 66
    scfgwi a6, 226
    scfgwi a5, 130
    scfgwi t0, 258
    scfgwi a2, 962
    csrrsi zero, 1984, 1
    frep.o t4, 12, 0, 0
    fmadd.d ft4, ft0, ft1, ft3
    fmadd.d ft5, ft0, ft1, ft3
    fmadd.d ft6, ft0, ft1, ft3
    fmadd.d ft7, ft0, ft1, ft3
    frep.o t3, 4, 0, 0
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmadd.d ft2, ft0, ft1, ft4
    fmadd.d ft2, ft0, ft1, ft5
    fmadd.d ft2, ft0, ft1, ft6
    fmadd.d ft2, ft0, ft1, ft7
    csrrci zero, 1984, 1
.Lmatmul_written1:
    scfgr a0, t5
    bge a0, zero, .Lmatmul_written1
    ret
