"""What must hold of every state, whatever move led to it: each condition by itself, and moves with wrong checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pytest
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker

from pdojo.dialect.attributes import Mapping, MappingAttr
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules import conditions
from pdojo.dialect.rules.capacity import MOST_STATEMENTS
from pdojo.dialect.rules.conditions import conditions_of
from pdojo.dialect.view.nest import Buffer, Scope
from pdojo.errors import IllegalMove, Undecided
from pdojo.transforms import registry
from pdojo.transforms.apply import apply, legal_moves
from pdojo.transforms.base import Transformation
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from pdojo.transforms.passes import Everywhere
from pdojo.transforms.promises import Promises
from pdojo.transforms.trace import Step

DECLARED = "x f32 [4] heap\ny f32 [4] heap\n"


def broken(body: str, on: str = "toy") -> list[str]:
    """The conditions that a kernel from x to y breaks: declarations, an empty line, statements."""
    kernel = parse_notation(f"kernel k(x) -> (y)\n{body}\n")[0]
    return [problem.text for problem in conditions_of(Program(kernel, machine(on))).problems.values()]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("\n4 y[{0}] = x[{0}]", []),
        ("\n4 y[{0}] = 0\n4:p y[0] += x[{0}]", ["iterations of scope {0} of extent 4:p would race"]),
        ("\n4 y[{0}] = 0\n4:v y[0] = x[{0}]", ["iterations of scope {0} of extent 4:v would race"]),
        (
            "t f32 [4:N] heap\n\n4 t[{0}] = x[{0}]\n4 y[{0}] = t[{0}]",
            ["'t' would be overwritten before its last read"],
        ),
        (
            "t f32 [4] heap -> t, u\n\n4 t[{0}] = x[{0}]\n4 u[{0}] = t[{0}] + 1\n4 y[{0}] = t[{0}] + u[{0}]",
            ["'t' would be overwritten before its last read"],
        ),
        (
            "t f32 [4] register\n\n4 t[{0}] = x[{0}]\n4:u y[{0}] = t[{0}]",
            ["t[{0}] is indexed by scope {0} of extent 4; registers need constants"],
        ),
        (
            "t f32 [1] register\n\n2 1:p\n| t[0] = x[{0}]\n| y[{0}] = t[0]",
            ["t[0]: 't' is in registers, which another thread cannot reach"],
        ),
        (
            "z f32 [4, 3] heap\n\n4 3:v z[{0},{1}] = x[{0}]\n4 y[{0}] = z[{0},0]",
            ["scope {1} of extent 3:v is no vector of toy for f32"],
        ),
        (
            "t f32 [70000] stack\n\n70000 t[{0}] = x[0]\n4 y[{0}] = t[{0}]",
            ["stack buffers would take 280000 bytes; toy allows 262144"],
        ),
        (
            "t f32 [600] register\n\n600:u t[{0}] = x[0]\n4:u y[{0}] = t[{0}]",
            ["register buffers would take 2400 bytes; toy allows 2048"],
        ),
        (
            "\n4:u 128:u 64:u y[{0}] = x[{0}]",
            [f"the kernel unrolls to 32768 statements, more than {MOST_STATEMENTS}; unroll fewer scopes"],
        ),
    ],
)
def test_each_condition(body: str, wanted: list[str]) -> None:
    assert broken(DECLARED + body) == wanted


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("\n4:g y[{0}] = x[{0}]", []),
        ("\n4 y[{0}] = 0\n4:g y[0] += x[{0}]", []),
        (
            "\n4 y[{0}] = 0\n4:g y[0] max= x[{0}]",
            ["different iterations race on 'y': toy-gpu has no atomic operation max.f32"],
        ),
        ("\n4 y[{0}] = 0\n4:g 1:b y[{0}] += x[0]\n4:g y[0] = 1", ["iterations of scope {0} of extent 4:g would race"]),
        (
            "t f32 [4:N] heap\n\n4 t[{0}] = x[{0}]\n4:g y[{0}] = t[0]",
            ["'t' would be overwritten before its last read"],
        ),
    ],
)
def test_conditions_around_special_mappings(body: str, wanted: list[str]) -> None:
    assert broken(DECLARED + body, "toy-gpu") == wanted


def test_lanes_that_no_instruction_can_access() -> None:
    text = "x f32 [4, 4] heap\ny f32 [4] heap\n\n4:v y[{0}] = x[{0},0]"
    assert broken(text) == []  # the machine gathers
    assert broken(text, "toy-gpu") == [
        "the access x[{0},0] over scope {0} of extent 4:v is not contiguous, which toy-gpu cannot do"
    ]


THREE = """kernel k(x) -> (y)
x f32 [8, 3] heap
y f32 [8, 3] heap

