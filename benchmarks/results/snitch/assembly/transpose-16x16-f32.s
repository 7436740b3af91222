# kernel: transpose:16x16 f32
# strategy: greedy
# machine: snitch
# cycles: 408
# cycles_of_pdojo_snitch: 408
# arguments, in a0 and so on:
#   --arg 'f32[16,16]'
#   --arg 'f32[16,16]=out'
.text
.globl transpose
.p2align 2
transpose:
    li a2, 15
    li a3, 64
    li a4, 7
    li a5, -952
    scfgwi zero, 32
    scfgwi a2, 64
    scfgwi a3, 192
    scfgwi a4, 96
    scfgwi a5, 224
    scfgwi a1, 928
    csrrsi zero, 1984, 1
    fld ft3, 0(a0)
    fld ft4, 64(a0)
    flw ft5, 4(a0)
    flw ft6, 68(a0)
    fld ft7, 8(a0)
    fld ft8, 72(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 12(a0)
    flw ft4, 76(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 16(a0)
    fld ft6, 80(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 20(a0)
    flw ft8, 84(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 24(a0)
    fld ft4, 88(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 28(a0)
    flw ft6, 92(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 32(a0)
    fld ft8, 96(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 36(a0)
    flw ft4, 100(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 40(a0)
    fld ft6, 104(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 44(a0)
    flw ft8, 108(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 48(a0)
    fld ft4, 112(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 52(a0)
    flw ft6, 116(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 56(a0)
    fld ft8, 120(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 60(a0)
    flw ft4, 124(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 128(a0)
    fld ft6, 192(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 132(a0)
    flw ft8, 196(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 136(a0)
    fld ft4, 200(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 140(a0)
    flw ft6, 204(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 144(a0)
    fld ft8, 208(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 148(a0)
    flw ft4, 212(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 152(a0)
    fld ft6, 216(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 156(a0)
    flw ft8, 220(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 160(a0)
    fld ft4, 224(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 164(a0)
    flw ft6, 228(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 168(a0)
    fld ft8, 232(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 172(a0)
    flw ft4, 236(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 176(a0)
    fld ft6, 240(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 180(a0)
    flw ft8, 244(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 184(a0)
    fld ft4, 248(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 188(a0)
    flw ft6, 252(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 256(a0)
    fld ft8, 320(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 260(a0)
    flw ft4, 324(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 264(a0)
    fld ft6, 328(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 268(a0)
    flw ft8, 332(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 272(a0)
    fld ft4, 336(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 276(a0)
    flw ft6, 340(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 280(a0)
    fld ft8, 344(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 284(a0)
    flw ft4, 348(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 288(a0)
    fld ft6, 352(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 292(a0)
    flw ft8, 356(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 296(a0)
    fld ft4, 360(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 300(a0)
    flw ft6, 364(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 304(a0)
    fld ft8, 368(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 308(a0)
    flw ft4, 372(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 312(a0)
    fld ft6, 376(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 316(a0)
    flw ft8, 380(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 384(a0)
    fld ft4, 448(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 388(a0)
    flw ft6, 452(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 392(a0)
    fld ft8, 456(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 396(a0)
    flw ft4, 460(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 400(a0)
    fld ft6, 464(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 404(a0)
    flw ft8, 468(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 408(a0)
    fld ft4, 472(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 412(a0)
    flw ft6, 476(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 416(a0)
    fld ft8, 480(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 420(a0)
    flw ft4, 484(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 424(a0)
    fld ft6, 488(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 428(a0)
    flw ft8, 492(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 432(a0)
    fld ft4, 496(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 436(a0)
    flw ft6, 500(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 440(a0)
    fld ft8, 504(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 444(a0)
    flw ft4, 508(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 512(a0)
    fld ft6, 576(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 516(a0)
    flw ft8, 580(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 520(a0)
    fld ft4, 584(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 524(a0)
    flw ft6, 588(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 528(a0)
    fld ft8, 592(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 532(a0)
    flw ft4, 596(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 536(a0)
    fld ft6, 600(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 540(a0)
    flw ft8, 604(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 544(a0)
    fld ft4, 608(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 548(a0)
    flw ft6, 612(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 552(a0)
    fld ft8, 616(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 556(a0)
    flw ft4, 620(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 560(a0)
    fld ft6, 624(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 564(a0)
    flw ft8, 628(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 568(a0)
    fld ft4, 632(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 572(a0)
    flw ft6, 636(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 640(a0)
    fld ft8, 704(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 644(a0)
    flw ft4, 708(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 648(a0)
    fld ft6, 712(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 652(a0)
    flw ft8, 716(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 656(a0)
    fld ft4, 720(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 660(a0)
    flw ft6, 724(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 664(a0)
    fld ft8, 728(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 668(a0)
    flw ft4, 732(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 672(a0)
    fld ft6, 736(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 676(a0)
    flw ft8, 740(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 680(a0)
    fld ft4, 744(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 684(a0)
    flw ft6, 748(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 688(a0)
    fld ft8, 752(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 692(a0)
    flw ft4, 756(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 696(a0)
    fld ft6, 760(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 700(a0)
    flw ft8, 764(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 768(a0)
    fld ft4, 832(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 772(a0)
    flw ft6, 836(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 776(a0)
    fld ft8, 840(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 780(a0)
    flw ft4, 844(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 784(a0)
    fld ft6, 848(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 788(a0)
    flw ft8, 852(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 792(a0)
    fld ft4, 856(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 796(a0)
    flw ft6, 860(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 800(a0)
    fld ft8, 864(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 804(a0)
    flw ft4, 868(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 808(a0)
    fld ft6, 872(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 812(a0)
    flw ft8, 876(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 816(a0)
    fld ft4, 880(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 820(a0)
    flw ft6, 884(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 824(a0)
    fld ft8, 888(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 828(a0)
    flw ft4, 892(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 896(a0)
    fld ft6, 960(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 900(a0)
    flw ft8, 964(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 904(a0)
    fld ft4, 968(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 908(a0)
    flw ft6, 972(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 912(a0)
    fld ft8, 976(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 916(a0)
    flw ft4, 980(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 920(a0)
    fld ft6, 984(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 924(a0)
    flw ft8, 988(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 928(a0)
    fld ft4, 992(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 932(a0)
    flw ft6, 996(a0)
    vfcpka.s.s ft0, ft7, ft8
    fld ft7, 936(a0)
    fld ft8, 1000(a0)
    vfcpka.s.s ft0, ft3, ft4
    flw ft3, 940(a0)
    flw ft4, 1004(a0)
    vfcpka.s.s ft0, ft5, ft6
    fld ft5, 944(a0)
    fld ft6, 1008(a0)
    vfcpka.s.s ft0, ft7, ft8
    flw ft7, 948(a0)
    flw ft8, 1012(a0)
    vfcpka.s.s ft0, ft3, ft4
    fld ft3, 952(a0)
    fld ft4, 1016(a0)
    vfcpka.s.s ft0, ft5, ft6
    flw ft5, 956(a0)
    flw ft6, 1020(a0)
    vfcpka.s.s ft0, ft7, ft8
    vfcpka.s.s ft0, ft3, ft4
    vfcpka.s.s ft0, ft5, ft6
    csrrci zero, 1984, 1
.Ltranspose_written1:
    scfgr a0, zero
    bge a0, zero, .Ltranspose_written1
    ret
