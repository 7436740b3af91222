"""The object that decides on the moves in the programs of a game, and makes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from pdojo.dialect.flow.program import AnalysisCache, Program
from pdojo.dialect.flow.shortcut import is_used
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.conditions import Conditions, conditions_of
from pdojo.dialect.shortcuts.excerpts import content_of_buffer
from pdojo.dialect.view.nest import Array
from pdojo.errors import IllegalMove, Undecided
from pdojo.transforms.base import EFFECT, Transformation
from pdojo.transforms.legality.faults import fault, shortage
from pdojo.transforms.legality.foresight import buffer_at, excerpt_at, foreseen_fault
from pdojo.transforms.legality.proofs import Proof, proof_of
from pdojo.transforms.legality.trials import perform, rehearse
from pdojo.transforms.move import Move
from pdojo.transforms.site import Dimension, Site, identify


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused move, the reason, and the witness: for example the two accesses and the iterations that collide."""

    move: Move
    reason: str
    witness: str = ""

    def __str__(self) -> str:
        text = f"{self.move} is refused: {self.reason}"
        return f"{text}\n  witness: {self.witness}" if self.witness else text


@dataclass(frozen=True)
class Verdict:
    """The answer to whether a move is legal at a site of a program."""

    program: Program
    transformation: Transformation[Any]
    """The transformation with the move's parameters."""
    site: Site
    reason: Reason | None = None
    """The reason why the move is illegal; None if it is legal."""

    @property
    def is_legal(self) -> bool:
        """Whether the move is legal."""
        return self.reason is None

    @cached_property
    def move(self) -> Move:
        """The move, with a location for people; to be asked before the program is rewritten in place."""
        return self.transformation.at(self.program, self.site)

    @property
    def refusal(self) -> Refusal | None:
        """The refusal of the move; None if it is legal."""
        return None if self.reason is None else Refusal(self.move, self.reason.text, self.reason.witness)

    def confirm(self) -> None:
        """Raise IllegalMove with reason and witness if the move is illegal."""
        if self.reason is not None:
            raise IllegalMove(str(self.refusal))


@dataclass(frozen=True, slots=True)
class Legality:
    """Decides whether moves are legal, and makes them; one object serves all programs of a game.

    A move is legal if its check accepts it, the program after it keeps the conditions of every state, and the kernel
    permits its effect on rounding. Answers are kept by content, so that programs that differ elsewhere share them.
    """

    known: AnalysisCache = field(default_factory=AnalysisCache)
    """The answers, which the programs have, too."""

    @classmethod
    def of(cls, program: Program) -> Legality:
        """The object for a program and its successors."""
        return cls(program.known)

    def ask(
        self,
        program: Program,
        move: Transformation[Any],
        site: Site,
        *,
        foresees: bool = True,
        remembers: bool = True,
    ) -> Verdict:
        """The verdict on a move at a site.

        Without `foresees`, conditions that the check does not prove are left to `make`. Without `remembers`, the
        result of the check is not kept by content, which takes longer than most checks of a program that is about to
        change.
        """
        try:
            reason = self._reason(program, move, site, foresees=foresees, remembers=remembers)
        except Undecided as undecided:
            reason = Reason(str(undecided))
        return Verdict(program, move, site, reason)

    def make(
        self, verdict: Verdict, before: Conditions | None = None, *, in_place: bool = False, releases: bool = True
    ) -> tuple[Program, Conditions]:
        """The program after a move that was asked without foresight, and its conditions. The one way to make a move.

        The move is made on a copy; `in_place`, on the program itself, which is then invalid, even if IllegalMove is
        raised (`releases` as in `perform`). `before` are the conditions of the latest program that was checked; then
        conditions that the move's check proves are not checked, and stay as in that program, nor is the program
        verified: the caller verifies both after its last move, or makes the moves again. Without them, all are.

        Raises IllegalMove for an illegal move, and for one whose check is wrong, since the program after it is invalid.
        """
        verdict.confirm()
        program, wanted, site, named = verdict.program, verdict.transformation, verdict.site, verdict.move
        proof = proof_of(wanted, program, site)
        is_proved = proof is not Proof.NOTHING
        is_deferred = before is not None and is_proved and wanted.keeps_hints and is_used("deferred conditions")
        known = conditions_of(program) if before is None else before
        after = program.take_rehearsed((wanted, identify(site)))
        if after is None and in_place:
            after = perform(wanted, program, site, releases=releases)
        after = after or rehearse(wanted, program, site)
        if not is_deferred:
            reason = fault(wanted, known, after, proved=is_proved)
        else:
            reason = shortage(known, after) if proof is Proof.ALL_BUT_ROOM else None
        if reason is not None:
            raise IllegalMove(str(Refusal(named, reason.text, reason.witness)))
        return after, known if is_deferred else conditions_of(after)

    def _reason(
        self, program: Program, move: Transformation[Any], site: Site, *, foresees: bool, remembers: bool
    ) -> Reason | None:
        reason = self._checked(program, move, site, alone=foresees) if remembers else move.check(program, site)
        if reason is None and foresees and (proof := proof_of(move, program, site)) is not Proof.ALL:
            reason = foreseen_fault(move, program, site, proof)
        if reason is None and not program.permits(numerics := move.numerics(program, site)):
            reason = Reason(f"it would {EFFECT[numerics]}, which the kernel does not permit")
        return reason

    def _checked(self, program: Program, move: Transformation[Any], site: Site, *, alone: bool) -> Reason | None:
        """The result of `check`; a local check runs once per content of the part that it examines.

        A check of a listed move examines the part `alone`, because other moves and programs share the answer.
        The check of a move that is about to be made examines the whole program, which is about to change.
        """
        if not move.promises.is_local:
            return move.check(program, site)
        if isinstance(site, Array | Dimension):
            question = move, identify(site), content_of_buffer(program, buffer_at(site))
            return self.known.remembered.verdict(question, lambda: move.check(program, site))
        if not site.id:
            return move.check(program, site)
        excerpt = excerpt_at(move, program, site)
        if (move, site.id) not in excerpt.verdicts:
            part = excerpt.program if alone else program
            there = move.resolve(part, identify(site)) if alone else site
            excerpt.verdicts[move, site.id] = move.check(part, there)
        return cast(Reason | None, excerpt.verdicts[move, site.id])
