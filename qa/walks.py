"""Random walks through the legal moves of a kernel, with checks of every promise of a move.

After each move, the program verifies, keeps the kernel's meaning (exact oracle, several arithmetics, several
adversarial schedules), and the inverse leads back; on a GPU or a Snitch core it has code if the kernel did. After some
moves, the program is also valid, has code on other machines, equals the result of parsing either of its texts, and
follows from the move by identifier.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.common.binding import split_kernel
from pdojo.backends.measure.arrays import random_inputs
from pdojo.backends.measure.check import same_bits
from pdojo.dialect.attributes import Intent
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import parse_notation, plain_mlir, print_notation
from pdojo.dialect.ops import PDOJO, KernelOp, ScopeOp, StatementOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.oracle import IntegerSetOracle, Oracle
from pdojo.dialect.view.build import nest_of
from pdojo.errors import PdojoError
from pdojo.transforms.apply import Applied, apply
from pdojo.transforms.game import Game
from pdojo.transforms.legality.judge import Legality
from pdojo.transforms.move import Move
from pdojo.transforms.registry import instantiate, transformation, transformation_names
from pdojo.transforms.trace import Step
from qa.inverses import lost_on_the_way_back
from qa.lowers import lowering_error

SOME = 4
"""One move in this many gets the slow checks: texts, replay by identifier, validity."""


ARITHMETICS = 2
"""Number of exact oracles of a walk."""


@dataclass(frozen=True)
class Failure:
    """A promise that a move broke."""

    promise: str
    """The name of the promise: `meaning`, `inverse` ..."""
    detail: str


@dataclass(frozen=True)
class FailedWalk:
    """A walk up to the last of its `steps`, which broke a promise."""

    kernel: KernelOp
    machine: Machine
    seed: int
    steps: list[Step]
    failure: Failure


class Counts(Counter[tuple[str, str]]):
    """Numbers of a run, by what is counted and a name: moves by family, kernels by feature; '' if it has no names."""

    def of(self, what: str) -> Counter[str]:
        """The numbers by name."""
        return Counter({name: number for (counted, name), number in self.items() if counted == what})

    @property
    def moves(self) -> int:
        """Number of all moves."""
        return self.of("moves").total()


Check = Callable[[Program, int], Failure | None]
"""A check of a state; the number seeds it."""


Announce = Callable[[Move], None]
"""Receives a move before it is made."""


def silently(_: Move) -> None:
    """Ignore moves."""


class Referee:
    """Judges moves on one kernel. `seed` determines the arithmetics, `ARITHMETICS` times 24 at once.

    Integer sets judge one move in `sets_every` (0: none); `counts` collects their statistics.
    """

    def __init__(
        self,
        initial: Program,
        seed: int,
        *,
        schedules: int = 3,
        check: Check | None = None,
        sets_every: int = 0,
        counts: Counts | None = None,
    ) -> None:
        self.oracles = [Oracle(initial.nest, seed + k) for k in range(ARITHMETICS)]
        self.schedules = schedules
        self.check = check
        self.lowers = lowering_error(initial) is None
        self.emits_all = bool(initial.machine.gpu or initial.machine.snitch)
        self.sets_every = sets_every
        self.counts = Counts() if counts is None else counts

    def judge(self, before: Program, applied: Applied, number: int) -> Failure | None:
        """The first promise that the move broke. `number` is the move's number in its walk, and seeds the schedules."""
        failure = self._meaning(applied.program, number) or _inverse(before, applied)
        if failure is None and number % SOME == 0:
            failure = _replay(before, applied) or _texts(applied.program) or _kept(applied.program)
            failure = failure or bound_run_differs(applied.program, number)
        if failure is None and self.lowers and (self.emits_all or number % SOME == 2):
            failure = _lowered(applied.program)
        if failure is None and self.sets_every and number % self.sets_every == 0:
            failure = self._sets(before, applied)
        if failure is None and self.check is not None:
            failure = self.check(applied.program, number)
        return failure

    def _sets(self, before: Program, applied: Applied) -> Failure | None:
        """A race, lost value or changed flow found by integer sets; None if there is none."""
        compare = transformation(applied.move.name).keeps_statements
        found = IntegerSetOracle(before.nest).judge(applied.program.nest, compare=compare)
        if found.fault is not None:
            return Failure("integer sets", found.fault)
        self.counts["sets", "left open" if found.open else "flow" if "flow" in found.checked else "validity only"] += 1
        return None

    def _meaning(self, program: Program, number: int) -> Failure | None:
        for k, oracle in enumerate(self.oracles):
            first = (number * len(self.oracles) + k) * self.schedules
            found = oracle.difference(program.nest, schedules=self.schedules, first=first)
            if found is not None:
                return Failure("meaning", str(found))
        return None


def _kept(program: Program) -> Failure | None:
    try:
        validate(program)
    except PdojoError as error:
        return Failure("validity", str(error))
    return None


def bound_run_differs(program: Program, seed: int) -> Failure | None:
    """A difference of a run without the nests that write constants, on kept constants, from a whole run; or None."""
    parts = split_kernel(program.nest)
    if parts is None:
        return None
    parts.binding.verify()
    parts.calling.verify()
    parameters = parameters_of(program.nest)
    inputs = random_inputs(parameters, seed)
    wanted = interpret(program.nest, inputs)
    known = {**inputs, **interpret(parts.binding, _of(parts.binding, inputs))}
    found = interpret(parts.calling, _of(parts.calling, known))
    for parameter in (p for p in parameters if p.written):
        if not same_bits(found[parameter.name], wanted[parameter.name], parameter.dtype):
            return Failure("constants", f"'{parameter.name}' differs if the constants are kept from an earlier call")
    return None


