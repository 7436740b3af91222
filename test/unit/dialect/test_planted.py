"""Planted illegal rewrites: the exact oracle sees each of them, and the legality analysis refuses each that it can.

Every case does what a broken legality check or a broken rewrite would do: the rewrite is called where `check` refuses,
or one of its parts is replaced by a wrong one. An oracle that called one of these equal could not judge the moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser
from xdsl.pattern_rewriter import PatternRewriter

from pdojo.dialect.affine import Expr
from pdojo.dialect.canonical import canonicalize
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import PDOJO, KernelOp, ScopeOp
from pdojo.dialect.semantics.oracle import check_valid, equivalent, meaning
from pdojo.dialect.view.build import assign_ids
from pdojo.dialect.view.nest import Leaf
from pdojo.transforms.common.redirecting import Target
from pdojo.transforms.copies import staging
from pdojo.transforms.copies.footprint import Copy
from pdojo.transforms.move import Move
from pdojo.transforms.reductions import partial_results as reductions
from pdojo.transforms.registry import instantiate
from pdojo.transforms.storage import dimensions
from pdojo.transforms.structure import tiling


def program_of(text: str) -> Program:
    """The program of a notation, or of MLIR that is not verified: no statement depends on itself in what is."""
    kernel = parse_notation(text)[0] if text.startswith("kernel") else unverified(text)
    canonicalize(kernel)
    return Program(kernel, machine("toy"))


def unverified(text: str) -> KernelOp:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(PDOJO)
    kernel = Parser(context, text).parse_module().body.block.first_op
    assert isinstance(kernel, KernelOp)
    assign_ids(kernel)
    return kernel


def forced(program: Program, move: str) -> Program:
    """The program after the move's rewrite, whether it is legal or not."""
    wanted = instantiate(Move.parse(move))
    after = program.successor(program.kernel.clone())
    site = wanted.resolve(after, Move.parse(move).at)
    wanted.rewrite(after, site, PatternRewriter(next(iter(after.kernel.body.block.ops))))
    return program.successor(after.kernel)


@dataclass(frozen=True)
class Planted:
    """A program, a move that is illegal on it, and what the refusal says."""

    text: str
    move: str
    refusal: str