8 3:v y[{0},{1}] = x[{0},{1}]
"""


def test_moves_that_break_nothing_else_are_legal_where_the_kernel_breaks_a_condition() -> None:
    """Kernels are written for other machines, too; a move may change what the message says."""
    game = Game(parse_notation(THREE)[0], machine("toy"))
    game.apply("tile_scope@y:0{size=2}")
    assert [p.text for p in conditions_of(game.program).problems.values()] == [
        "scope {2} of extent 3:v is no vector of toy for f32"
    ]


@dataclass(frozen=True)
class WrongMapping(Transformation[Scope]):
    """A move whose check accepts all."""

    name: ClassVar[str] = "wrong_mapping"
    promises: ClassVar = Promises(conditions=True, adds=0)
    mapping: ClassVar = Mapping.PARALLEL

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        yield from ((scope, cls()) for scope in program.nest.scopes if scope.mapping is Mapping.SEQUENTIAL)

    def check(self, program: Program, site: Scope) -> Reason | None:
        return None

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        site.op.properties["mapping"] = MappingAttr(self.mapping)

    def inverse(self, program: Program, site: Scope) -> Move:
        return Move("unmap", f"%{site.id}")


@dataclass(frozen=True)
class WrongAndCareful(WrongMapping):
    """The same without the promise."""

    name: ClassVar[str] = "wrong_and_careful"
    promises: ClassVar = Promises()


RACE = """kernel k(x) -> (y)
x f32 [4] heap
y f32 [1] heap

y[0] = 0
4 y[0] += x[{0}]
"""


@pytest.fixture
def wrong_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {cls.name: cls for cls in (WrongMapping, WrongAndCareful, WrongVector)}
    original = registry.transformation

    def found(name: str) -> type[Transformation[Any]]:
        return known.get(name) or original(name)

    monkeypatch.setattr(registry, "transformation", found)
    monkeypatch.setattr("pdojo.transforms.apply.transformation", found)
    monkeypatch.setattr("pdojo.transforms.apply.transformation_names", lambda: ("wrong_mapping", "wrong_and_careful"))


@pytest.mark.usefixtures("wrong_moves")
def test_a_wrong_check_ships_no_wrong_program() -> None:
    game = Game(parse_notation(RACE)[0], machine("toy"))
    before = print_notation(game.kernel)
    with pytest.raises(IllegalMove, match="would race"):
        game.apply("wrong_mapping@y#1:0")
    with pytest.raises(IllegalMove, match="would race"):
        apply(game.program, Move.parse("wrong_mapping@y#1:0"))
    assert (print_notation(game.kernel), game.trace.steps) == (before, [])


@pytest.mark.usefixtures("wrong_moves")
def test_a_replay_goes_on_behind_a_wrong_move() -> None:
    game = Game(parse_notation(RACE)[0], machine("toy"))
    wanted = [Move.parse(m) for m in ("tile_scope@%1{size=2}", "wrong_mapping@%1.o", "unroll@%1.i")]
    skipped = game.replay(Step(move, move) for move in wanted)
    assert [s.move for s in skipped] == [wanted[1]]
    assert "would race" in skipped[0].why
    alone = Game(parse_notation(RACE)[0], machine("toy"))
    alone.replay(Step(move, move) for move in (wanted[0], wanted[2]))
    assert print_notation(game.kernel) == print_notation(alone.kernel)


@pytest.mark.usefixtures("wrong_moves")
def test_moves_without_the_promise_are_asked_before_they_are_listed() -> None:
    program = Program(parse_notation(RACE)[0], machine("toy"))
    assert [str(move) for move in legal_moves(program)] == ["wrong_mapping@y:0"]


@pytest.mark.usefixtures("wrong_moves")
def test_what_integer_sets_do_not_settle_is_left_to_checks_that_prove_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A move that is listed is made: neither asks more than the other."""

    def undecided_in_nests(program: Program, _: Buffer) -> Reason | None:
        if any(scope.depth for scope in program.nest.scopes) or any(s.mapping.is_threaded for s in program.nest.scopes):
            raise Undecided("integer sets do not settle it")
        return None

    monkeypatch.setattr(conditions, "_race", undecided_in_nests)
    game = Game(parse_notation(RACE.replace("y[0] +=", "y[0] max="))[0], machine("toy"))
    with pytest.raises(IllegalMove, match="integer sets do not settle it"):
        game.apply("wrong_and_careful@y#1:0")
    game.apply("tile_scope@y#1:0{size=2}")
    assert conditions_of(game.program).problems.keys() == {"race of 'x', undecided", "race of 'y', undecided"}
    game.apply("unroll@y#1:1")


def test_patterns_ask_the_program_after() -> None:
    kernel = parse_notation(RACE)[0]
    before = print_notation(kernel)
    PatternRewriteWalker(Everywhere(WrongMapping())).rewrite_region(kernel.body)
    assert print_notation(kernel) == before


HEADS = "kernel k(x) -> (y)\n"

