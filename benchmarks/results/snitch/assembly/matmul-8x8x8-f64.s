# kernel: matmul:8x8x8 f64
# strategy: heuristic
# machine: snitch
# cycles: 722
# cycles_of_pdojo_snitch: 722
# arguments, in a0 and so on:
#   --arg 'f64[8,8]'
#   --arg 'f64[8,8]'
#   --arg 'f64[8,8]=out'
.text
.globl matmul
.p2align 2
matmul:
    li a3, 7
    li a4, 64
    li a5, 3
    li a6, -184
    li a7, -248
    li t0, 1
    li t1, 8
    li t2, -440
    li t3, -504
    fcvt.d.w ft3, zero
    li t4, 2
    scfgwi a3, 127
    scfgwi a4, 223
    scfgwi zero, 32
    scfgwi a5, 64
    scfgwi a6, 224
    scfgwi a3, 128
    scfgwi a7, 256
    scfgwi t0, 160
    scfgwi t1, 288
    scfgwi a0, 864
    scfgwi a5, 33
    scfgwi a3, 65
    scfgwi t2, 225
    scfgwi t0, 129
    scfgwi t3, 257
    scfgwi a1, 833
    scfgwi zero, 34
    scfgwi a5, 66
    scfgwi a6, 226
    scfgwi t0, 130
    scfgwi t1, 258
    scfgwi a2, 962
    csrrsi zero, 1984, 1
    li a0, 2
.Lmatmul_loop2:
    li a1, 8
.Lmatmul_loop1:
    fmv.d ft4, ft3
    fmv.d ft5, ft3
    fmv.d ft6, ft3
    fmv.d ft7, ft3
    frep.o a3, 4, 0, 0
    fmadd.d ft4, ft0, ft1, ft4
    fmadd.d ft5, ft0, ft1, ft5
    fmadd.d ft6, ft0, ft1, ft6
    fmadd.d ft7, ft0, ft1, ft7
    fmv.d ft2, ft4
    fmv.d ft2, ft5
    fmv.d ft2, ft6
    fmv.d ft2, ft7
    addi a1, a1, -1
    bne a1, zero, .Lmatmul_loop1
    addi a0, a0, -1
    bne a0, zero, .Lmatmul_loop2
    csrrci zero, 1984, 1
.Lmatmul_written3:
    scfgr a0, t4
    bge a0, zero, .Lmatmul_written3
    ret