ILLEGAL = {
    "parallel sum into one cell": Planted(
        """kernel k(x) -> (s)
x f32 [8] heap
s f32 [] heap

s[] = 0
8 s[] += x[{0}]
""",
        "parallelize@s#1:0",
        "different iterations race on 's'; split_reduction gives each iteration a partial result",
    ),
    "parallel recurrence": Planted(
        """kernel k(x) -> (y)
x f32 [9] heap
y f32 [9] heap

t f32 [8] heap

y[0] = x[0]
8
| t[{0}] = y[{0}]
| y[{0}+1] = t[{0}] + x[{0}]
""",
        "parallelize@t:0",
        "different iterations race on 'y'",
    ),
    "parallel scope around a temporary that all iterations share": Planted(
        """kernel k(x) -> (y)
x f32 [8, 4] heap
y f32 [8, 4] heap
t f32 [4] heap

8
| 4 t[{1}] = x[{0},{1}]
| 4 y[{0},{1}] = t[{1}]
""",
        "parallelize@t:0",
        "different iterations race on 't'",
    ),
    "reuse without fusion": Planted(
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
t f32 [8] heap

8 t[{0}] = x[{0}]
8 y[{0}] = exp(t[{0}])
""",
        "reuse_dims@t:0",
        "'t' would be overwritten before its last read",
    ),
    "reuse of a stencil's temporary": Planted(
        """kernel k(x) -> (y)
x f32 [9] heap
y f32 [8] heap
t f32 [9] heap

t[0] = x[0]
8
| t[{0}+1] = x[{0}+1]
| y[{0}] = t[{0}] + t[{0}+1]
""",
        "reuse_dims@t:0",
        "'t' would be overwritten before its last read",
    ),
    "reuse makes a private copy that is read outside": Planted(
        """kernel k(x) -> (y)
x f32 [4] heap
y f32 [4] heap
t f32 [4] heap

4:p t[{0}] = x[{0}]
4 y[{0}] = t[{0}]
""",
        "reuse_dims@t:0",
        "'t' would be private to each iteration of a concurrent scope, but is used outside it",
    ),
    "fusion against a backward dependence": Planted(
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
t f32 [8] heap

8 t[{0}] = x[{0}]
8 y[{0}] = t[7-{0}]
""",
        "join_scopes@t:0",
        "the second scope needs iterations of the first that would come later",
    ),
    "fusion of parallel scopes with a dependence between iterations": Planted(
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
t f32 [9] heap

t[0] = 0
8:p t[{0}+1] = x[{0}]
8:p y[{0}] = t[{0}]
""",
        "join_scopes@t#1:0",
        "the second scope needs iterations of the first that would come later",
    ),
    "fusion of parallel scopes that accumulate into each other's cells": Planted(
        """kernel k(x) -> (y)
x f32 [4] heap
y f32 [4] heap

4 y[{0}] = x[{0}]
4:p y[{0}] += x[{0}]
4:p y[({0}+1)%4] += x[{0}]
""",
        "join_scopes@y#1:0",
        "the second scope needs iterations of the first that would come later",
    ),
    "reuse gives threads one slot": Planted(
        """kernel k(x) -> (y)
x f32 [4] heap
y f32 [4] heap
t f32 [4] heap

2:p 4 where ({0}*2 <= {1}, {1} <= {0}*2+1)
| t[{1}] = x[{1}]
| y[{1}] = t[{1}]
""",
        "reuse_dims@t:0",
        "iterations of scope {0} of extent 2:p would share a slot",
    ),
    "expansion through a temporary that threads share": Planted(
        """kernel k(x) -> (y)
x f32 [4] heap
y f32 [4] heap
t f32 [] heap

4 y[{0}] = x[{0}]
4:p y[{0}] fma= x[{0}] * x[{0}]
""",
        "expand@y#1{into=t}",
        "iterations of scope {0} of extent 4:p would share elements of 't'",
    ),
    "split against a dependence": Planted(
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
t f32 [9] heap

t[0] = 0
8
| y[{0}] = t[{0}]
| t[{0}+1] = x[{0}]
""",
        "split_scopes@y:0{after=1}",
        "the first part needs earlier iterations of the second",
    ),
    "split of a parallel scope between write and read of a private copy": Planted(
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
t f32 [8:N] stack

8:p
| t[{0}] = x[{0}]
| y[{0}] = t[{0}]
""",
        "split_scopes@t:0{after=1}",
        "each iteration has its own copy of 't', used on both sides of the cut",
    ),
    "interchange against (<, >)": Planted(
        """kernel k(x) -> (y)
x f32 [4, 4] heap
y f32 [4, 4] heap
t f32 [3, 3] heap

4 4 y[{0},{1}] = x[{0},{1}]
3 3
| t[{0},{1}] = y[{0},{1}+1]
| y[{0}+1,{1}] = t[{0},{1}]
""",
        "swap_scopes@y#1:0",
        "a dependence would be turned round",
    ),
    "a lane reads what an earlier lane writes": Planted(
        """pdojo.kernel @k(in x %x: memref<5xf32>, out y %y: memref<5xf32>) {
  pdojo.scope %i = 5 {
    pdojo.op %y[%i] = %x[%i]
  }
  pdojo.scope %i = 4 {
    pdojo.op %y[%i + 1] = arith.addf(%y[%i], %x[%i])
  }
}
""",
        "vectorize@y#1:0",
        "a lane reads what an earlier lane writes",
    ),
    "lanes write one cell": Planted(
        """kernel k(x) -> (y)
x f32 [4] heap
y f32 [] heap

4 y[] = x[{0}]
""",
        "vectorize@y:0",
        "all lanes would write y[]",
    ),
    "unmapping one of two vectors that share lanes": Planted(
        """kernel k(x) -> (y)
x f32 [4] heap
y f32 [4] heap
t f32 [4:N] stack

4:v t[{0}] = x[{0}]
4:v y[{0}] = t[{0}]
""",
        "unmap@t:0",
        "'t' would",
    ),
    "private copies of one element get one memory": Planted(
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
t f32 [4:N] stack

8:p
| t[{0}//2] = x[{0}]
| y[{0}] = t[{0}//2]
""",
        "materialize_dims@t:0",
        "iterations of scope {0} of extent 8:p share elements",
    ),
    "exchange of dependent nodes": Planted(
        """kernel k(x) -> (y)
x f32 [4] heap
y f32 [4] heap
t f32 [4] heap

4
| t[{0}] = x[{0}]
| y[{0}] = t[{0}]
""",
        "swap_nodes@t",
        "the second depends on the first",
    ),
    "exchange of different accumulations": Planted(
        """kernel k(x) -> (y)
x f32 [4] heap
y f32 [4] heap

4
| y[{0}] = 1
| y[{0}] += x[{0}]
| y[{0}] *= x[{0}]
""",
        "swap_nodes@y#1",
        "the second depends on the first",
    ),
    "exchange of signed and unsigned maxima": Planted(
        """kernel k(x, w) -> (y)
x i8 [4] heap
w i8 [4] heap
y i8 [4] heap

4 y[{0}] = 3
4 y[{0}] umax= x[{0}]
4 y[{0}] max= w[{0}]
""",
        "swap_nodes@y#1:0",
        "the second depends on the first",
    ),
    "contraction with a second reader": Planted(
        """kernel k(x, w) -> (y, z)
x f32 [4] heap
w f32 [4] heap
y f32 [] heap
z f32 [4] heap
t f32 [4] heap

y[] = 0
4
| t[{0}] = x[{0}] * w[{0}]
| y[] += t[{0}]
| z[{0}] = t[{0}]
""",
        "contract@y#1",
        "'t' is used elsewhere; the product needs a single reader",
    ),
    "expansion through a temporary in use": Planted(
        """kernel k(x, w) -> (y, z)
x f32 [4] heap
w f32 [4] heap
y f32 [] heap
z f32 [4] heap
t f32 [4] heap

4 t[{0}] = exp(x[{0}])
y[] = 0
4 y[] fma= x[{0}] * w[{0}]
4 z[{0}] = t[{0}]
""",
        'expand@y#1{into=t index="{0}"}',
        "'t' is used elsewhere",
    ),
    "partial results of a sum that is read": Planted(
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [] heap

y[] = 1
8 y[] += y[] * x[{0}]
""",
        "split_reduction@y#1:0{size=2}",
        "the op reads 'y', into which it accumulates",
    ),
    "a copy of what the scope still writes": Planted(
        """kernel k(x) -> (y)
x f32 [4] heap
y f32 [4] heap
t f32 [5] heap

5 t[{0}] = 1
4
| y[{0}] = t[{0}]
| t[{0}+1] = x[{0}]
""",
        "stage_in@y:0{array=t location=heap}",
        "the scope writes what it reads of 't'",
    ),
    "copied back without having been written": Planted(
        """kernel k(x) -> (y)
x f32 [8, 4] heap
y f32 [8] heap

8 y[{0}] = 0
8 4 where ({0}+{1} < 6) y[{0}] = x[{0},{1}]
""",
        "stage_out@y#1:0{array=y location=heap}",
        "the scope does not write all of 'y' that would be copied back",
    ),
    "an element in two places of a copy": Planted(
        """kernel k(x) -> (y)
x f32 [4, 3] heap
y f32 [6] heap

6 y[{0}] = 0
4 3 y[{0}+{1}] += x[{0},{1}]
""",
        "stage_out@y#1:0{array=y location=heap}",
        "the copy would hold an element of 'y' twice; use form=box",
    ),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_refused_and_seen(name: str) -> None:
    case = ILLEGAL[name]
    before = program_of(case.text)
    assert check_valid(before.nest) is None
    move = Move.parse(case.move)
    wanted = instantiate(move)
    reason = wanted.check(before, wanted.resolve(before, move.at))
    assert reason is not None
    assert case.refusal in reason.text
    assert equivalent(before.nest, forced(before, case.move).nest) is not None


@pytest.mark.parametrize("name", ILLEGAL)
def test_seen_whatever_the_seed(name: str) -> None:
    case = ILLEGAL[name]
    before = program_of(case.text)
    after = forced(before, case.move)
    assert all(equivalent(before.nest, after.nest, schedules=4, seed=seed) is not None for seed in range(20))


REDUCTION = """kernel k(x) -> (y)
x f32 [8] heap
y f32 [] heap

y[] = 1
8 y[] += x[{0}]
"""

RAGGED = """kernel k(x) -> (y)
x f32 [8] heap
y f32 [] heap

y[] = 1
7 y[] += x[{0}]
"""

TRANSPOSED = """kernel k(x) -> (y)
x f32 [4, 4] heap
y f32 [4, 4] heap
t f32 [4, 4] heap

4 4 t[{0},{1}] = x[{0},{1}]
4 4 y[{0},{1}] = t[{0},{1}]
"""

NESTED = """kernel k(x) -> (y)
x f32 [2, 3] heap
y f32 [2, 3] heap

2 3 y[{0},{1}] = x[{0},{1}]
"""

PARTIALS = """kernel k(x) -> (y)
x f32 [8] heap
y f32 [] heap
p f32 [2] heap

y[] = 1
2 p[{0}] = 5
4 2 p[{1}] += x[{0}*2+{1}]
2 y[] += p[{0}]
"""

HALVES = """kernel k(x) -> (y)
x f32 [4, 7] heap
y f32 [8] heap

8 y[{0}] = 1
4 2 4 where ({1}*4+{2} < 7) y[{1}*4+{2}] += x[{0},{1}*4+{2}]
"""

Place = Callable[[Iterable[Expr], Sequence[ScopeOp], Iterable[int], PatternRewriter], None]


def without_guards(place: Place) -> Place:
    def placed(_: Iterable[Expr], chain: Sequence[ScopeOp], depths: Iterable[int], rewriter: PatternRewriter) -> None:
        place([], chain, depths, rewriter)

    return placed


def with_narrow_guards(place: Place) -> Place:
    def placed(
        guards: Iterable[Expr], chain: Sequence[ScopeOp], depths: Iterable[int], rewriter: PatternRewriter
    ) -> None:
        place([g - 1 for g in guards], chain, depths, rewriter)

    return placed


def without_remainder(digits: Callable[..., dict[int, Expr]]) -> Callable[..., dict[int, Expr]]:
    def wrong(depth: int, size: int, extents: Sequence[int]) -> dict[int, Expr]:
        return dict.fromkeys((depth, depth + 1), digits(depth, size, extents)[depth])

    return wrong


def only_writes(rebuilt: Callable[..., object]) -> Callable[..., object]:
    def wrong(leaf: Leaf, chain: object, output: object, _: object) -> object:
        return rebuilt(leaf, chain, output, leaf.inputs)

    return wrong


def unguarded_out(nest: Callable[..., object]) -> Callable[..., object]:
    def made(copy: Copy, site: object, output: Target, *rest: object) -> object:
        out = output[0] is copy.source
        return nest(replace(copy, guards=()) if out else copy, site, output, *rest)

    return made


def constantly(value: object) -> Callable[[Any], Callable[..., object]]:
    return lambda _: lambda *_: value


SABOTAGED: dict[str, tuple[str, str, object, str, Callable[[Any], object]]] = {
    "no guard on the tail": (RAGGED, "tile_scope@y#1:0{size=4}", tiling, "place_guards", without_guards),
    "the guard of the tail is too narrow": (
        RAGGED,
        "tile_scope@y#1:0{size=4}",
        tiling,
        "place_guards",
        with_narrow_guards,
    ),
    "no guard on ragged partial results": (
        RAGGED,
        "split_reduction@y#1:0{size=4}",
        reductions,
        "place_guards",
        without_guards,
    ),
    "a forgotten remainder": (NESTED, "collapse_scopes@y:0", tiling, "digits_of", without_remainder),
    "wrong neutral element": (REDUCTION, "split_reduction@y#1:0{size=2}", reductions, "identity_value", constantly(1)),
    "partial results that start elsewhere": (
        PARTIALS,
        "merge_reduction@p#1:0",
        reductions,
        "_mismatch",
        constantly(None),
    ),
    "old values that do not come in": (
        HALVES,
        "stage_out@y#1:0{array=y location=heap}",
        staging.StageOut,
        "directions",
        constantly("w"),
    ),
    "a copy back beyond what came in": (
        HALVES,
        "stage_out@y#1:0{array=y location=heap}",
        staging,
        "copy_nest",
        unguarded_out,
    ),
    "only the writes follow the layout": (TRANSPOSED, "swap_dims@t:0", dimensions, "rebuilt", only_writes),
}


@pytest.mark.parametrize("name", SABOTAGED)
def test_sabotage_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, move, module, part, sabotage = SABOTAGED[name]
    before = program_of(text)
    if name != "partial results that start elsewhere":
        assert equivalent(before.nest, forced(before, move).nest) is None
    monkeypatch.setattr(module, part, sabotage(getattr(module, part)))
    after = forced(before, move)
    oracle = meaning(before.nest)
    assert equivalent(oracle, after.nest) is not None
