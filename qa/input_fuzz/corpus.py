"""Valid texts of every form that pdojo reads, as a base for mutations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from io import StringIO
from pathlib import Path
from random import Random

from xdsl.printer import Printer

import pdojo
from pdojo.dialect.machines import shipped_machines
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_module, parse_notation
from pdojo.kernels import kernel_names
from pdojo.kernels.random_kernels import features_for, random_text
from pdojo.transforms.apply import apply, legal_moves
from pdojo.transforms.game import Game
from qa.walks import Counts, draw

MACHINES = ("toy", "toy-gpu", "toy-snitch", "x86-64-avx512", "snitch")
"""Machines for random kernels and traces."""
KERNEL = """kernel softmax(x) -> (y)
x f32 [24, 32] heap
y f32 [24, 32] heap
m f32 [24] heap
e f32 [24, 32] heap
s f32 [24] heap

24
| m[{0}] = -inf
| 32 m[{0}] max= x[{0},{1}]
24 32 e[{0},{1}] = x[{0},{1}] - m[{0}]
24 32 e[{0},{1}] = exp(e[{0},{1}])
24
| s[{0}] = 0
| 32 s[{0}] += e[{0},{1}]
24 32 y[{0},{1}] = e[{0},{1}] / s[{0}]
"""
"""The kernel for mutated moves and traces."""
_FEATURES = """size R = 8
size H = R // 2 + 1
number EPS = 1e-5
type T = f32
kernel features(x, c) -> (c, y)
arguments y, c, x
numerics reassociate contract
machine toy
x T [R, 8] heap align 64
y T [R, 8] heap -> y, u
c i32 [R] heap
t f32 [8, 8^0*2] heap
k f32 [8:N] register

R
| 8 t[{0},{1}] = x[{0},{1}]
| 8:u where ({1} < 8, {0} % 2 >= 0) u[{0},{1}] = t[{0},{1}]!nontemporal + EPS
| k[{0}] = {0}
| c[{0}] += {0} + 1
8 8:v y[{0},{1}] = fma(x[{0},{1}], 2, -1e-3)
"""
_SIZES = """kernel rows_1(x, row) -> (y)
size N in 1..31
size M in 8..64 multiple 8
x f32 [N, (M+1)] heap
row i64 [4] heap in 0..N-1 wrap
y f32 [4, M] heap
t f32 [4, M] heap

4 (M//8) 8 t[{0},{1}*8+{2}] = x[row[{0}],{1}*8+{2}+1]
4 64 where (M-{1} >= 1, N%4-{0} <= 3) y[{0},{1}] = t[{0},M-1-{1}] + M

kernel rows_2(x, row) -> (y)
size N in 32..32
size M in 8..128 multiple 8
x f32 [N, (M+1)] heap
row i64 [4] heap in 0..N-1 wrap
y f32 [4, M] heap

4 M y[{0},{1}] = x[row[{0}],M-{1}]

versions rows = rows_1, rows_2
"""
"""Sizes, indices and versions that calls choose."""
_ASSEMBLY = """# y = a x
  .data
  .balign 8
table: .double 1.5, -2e3
  .text
  .globl axpy
axpy:
  la t0, table
  fld ft3, 0(t0)
  li t1, 0x10
1: flw ft4, 4(a0)
  fmadd.d ft5, ft3, ft4, fa0
  addi a0, a0, %lo(table)
  addi t1, t1, -1
  bnez t1, 1b
  frep.o t1, 1, 0, 0
  csrsi ssr, 1
  ret
"""
_MACHINE = """inherits = "toy"
name = "mine"
description = "ours"
threads = 8
lanes = { f32 = [4, 8] }
[[intrinsics]]
name = "f"
features = ["a"]
strides = { a = ["*"] }
numerics = ["reassociate"]
meaning = '''
kernel f(a) -> (b)
a f32 [2] heap
b f32 [2] heap

2 b[{0}] = a[{0}]
'''
templates = { llvm = "define void @f(ptr %a, ptr %b, i64 %n) alwaysinline { ret void }" }
"""


@cache
def corpus() -> Mapping[str, tuple[str, ...]]:
    """Texts by form: `notation`, `mlir`, `trace`, `machine`, `moves`, `shape`, `assembly`."""
    kernels = [KERNEL, _FEATURES, *[_SIZES] * 6, *_library(), *_random()]
    return {
        "notation": tuple(kernels),
        "mlir": tuple(text for kernel in kernels[:24] for text in _mlir(kernel)),
        "trace": tuple(_traces()),
        "machine": (_MACHINE, *_shipped()),
        "moves": tuple(_moves()),
        "shape": (
            "softmax",
            "softmax:64x32",
            "softmax:1..64x8..32/8",
            "conv:8x10x3x32x32x5,S=2",
            "batchnorm_1",
            "matmul:8x8x8,T=3",
            "layernorm_2",
        ),
        "assembly": (_ASSEMBLY,),
    }


def _library() -> list[str]:
    folder = Path(pdojo.__file__).parent / "kernels"
    return [(folder / f"{name}.pdojo").read_text(encoding="utf-8") for name in kernel_names()]


def _random() -> list[str]:
    return [random_text(seed, features_for(machine(MACHINES[seed % len(MACHINES)]))) for seed in range(30)]


def _shipped() -> list[str]:
    folder = Path(pdojo.__file__).parent / "dialect" / "machines"
    names = [name for name in shipped_machines() if name != "host"]
    texts = [(folder / f"{name}.toml").read_text(encoding="utf-8") for name in names]
    return [text.replace(f'name = "{name}"', 'name = "mine"', 1) for name, text in zip(names, texts, strict=True)]


def _mlir(text: str) -> list[str]:
    """A text of the notation in pretty and in generic MLIR."""
    found: list[str] = []
    for generic in (False, True):
        output = StringIO()
        Printer(output, print_generic_format=generic).print_op(parse_module(text))
        found.append(output.getvalue())
    return found


def _traces() -> list[str]:
    """Traces of random legal moves on `KERNEL`."""
    found: list[str] = []
    for seed in range(6):
        random, game = Random(seed), Game(parse_notation(KERNEL)[0], machine("toy"))
        for _ in range(8):
            move = draw(game.program, random, Counts())
            if move is not None:
                game.apply(move)
        found.append(game.trace.dump())
    return found


def _moves() -> list[str]:
    """The legal moves on `KERNEL`, and their inverses, some with texts."""
    program = Game(parse_notation(KERNEL)[0], machine("toy")).program
    moves = legal_moves(program)
    inverses = (apply(program, move).inverse for move in moves)
    return [*map(str, moves), *(str(move) for move in inverses if move is not None), ",".join(map(str, moves[:3]))]
