"""Arrays that are written again and again, in loops that repeat themselves: renaming, hoisting and repeated reductions.

Kernels of the general generator write an array once or twice. Here a few arrays are written whole, in part, under
guards, in place and as sums, in any order; every legal move keeps the meaning and comes back.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from pdojo.dialect.flow import flows, origins
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.errors import PdojoError
from pdojo.transforms.game import Game
from pdojo.transforms.legality.judge import Legality
from pdojo.transforms.registry import transformation
from qa.shrink import lit_test, shrunk
from qa.walks import FailedWalk, Referee, play

MOVES = ("rename_array", "merge_arrays", "hoist_nodes", "sink_nodes", "inline_reduction", "outline_reduction")
OTHERS = ("inline_op", "delete_op", "split_scopes", "swap_nodes", "share_buffer", "unshare_buffer", "reuse_dims")
"""Moves that make places for the others."""

HEADER = """kernel k(x, c) -> (c, y)
x f32 [4, 3] heap
c f32 [4] heap
y f32 [4] heap
t f32 [4] heap
u f32 [4] heap
v f32 [] heap
s f32 [4] heap
p f32 [4:N] heap

4 t[{0}] = x[{0},0]
4 u[{0}] = x[{0},1]
4 y[{0}] = u[3-{0}]
v[] = 1
"""

GUARDS = ("", "", "", "", " where ({k} < 2)", " where ({k} >= 1)")
PARALLEL = 0.1
"""Share of the outermost scopes that threads run; most of these kernels race and are drawn again."""


class Kernels:
    """Draws texts of kernels."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def text(self) -> str:
        """The text of a kernel, which need not be valid."""
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            self._node(lines, 0, [])
        if self.random.random() < 0.6:
            self._equal(lines)
        self._node(lines, 0, [])
        return HEADER + "\n".join(lines) + "\n"

    def _node(self, lines: list[str], bars: int, extents: list[int]) -> None:
        prefix, draw = "| " * bars, self.random
        if len(extents) == 3 or (extents and draw.random() < 0.5):
            lines.append(prefix + self._statement(extents))
            return
        extent, depth = draw.choice((2, 3, 4)), len(extents)
        mapping = ":p" if depth == 0 and draw.random() < PARALLEL else ":u" if draw.random() < 0.1 else ""
        lines.append(f"{prefix}{extent}{mapping}{draw.choice(GUARDS).format(k=f'{{{depth}}}')}")
        if draw.random() < 0.3:
            lines.extend(self._reduction(prefix + "| ", [*extents, extent]))
        for _ in range(draw.randint(1, 3)):
            self._node(lines, bars + 1, [*extents, extent])

    def _equal(self, lines: list[str]) -> None:
        """A reduction, and often the same once more before a use; sometimes something happens in between."""
        draw = self.random
        over, function = draw.choice((2, 3)), draw.choice(("+=", "max=", "*="))
        first, value = draw.choice(("0", "1", "u[{0}]")), self._value([4, over])
        lines += ["4", f"| s[{{0}}] = {first}", f"| {over} s[{{0}}] {function} {value}"]
        if draw.random() < 0.4:
            self._node(lines, 0, [])
        guard = draw.choice(("", "", " where ({0} < 3)"))
        lines.append(f"4{guard}")
        if draw.random() < 0.6:
            other = value if draw.random() < 0.8 else self._value([4, over])
            lines += [f"| p[{{0}}] = {first}", f"| {over} p[{{0}}] {function} {other}", "| y[{0}] += p[{0}]"]
        else:
            lines.append(f"| y[{{0}}] = s[{draw.choice(('{0}', '3-{0}'))}] + {self._value([4])}")

    def _reduction(self, prefix: str, extents: list[int]) -> list[str]:
        draw = self.random
        target, over, function = self._target(extents), draw.choice((2, 3)), draw.choice(("+=", "max="))
        first = f"{prefix}{target} = {draw.choice(('0', '-inf', 'x[0,0]'))}"
        return [first, f"{prefix}{over} {target} {function} {self._value([*extents, over])}"]

    def _statement(self, extents: list[int]) -> str:
        draw = self.random
        target = self._target(extents)
        value = self._value(extents)
        if draw.random() < 0.15:
            return f"{target} {draw.choice(('+=', '+=', 'max='))} {value}"
        form = draw.choice(("{} + {}", "{} * {}", "exp({})", "{}"))
        return f"{target} = {form.format(value, self._value(extents))}"

    def _target(self, extents: list[int]) -> str:
        name = self.random.choice(("t", "t", "u", "v", "y", "c"))
        return "v[]" if name == "v" else f"{name}[{self._index(extents, 4)}]"

    def _value(self, extents: list[int]) -> str:
        name = self.random.choice(("t", "t", "u", "v", "y", "c", "x", "x"))
        if name == "v":
            return "v[]"
        second = f",{self._index(extents, 3)}" if name == "x" else ""
        return f"{name}[{self._index(extents, 4)}{second}]"

    def _index(self, extents: list[int], size: int) -> str:
        """An index below `size`."""
        draw = self.random
        fitting = [k for k, extent in enumerate(extents) if extent <= size]
        if not fitting or draw.random() < 0.15:
            return str(draw.randrange(size))
        depth = draw.choice(fitting)
        spare = size - extents[depth]
        place = f"{{{depth}}}"
        return draw.choice((place, place, f"{place}+{spare}", f"{extents[depth] - 1}-{place}"))


