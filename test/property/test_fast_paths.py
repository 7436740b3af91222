"""Shortcuts agree with the exact answers, on the questions that random walks ask.

One judge watches the list of shortcuts: it lets them answer, and asks integer sets whether the answer is right. Others
watch what moves promise, and what views and memos keep. All watch the same walks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any, TypeAlias, cast

import pytest
from xdsl.utils.exceptions import VerifyException

from pdojo.dialect.flow import collision, content
from pdojo.dialect.flow import program as program_module
from pdojo.dialect.flow.collision import Query
from pdojo.dialect.flow.coverage import common_depth
from pdojo.dialect.flow.origins import ValueQuestion
from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.shortcut import Answer, Question, Shortcut, shortcut_names, without
from pdojo.dialect.flow.storage_check import StorageQuestion
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.notation.printer import print_nest
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules import capacity, conditions, hints, special_mappings
from pdojo.dialect.rules.conditions import Conditions, conditions_of
from pdojo.dialect.rules.races import find_race
from pdojo.dialect.shortcuts import SHORTCUTS, excerpts
from pdojo.dialect.verification.verify import verify_kernel, verify_nest
from pdojo.dialect.view import nest as nest_module
from pdojo.dialect.view.build import nest_on
from pdojo.dialect.view.nest import Access, Array, Input, Nest, Node, Scope, fact
from pdojo.dialect.view.storage import physical_shape
from pdojo.errors import IllegalMove, UnknownSize
from pdojo.kernels import kernel_names
from pdojo.transforms.apply import refused_moves
from pdojo.transforms.base import Transformation
from pdojo.transforms.copies.footprint import Copy
from pdojo.transforms.copies.staging import Staging
from pdojo.transforms.game import Game
from pdojo.transforms.legality import faults, judge
from pdojo.transforms.legality.faults import fault
from pdojo.transforms.legality.judge import Legality, Verdict
from pdojo.transforms.legality.proofs import Proof, proof_of
from pdojo.transforms.legality.trials import rehearse
from pdojo.transforms.storage.sharing import ShareBuffer
from property.test_index_arrays import EMBEDDING, MASK
from property.test_scatters import DISPATCH, OVERLAP
from property.walks import random_texts
from qa.sizes import small_kernel
from qa.walks import Counts, draw

JUDGED = 50
"""Answers of a fast path that are judged, where that takes some 20 ms each."""

SAMPLED = 0.05
"""The share of the answers that are judged, where that takes a few milliseconds each."""

RARE = {"guards", "several writes", "rings", "representatives", "single reads"}
"""Shortcuts that these walks seldom need; other tests judge them."""

Ask: TypeAlias = Callable[[Shortcut, Question[Any]], Answer[Any] | None]

Answers: TypeAlias = Counter[bool]
"""How often a fast path settled a question, and how often not."""


Asked: TypeAlias = Callable[..., Verdict]

Checked: TypeAlias = Callable[..., Reason | None]


def kernels() -> list[KernelOp]:
    small = [small_kernel(name, Random(k)) for k, name in enumerate(kernel_names(long=False))]
    return small + [parse_notation(text)[0] for text in random_texts(5)]


def wander(kernel: KernelOp, seed: int, length: int, on: str) -> None:
    """Random moves; in every state, all that can be asked."""
    game, random = Game(kernel, machine(on)), Random(seed)
    for _ in range(length):
        refused_moves(game.program)
        move = draw(game.program, random, Counts())
        if move is not None:
            game.apply(move)


def judge_shortcuts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """An answer of a shortcut is the exact one."""
    settled = Counter[str]()
    answer = cast(Ask, Shortcut.answer)

    def checked(self: Shortcut, question: Question[Any]) -> Answer[Any] | None:
        found = answer(self, question)
        if found is not None:
            settled[self.name] += 1
            if settled[self.name] <= JUDGED:
                try:
                    with without(*shortcut_names()):
                        exact = harder(self, question).exact()
                except UnknownSize:
                    return found  # Integer sets do not know entries that iterations choose.
                assert agree(question, found.value, exact), (self.name, question, found, exact)
        return found

    monkeypatch.setattr(Shortcut, "answer", checked)
    return settled


def harder(shortcut: Shortcut, question: Question[Any]) -> Question[Any]:
    """The question whose answer the shortcut promises: that no value leaves an iteration of any common scope."""
    if shortcut.name == "one iteration" and isinstance(question, StorageQuestion):
        return replace(question, owner=innermost(question.uses))
    return question


def agree(question: Question[Any], found: Any, exact: Any) -> bool:
    """Whether two answers say the same; witnesses may be others."""
    match question:
        case Query():
            return (found is None) == (exact is None) and (found is None or collision.holds(question, found))
        case ValueQuestion(kind="writers"):
            return found == exact or exact == ((), True)  # a read that never runs
        case _ if isinstance(found, Reason) and isinstance(exact, Reason):
            return found.text == exact.text
        case _:
            return (found is None) == (exact is None)


def innermost(uses: Sequence[Use]) -> int | None:
    """The innermost scope that all uses share: no value may cross its iterations."""
    return common_depth([u.leaf for u in uses]) - 1 if common_depth([u.leaf for u in uses]) else None


def judge_races_in_shared_memory(monkeypatch: pytest.MonkeyPatch) -> Answers:
    asked: Answers = Counter()
    loss = ShareBuffer._loss  # pyright: ignore[reportPrivateUsage]

    def checked(self: ShareBuffer, program: Program, site: Array, host: Array) -> Reason | None:
        found = loss(self, program, site, host)
        if program.sharing_violation(site.buffer, host.buffer) is None:
            asked[found is None] += 1
            after = rehearse(self, program, site)
            race = find_race(after, only={after.nest.arrays[site.name].buffer})
            assert (race is None) == (found is None), (program.text, self.at(program, site), found)
        return found

    monkeypatch.setattr(ShareBuffer, "_loss", checked)
    return asked


def judge_copies_of_what_is_accessed(monkeypatch: pytest.MonkeyPatch) -> Answers:
    asked: Answers = Counter()
    is_exact = Staging.is_exact

    def checked(self: Staging, program: Program, site: Scope, copy: Copy) -> bool:
        found = is_exact(self, program, site, copy)
        asked[found] += 1
        assert not found or self.tried(program, site) is None, (program.text, self.at(program, site))
        return found

    monkeypatch.setattr(Staging, "is_exact", checked)
    return asked


def judge_excerpts(monkeypatch: pytest.MonkeyPatch) -> Answers:
    asked: Answers = Counter()
    answer = cast(Checked, Legality._checked)  # pyright: ignore[reportPrivateUsage]
    random = Random(0)

    def checked(
        self: Legality, program: Program, move: Transformation[Any], site: Any, *, alone: bool
    ) -> Reason | None:
        found = answer(self, program, move, site, alone=alone)
        asked[move.promises.is_local] += 1
        if move.promises.is_local and random.random() < SAMPLED:
            fresh = Program(program.kernel, program.machine, nest=program.nest)
            assert move.check(fresh, site) == found, (program.text, move.at(program, site), found)
        return found

    monkeypatch.setattr(Legality, "_checked", checked)
    return asked


def judge_outlooks(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """What a move leads to in an excerpt is what it leads to in the program."""
    asked: Answers = Counter()
    foreseen, random = judge.foreseen_fault, Random(0)

    def checked(move: Transformation[Any], program: Program, site: Any, proof: Proof) -> Reason | None:
        found = foreseen(move, program, site, proof)
        asked[move.promises.is_local] += 1
        if move.promises.is_local and random.random() < SAMPLED:
            fresh = Program(program.kernel, program.machine, nest=program.nest)
            real = fault(move, conditions_of(fresh), rehearse(move, fresh, site))
            assert real == found, (program.text, move.at(program, site), found, real)
        return found

    monkeypatch.setattr(judge, "foreseen_fault", checked)
    return asked


def judge_verification(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """What verification accepts without asking again is accepted if it is asked."""
    asked: Answers = Counter()
    random = Random(0)

    def checked(nest: Nest) -> None:
        verify_nest(nest)
        # Moves in place are verified once, at the end.
        if asked[True] < 20 or random.random() < SAMPLED:
            asked[True] += 1
            try:
                verify_kernel(nest.kernel.clone())
            except VerifyException as error:
                pytest.fail(f"accepted: {error}")

    monkeypatch.setattr(faults, "verify_nest", checked)
    return asked


def judge_views(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """The view after a rewrite, which shares nodes with the one before, says what a view computed anew says."""
    asked: Answers = Counter()
    random = Random(0)

    def checked(
        kernel: KernelOp, on: Machine, before: Nest | None = None, touched: Container[Node] | None = None
    ) -> Nest:
        found = nest_on(kernel, on, before, touched)
        if before is not None and random.random() < SAMPLED:
            asked[True] += 1
            fresh = nest_on(kernel, on)
            assert sayings(found) == sayings(fresh), print_nest(fresh)
            assert all(scope.scopes == [s for s in found.scopes if scope in s.chain] for scope in found.scopes)
            assert all(node.parent is None or node in node.parent.children for node in (*found.scopes, *found.leaves))
        return found

    monkeypatch.setattr(program_module, "nest_on", checked)
    return asked


def sayings(nest: Nest) -> list[object]:
    """All that a view says, without its objects."""

    def place(node: Node) -> list[object]:
        return [node.op, node.id, node.position, node.path, node.depth, [s.op for s in node.chain]]

    def value(found: Input) -> object:
        return [found.array.name, found.index, found.hints] if isinstance(found, Access) else found

    scopes = [
        [*place(s), s.extents, s.guards, s.extent, s.mapping, s.guard, [c.op for c in s.children]]
        + [leaf.op for leaf in s.leaves]
        for s in nest.scopes
    ]
    leaves = [
        [*place(x), x.order, x.extents, x.guards, x.function, x.accumulate]
        + [list(map(value, each)) for each in ((x.output, *x.inputs), x.reads, x.accesses)]
        for x in nest.leaves
    ]
    buffers = [
        [b.names, b.dtype, b.shape, b.reuse, b.memory, b.intent, b.op, b.alignment, b.guests, b.swizzles, b.hints]
        for b in nest.buffers
    ]
    arrays = [[a.name, nest.buffers.index(a.buffer), a.value] for a in nest.arrays.values()]
    identifiers = sorted((name, node.op.name) for name, node in nest.by_id.items() if name)
    roots = [child.op for child in nest.children]
    derived = [sorted(nest.traits), capacity.unrolled(nest, 0), [physical_shape(nest, b) for b in nest.buffers]]
    return [scopes, leaves, buffers, arrays, identifiers, roots, list(nest.intrinsics), derived]


def judge_facts(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """A fact that a view took over from the one before is the one that is decided anew, without any other fact."""
    asked: Answers = Counter()
    random = Random(0)
    is_anew = False

    def checked(known: dict[str, object], name: str, decide: Callable[[], object]) -> object:
        nonlocal is_anew
        if is_anew:
            return decide()
        is_known, found = name in known, fact(known, name, decide)
        if is_known and random.random() < SAMPLED:
            is_anew = True
            try:
                asked[True] += 1
                assert decide() == found, name
            finally:
                is_anew = False
        return found

    for module in (nest_module, content, excerpts, hints, program_module, special_mappings):
        monkeypatch.setattr(module, "fact", checked)
    return asked


def judge_moves_that_argue(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """A check that argues about the program after the move is right about it."""
    asked: Answers = Counter()
    ask = cast(Asked, Legality.ask)
    random = Random(0)

    def checked(self: Legality, program: Program, move: Transformation[Any], site: Any, **how: bool) -> Verdict:
        found = ask(self, program, move, site, **how)
        if found.is_legal and proof_of(move, program, site) is Proof.ALL and random.random() < SAMPLED:
            asked[True] += 1
            real = fault(move, conditions_of(program), rehearse(move, program, site))
            assert real is None, (program.text, found.move, real)
        return found

    monkeypatch.setattr(Legality, "ask", checked)
    return asked


def judge_conditions_that_are_remembered(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """What concerns one buffer is asked once for each content; asked anew, the answer is the same."""
    asked: Answers = Counter()
    remembered = conditions._conditions  # pyright: ignore[reportPrivateUsage]

    def checked(program: Program) -> Conditions:
        found = remembered(program)
        asked[True] += 1
        fresh = Program(program.kernel.clone(), program.machine)
        assert asked[True] > JUDGED or remembered(fresh) == found, program.text
        return found

    monkeypatch.setattr(conditions, "_conditions", checked)
    return asked


def wander_in_place(kernel: KernelOp, seed: int, length: int, on: str) -> None:
    """Random moves in place, some of them taken back: each view takes over what is known of the one before."""
    game, random = Game(kernel, machine(on)), Random(seed)
    with game.in_place() as is_sound:
        for _ in range(length):
            mark = game.mark(keeps=random.random() < 0.5)
            conditions_of(game.program)
            move = draw(game.program, random, Counts())
            if move is not None:
                with suppress(IllegalMove):
                    game.apply(move)
                if random.random() < 0.2:
                    game.rewind(mark)
        assert is_sound()


@pytest.mark.parametrize("on", ["toy", "toy-gpu", "toy-snitch"])
def test_views_in_place(monkeypatch: pytest.MonkeyPatch, on: str) -> None:
    judges = (judge_views, judge_facts, judge_verification)
    asked = [judge(monkeypatch) for judge in judges]
    for seed, kernel in enumerate(kernels()):
        if seed % 24 == 0:
            wander_in_place(kernel, seed, 8, on)
    assert all(count[True] for count in asked), asked


@pytest.mark.parametrize("on", ["toy", "toy-gpu", "toy-snitch"])
def test_fast_paths(monkeypatch: pytest.MonkeyPatch, on: str) -> None:
    judges = {name: judge(monkeypatch) for name, judge in globals().items() if name.startswith("judge_")}
    settled = judges.pop("judge_shortcuts")
    for seed, kernel in enumerate(kernels()):
        if seed % (4 if on == "toy" else 30) == 0:
            wander(kernel, seed, 2, on)
    if on == "toy":
        for seed, text in enumerate((EMBEDDING, MASK, DISPATCH, OVERLAP)):
            wander(parse_notation(text)[0], seed, 2, on)
        assert not {name: asked for name, asked in judges.items() if asked[True] < 20}
        assert not {one.name for one in SHORTCUTS if one.kind and one.name not in RARE and settled[one.name] < 20}