LISTED = {
    "registers inside threads that run again": (
        "x f32 [4] heap\ny f32 [4] heap\nt f32 [1] register\n\n1:p 4\n| t[0] = x[{1}]\n| y[{1}] = t[0]",
        "swap_scopes@t:0",
    ),
    "lanes in a dimension that is reused": (
        "x f32 [2, 4] heap\ny f32 [2, 4] heap\na f32 [2, 2] heap\n\n2\n| 4:v a[{1}//2,{1}%2] = x[{0},{1}]\n"
        "| 4:v y[{0},{1}] = a[{1}//2,{1}%2]",
        "reuse_dims@a:1",
    ),
    "slots for lanes": (
        "x f32 [512] heap\ny f32 [512] heap\nt f32 [512:N] register\nr f32 [511] register\n\n511:u r[{0}] = 0\n"
        "128\n| 4 t[{0}*4+{1}] = x[{0}*4+{1}]\n| 4 y[{0}*4+{1}] = x[{0}*4+{1}]\n511:u y[{0}] = r[{0}]",
        "vectorize@t:1",
    ),
    "slots for the lanes of what is peeled off": (
        "x f32 [1024] heap\ny f32 [1024] heap\nr f32 [1024:N] register\n\n256\n| 4:v r[{0}*4+{1}] = x[{0}*4+{1}]*2\n"
        "| 4:v y[{0}*4+{1}] = r[{0}*4+{1}]*2",
        "peel_scope@r:0{after=255}",
    ),
    "registers of a thread that another one runs again": (
        "x f32 [4] heap\ny f32 [4] heap\nt f32 [1] stack\n\n4 1:p\n| t[0] = x[{0}]\n| y[{0}] = t[0]",
        "set_location@t{location=register}",
    ),
    "copies of threads in the tail of tiles": (
        "x f32 [7] heap\ny f32 [7] heap\nt f32 [7, 4:N] stack\n\n7 4:p t[{0},{1}] = x[{0}]\n7 y[{0}] = x[{0}]",
        "tile_scope@t:0{size=4 tail=peel}",
    ),
    "two buffers in registers at once": (
        "x f32 [300] heap\ny f32 [600] heap\na f32 [300] register\nb f32 [300] register\n\n300:u a[{0}] = x[{0}]\n"
        "300:u y[{0}] = a[{0}]\n300:u b[{0}] = x[{0}]\n300:u y[{0}+300] = b[{0}]",
        "swap_nodes@y#0:0",
    ),
    "unrolled statements": (
        "x f32 [4] heap\ny f32 [16384] heap\nz f32 [4] heap\n\n16380:u y[{0}] = x[0]\n4 y[{0}+16380] = 1\n"
        "4 z[{0}] = x[{0}]",
        "unroll@z:0",
    ),
    "unrolled iterations": (
        "x f32 [16384] heap\ny f32 [16384] heap\n\n16384 1 1 y[{0}] = x[{0}]",
        "unroll@y:0",
    ),
    "loads past the caches by lanes that are apart": (
        "x f32 [4, 2] heap\ny f32 [4] heap\n\n4 y[{0}] = x[{0},0]!nontemporal",
        "vectorize@y:0",
    ),
    "loads past the caches that are not aligned": (
        "x f32 [9] heap\ny f32 [8] heap\n\n2 4 y[{0}*4+{1}] = x[{0}*4+{1}+1]!nontemporal",
        "vectorize@y:1",
    ),
}
"""Programs, and a move that a check which looks at the program before alone would list."""


@pytest.mark.parametrize("name", LISTED)
def test_what_cannot_be_made_is_not_listed(name: str) -> None:
    body, move = LISTED[name]
    game = Game(parse_notation(f"{HEADS}{body}\n")[0], machine("toy"))
    assert move not in {str(m) for m in game.moves()}
    with pytest.raises(IllegalMove):
        game.apply(move)


def test_what_a_kernel_breaks_may_be_said_in_other_words_after_a_move() -> None:
    """This machine does not gather; the kernel is written for one that does."""
    text = f"{HEADS}x f32 [4, 8] heap\ny f32 [8, 4] heap\n\n8 4:v y[{{0}},{{1}}] = x[{{1}},{{0}}]\n"
    game = Game(parse_notation(text)[0], machine("toy-gpu"))
    game.apply("tile_scope@y:0{size=2}")
    assert list(conditions_of(game.program).problems) == ["lanes of 'x'"]


@dataclass(frozen=True)
class WrongVector(WrongMapping):
    """A move whose check accepts vectors around anything."""

    name: ClassVar[str] = "wrong_vector"
    mapping: ClassVar = Mapping.VECTOR


TWO = f"{HEADS}x f32 [4] heap\ny f32 [4] heap\nz f32 [4] heap\n\n4\n| z[{{0}}] = x[{{0}}]\n| y[{{0}}] = z[{{0}}]\n"


@pytest.mark.usefixtures("wrong_moves")
@pytest.mark.parametrize("moves", [["wrong_vector@%0"], ["wrong_vector@%0", "unroll@%0"]])
def test_a_replay_leaves_no_malformed_program(moves: list[str]) -> None:
    game = Game(parse_notation(TWO)[0], machine("toy"))
    scope = game.program.nest.scopes[0].id
    wanted = [Move.parse(m.replace("%0", f"%{scope}")) for m in moves]
    skipped = game.replay(Step(move, move) for move in wanted)
    assert [s.move for s in skipped] == wanted[:1]
    assert "must wrap exactly one op" in skipped[0].why
    assert [s.resolved for s in game.trace.steps] == wanted[1:]
    game.kernel.verify()
