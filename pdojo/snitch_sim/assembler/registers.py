"""Names of registers, rounding modes and control registers of RISC-V and Snitch."""

from __future__ import annotations

ABI_INTEGER = tuple(
    "zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6".split()
)
ABI_FLOAT = tuple(
    "ft0 ft1 ft2 ft3 ft4 ft5 ft6 ft7 fs0 fs1 fa0 fa1 fa2 fa3 fa4 fa5 fa6 fa7 fs2 fs3 fs4 fs5 fs6 fs7 fs8 fs9 fs10 fs11 "
    "ft8 ft9 ft10 ft11".split()
)
INTEGER = {
    **{name: i for i, name in enumerate(ABI_INTEGER)},
    **{f"x{i}": i for i in range(32)},
    "fp": 8,
}
FLOAT = {**{name: i for i, name in enumerate(ABI_FLOAT)}, **{f"f{i}": i for i in range(32)}}

ROUNDING = {"rne": 0, "rtz": 1, "rdn": 2, "rup": 3, "rmm": 4, "dyn": 7}
DYNAMIC = ROUNDING["dyn"]

SSR = 0x7C0
BARRIER = 0x7C2
MCYCLE = 0xB00
MINSTRET = 0xB02
CYCLE = 0xC00
INSTRET = 0xC02
MHARTID = 0xF14
FFLAGS, FRM, FCSR = 1, 2, 3
CSR = {
    "ssr": SSR,
    "barrier": BARRIER,
    "mcycle": MCYCLE,
    "minstret": MINSTRET,
    "cycle": CYCLE,
    "instret": INSTRET,
    "mhartid": MHARTID,
    "fflags": FFLAGS,
    "frm": FRM,
    "fcsr": FCSR,
}