def games(random: Random, count: int) -> list[Game]:
    """Games of kernels that are valid."""
    kernels, found = Kernels(random), list[Game]()
    while len(found) < count:
        try:
            found.append(Game(parse_notation(kernels.text())[0], machine("toy")))
        except PdojoError:
            continue
    return found


def walk(game: Game, seed: int, length: int) -> Counter[str]:
    """Make random moves, each judged; returns how often each kind was made."""
    random = Random(seed)
    referee = Referee(game.program, seed)
    kernel = game.kernel
    made: Counter[str] = Counter()
    for number in range(length):
        names = MOVES if random.random() < 0.7 else OTHERS
        pairs = [pair for name in names for pair in transformation(name).candidates(game.program)]
        random.shuffle(pairs)
        drawn = next(
            (pair for pair in pairs if Legality.of(game.program).ask(game.program, pair[1], pair[0]).is_legal), None
        )
        if drawn is None:
            continue
        move = drawn[1].at(game.program, drawn[0])
        failure = play(game, move, referee, number)
        if failure is not None:
            pytest.fail(lit_test(shrunk(FailedWalk(kernel, game.machine, seed, list(game.trace.steps), failure))))
        made[move.name] += 1
    return made


def test_walks() -> None:
    made: Counter[str] = Counter()
    for seed, game in enumerate(games(Random(5), 12)):
        made += walk(game, seed, 6)
    assert not {name for name in MOVES if not made[name]}, made


def test_values_that_cross_iterations() -> None:
    """The fast path of the question agrees with integer sets."""
    settled: Counter[bool] = Counter()
    for game in games(Random(6), 8):
        nest = game.program.nest
        for scope in nest.scopes:
            for array in dict.fromkeys(leaf.output.array for leaf in scope.leaves):
                uses = [use for use in origins.element_uses(nest, array) if use.leaf in scope.leaves]
                before = game.program.origins.exact_queries
                found = game.program.origins.carried(uses, scope.depth)
                values = flows.flow(uses, [use.access.index for use in uses])
                exact = origins._carried(values, uses, scope.depth)  # pyright: ignore[reportPrivateUsage]
                assert (found is None) == (exact is None), (game.program.text, scope, array.name)
                settled[game.program.origins.exact_queries == before and found is None] += 1
    assert min(settled[True], settled[False]) >= 20