def _of(kernel: KernelOp, known: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays that a kernel reads."""
    return {p.name: known[p.name] for p in parameters_of(nest_of(kernel)) if p.intent is not Intent.OUT}


def _lowered(program: Program) -> Failure | None:
    problem = lowering_error(program)
    return None if problem is None else Failure("code", problem)


def _inverse(before: Program, applied: Applied) -> Failure | None:
    lost = lost_on_the_way_back(before, applied.program, applied.inverse)
    return None if lost is None else Failure("inverse", lost)


def _replay(before: Program, applied: Applied) -> Failure | None:
    try:
        again = [apply(before, move).program.kernel for move in (applied.resolved, Move.parse(str(applied.move)))]
    except PdojoError as error:
        return Failure("replay", str(error))
    wanted = fingerprint(applied.program.kernel)
    if any(fingerprint(kernel) != wanted for kernel in again):
        return Failure("replay", f"{applied.resolved} and {applied.move} do not give the same program")
    return None


def _texts(program: Program) -> Failure | None:
    kernel = program.kernel
    notation, mlir = print_notation(kernel), plain_mlir(kernel)
    try:
        (parsed,) = parse_notation(notation)
        if print_notation(parsed) != notation or plain_mlir(parsed) != mlir:
            return Failure("notation", f"it parses to another program:\n{print_notation(parsed)}")
        again = parse_mlir(mlir)
        if print_notation(again) != notation or plain_mlir(again) != mlir:
            return Failure("MLIR form", f"it parses to another program:\n{print_notation(again)}")
    except (PdojoError, DiagnosticException) as error:
        return Failure("texts", f"{error}\n{notation}\n{mlir}")
    return None


def parse_mlir(text: str) -> KernelOp:
    """The verified kernel of an MLIR text of one kernel."""
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(PDOJO)
    kernel = Parser(context, text).parse_op()
    assert isinstance(kernel, KernelOp)
    kernel.verify()
    return kernel


def fingerprint(kernel: KernelOp) -> tuple[str, tuple[str, ...]]:
    """The text without value names, and the identifiers; equal for equal states."""
    ids = (op.id.data for op in kernel.walk() if isinstance(op, ScopeOp | StatementOp) and op.id is not None)
    return plain_mlir(kernel), tuple(ids)


def draw(program: Program, random: Random, counts: Counts, prefer: Sequence[str] = ()) -> Move | None:
    """A random legal move: uniform among the families with a legal move, then within the family.

    Every second move is of a family in `prefer`, if one of them has a legal move.
    """
    families = list(transformation_names())
    random.shuffle(families)
    if prefer and random.random() < 0.5:
        families.sort(key=lambda name: name not in prefer)
    for name in families:
        found = list(transformation(name).candidates(program))
        random.shuffle(found)
        for site, choice in found:
            if Legality.of(program).ask(program, choice, site).is_legal:
                return choice.at(program, site)
            counts["refused", name] += 1
    return None


def walk(
    kernel: KernelOp,
    machine: Machine,
    seed: int,
    length: int,
    counts: Counts,
    *,
    check: Check | None = None,
    sets_every: int = 0,
    prefer: Sequence[str] = (),
    announce: Announce = silently,
) -> Iterator[Move | FailedWalk]:
    """Walk `length` random moves, yielding each; a FailedWalk ends the walk.

    `announce` receives each move before it is made and judged, since the process may die from it. Raises InvalidKernel
    if the kernel is invalid from the start.
    """
    random = Random(seed)
    game = Game(kernel, machine)
    referee = Referee(game.program, seed, check=check, sets_every=sets_every, counts=counts)
    counts["walks", ""] += 1
    for number in range(length):
        before = game.program
        move = draw(before, random, counts, prefer)
        if move is None:
            return
        announce(move)
        failure = play(game, move, referee, number)
        if failure is not None:
            step = game.trace.steps[number] if len(game.trace.steps) > number else Step(move, move)
            yield FailedWalk(kernel, machine, seed, [*game.trace.steps[:number], step], failure)
            return
        counts["moves", move.name] += 1
        yield move


def _is_listed(program: Program, move: Move) -> bool:
    """True if the move is legal; during shrinking it may be refused."""
    try:
        wanted = instantiate(move)
        return Legality.of(program).ask(program, wanted, wanted.resolve(program, move.at)).is_legal
    except PdojoError:
        return False


def play(game: Game, move: Move, referee: Referee, number: int) -> Failure | None:
    """Make a legal move and judge it."""
    before = game.program
    try:
        wanted = instantiate(move)
        site = wanted.resolve(before, move.at)
        game.apply(move)
        game.kernel.verify()
        return referee.judge(before, Applied(before, wanted, site, game.program), number)
    except (PdojoError, DiagnosticException) as error:
        return Failure("application" if _is_listed(before, move) else "nothing: the move is not legal", str(error))
    except Exception:  # noqa: BLE001  # a crash is a finding like any other
        return Failure("no crash", traceback.format_exc(limit=-4))
