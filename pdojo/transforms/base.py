"""The protocol of transformations: candidates, refusal, rewrite and inverse.

A transformation with its parameters is a frozen dataclass and an xDSL `RewritePattern`: it rewrites every place that
its legality analysis does not refuse. The same definition serves as a pass (`passes.py`) and as a move.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from difflib import get_close_matches
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, cast

from xdsl.ir import Attribute, Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.utils.exceptions import VerifyException

from pdojo.dialect.attributes import Numerics
from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.shortcut import is_used
from pdojo.dialect.machines.registry import machine_of
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.capacity import Growth, growth_of, is_full, is_long
from pdojo.dialect.rules.conditions import Conditions, conditions_of, room_problems, rules_of_buffers
from pdojo.dialect.rules.special_mappings import is_special
from pdojo.dialect.shortcuts.excerpts import (
    Excerpt,
    content_of_buffer,
    excerpt_of,
    excerpt_of_buffer,
    has_room,
    nodes_touched,
    users_touched,
)
from pdojo.dialect.shortcuts.layout import (
    Footprint,
    accesses_alone,
    footprint_of,
    has_patterns,
    has_room_for,
)
from pdojo.dialect.verification.verify import verify_nest
from pdojo.dialect.view.nest import Array, Leaf, Node, Scope
from pdojo.errors import IllegalMove, Undecided
from pdojo.transforms.move import Move
from pdojo.transforms.promises import Promises, Proof
from pdojo.transforms.site import (
    Dimension,
    SiteKind,
    SiteT,
    identify,
    is_near_binding,
    kernel_of,
    locate,
    resolve_site,
    sites_at,
)

PromiseT = TypeVar("PromiseT", bound=int)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused move, the reason, and the witness: for example the two accesses and the iterations that collide."""

    move: Move
    reason: str
    witness: str = ""

    def __str__(self) -> str:
        text = f"{self.move} is refused: {self.reason}"
        return f"{text}\n  witness: {self.witness}" if self.witness else text


@dataclass(frozen=True, slots=True)
class LocalEffect:
    """The effect of a local move; it holds in every valid program that contains the excerpt."""

    fault: Reason | None
    """The violated rule other than memory capacity; None if there is none."""
    growth: Growth


@dataclass(frozen=True, slots=True)
class LayoutEffect:
    """The effect of a layout move."""

    fault: Reason | None = None
    """The rule that the program after the move violates; None if there is none."""
    is_known: bool = False
    """False if the accesses to the buffer do not determine the effect."""


@dataclass(frozen=True)
class Transformation(RewritePattern, Generic[SiteT]):
    """Base of all transformations. Subclasses are frozen dataclasses whose fields are the parameters.

    Parameters whose default is `""` or `-1` may be left out.
    """

    name: ClassVar[str]
    """The move's name."""
    site: ClassVar[SiteKind | tuple[SiteKind, ...]]
    """The kinds of site that the location may name."""
    promises: ClassVar[Promises] = Promises()
    """Facts about all moves of the family that make them cheaper; a test holds the moves to them."""
    keeps_statements: ClassVar[bool] = True
    """Whether the move keeps statements and indices, so that instances before and after can be compared."""
    undoes: ClassVar[bool] = False
    """Whether the family's moves only undo others, in kernels as people write them; searches rarely draw such moves."""
    finishes: ClassVar[bool] = False
    """Whether a move of the family that pays somewhere probably pays everywhere."""
    exchanges: ClassVar[Literal["order", "values", ""]] = ""
    """Kind of moves that a search may draw instead: other changes of statement order, or of computed values."""
    example_machine: ClassVar[str] = "x86-64-avx512"
    """Machine of the example in the docstring."""

    @classmethod
    @abstractmethod
    def candidates(cls, program: Program) -> Iterator[tuple[SiteT, Self]]:
        """Sites of the right kind, with finitely many parameters; cheap, because legality is not checked."""

    @abstractmethod
    def check(self, program: Program, site: SiteT) -> Reason | None:
        """The reason why the transformation may not be applied at the site; None if it may. Pure."""

    def numerics(self, program: Program, site: SiteT) -> Numerics:  # for subclasses
        """The transformation's effect on rounding at the site."""
        return Numerics.EXACT

    @abstractmethod
    def rewrite(self, program: Program, site: SiteT, rewriter: PatternRewriter) -> None:
        """Rewrite the kernel; the move is known to be legal."""

    @property
    def keeps_hints(self) -> bool:  # for subclasses
        """Whether the move leaves all hints of scopes and buffers unchanged."""
        return True

    @abstractmethod
    def inverse(self, program: Program, site: SiteT) -> Move:
        """The move of the inverse family, located by the identifiers of the program after this move.

        If a move leads back to the program before, except for new names and identifiers, the place and memory of
        declarations, it is this one; `Applied.inverse` asks whether it does. `Game.undo` replays instead, and is exact.
        """

    # The methods below are the same for all transformations, so that listed moves and applicable moves cannot differ.

    def refusal(self, program: Program, site: SiteT, *, foresees: bool = True) -> Refusal | None:
        """The refusal of the move at the site; None if it is legal.

        Without `foresees`, conditions that the check does not prove are left to the caller, who makes the move.
        """
        try:
            reason = self._asked(program, site, foresees=foresees)
        except Undecided as undecided:
            reason = Reason(str(undecided))
        return None if reason is None else Refusal(self.at(program, site), reason.text, reason.witness)

    def _asked(self, program: Program, site: SiteT, *, foresees: bool) -> Reason | None:
        reason = self._checked(program, site, alone=foresees)
        if reason is None and foresees and not self.proves(program, site):
            reason = self._foreseen(program, site)
        if reason is None:
            numerics = self.numerics(program, site)
            if program.permits(numerics):
                return None
            reason = Reason(f"it would {EFFECT[numerics]}, which the kernel does not permit")
        return reason

    def _checked(self, program: Program, site: SiteT, *, alone: bool) -> Reason | None:
        """The result of `check`; a local check runs once per content of the part that it examines.

        A check of a listed move examines the part `alone`, because other moves and other programs ask about it, too.
        The check of a move that is about to be made examines the whole program, which is about to change.
        """
        if not self.promises.is_local:
            return self.check(program, site)
        if isinstance(site, Array | Dimension):
            array = site if isinstance(site, Array) else site.array
            question = self, identify(site), content_of_buffer(program, array.buffer)
            return program.known.remembered.verdict(question, lambda: self.check(program, site))
        if not site.id:
            return self.check(program, site)
        excerpt = self._excerpt(program, site)
        if (self, site.id) not in excerpt.verdicts:
            part = excerpt.program if alone else program
            there = self.resolve(part, identify(site)) if alone else site
            excerpt.verdicts[self, site.id] = self.check(part, there)
        return cast(Reason | None, excerpt.verdicts[self, site.id])

    def _foreseen(self, program: Program, site: SiteT) -> Reason | None:
        """`fault` of the program after the move.

        A local move rewrites an excerpt only. If the program violates no rule, the move violates one iff the excerpt
        after the move does: rules are about nests and the buffers that bind them, which the excerpt contains.
        Exceptions are the rules of special mappings, of constants, and memory capacity.
        """
        if isinstance(site, Array | Dimension) and self.promises.is_local:
            prospect = self._foreseen_layout(program, site)
            if prospect.is_known:
                return prospect.fault
        excerpt = self._rewritten_part(program, site)
        is_exception = is_special(program) or is_near_binding(program, site)
        if excerpt is None or is_exception or conditions_of(program).problems:
            return self._rehearsed(program, site)
        only_room = self.proof(program, site) is Proof.ALL_BUT_ROOM
        question = "after", self, identify(site), only_room
        if question not in excerpt.verdicts:
            excerpt.verdicts[question] = self._outlook(excerpt.program, identify(site), only_room=only_room)
        outlook = cast(LocalEffect | None, excerpt.verdicts[question])
        if outlook is None or not has_room(program, excerpt, outlook.growth):
            return self._rehearsed(program, site)
        return outlook.fault

    def _foreseen_layout(self, program: Program, site: Array | Dimension) -> LayoutEffect:
        """The effect of the move, from the accesses to its buffer alone (`analysis.layout`)."""
        if not (program.has_excerpts and is_used("layout")) or has_patterns(program) or conditions_of(program).problems:
            return LayoutEffect()
        buffer = site.buffer if isinstance(site, Array) else site.array.buffer
        part, verdicts = accesses_alone(program, buffer)
        question = "after", self, identify(site)
        if question not in verdicts:
            verdicts[question] = self._layout_prospect(part, buffer.names[0], identify(site))
        prospect, footprints = cast("tuple[LayoutEffect, tuple[Footprint, Footprint] | None]", verdicts[question])
        return prospect if footprints is None or has_room_for(program, *footprints) else LayoutEffect()

    def _layout_prospect(
        self, part: Program, array: str, at: str
    ) -> tuple[LayoutEffect, tuple[Footprint, Footprint] | None]:
        """The effect of the move in a program with one buffer only, and the buffer's footprints before and after."""
        before, conditions = footprint_of(part, part.nest.arrays[array].buffer), conditions_of(part)
        after = self.rehearse(part, self.resolve(part, at))
        fault = self.fault(conditions, after)
        if fault is not None:
            # A lack of memory is reported for the whole program.
            return LayoutEffect(fault, is_known=fault in tuple(rules_of_buffers(after))), None
        return LayoutEffect(is_known=True), (before, footprint_of(after, after.nest.arrays[array].buffer))

    def _rehearsed(self, program: Program, site: SiteT) -> Reason | None:
        """`fault` of the program after the move, without the conditions that the check proves."""
        ask = self.shortage if self.proof(program, site) is Proof.ALL_BUT_ROOM else self.fault
        return ask(conditions_of(program), self.foreseen(program, site))

    def _rewritten_part(self, program: Program, site: SiteT) -> Excerpt | None:
        """The excerpt that contains all nodes that the move rewrites; None if that may be the whole program."""
        if not self.promises.is_local:
            return None
        match site:
            case Scope() | Leaf():
                return self._excerpt(program, site) if site.id else None
            case Array():
                return excerpt_of_buffer(program, site.buffer)
            case Dimension():
                return excerpt_of_buffer(program, site.array.buffer)

    def _excerpt(self, program: Program, site: Scope | Leaf) -> Excerpt:
        """The excerpt that a local check of a node examines."""
        following = self._next(program, site)
        return excerpt_of(program, site) if following is None else excerpt_of(program, site, following)

    def _outlook(self, part: Program, at: str, *, only_room: bool) -> LocalEffect | None:
        """The effect of the move on an excerpt; None if special mappings result, with rules about the whole program."""
        after = self.rehearse(part, self.resolve(part, at))
        fault = None if only_room else self.fault(conditions_of(part), after)
        return None if is_special(after) else LocalEffect(fault, growth_of(part, after))

    def proves(self, program: Program, site: SiteT) -> bool:
        """Whether a move that the check accepts certainly keeps the program's conditions, if the check is right."""
        return self.proof(program, site) is Proof.ALL

    def proof(self, program: Program, site: SiteT) -> Proof:
        """The part of the conditions that a check proves by accepting the move, if the check is right."""
        promises = self.promises
        if promises.conditions is False or not is_used("promises") or is_special(program) or is_long(program):
            return Proof.NOTHING
        if is_near_binding(program, site):
            return Proof.NOTHING
        if not self._promised(promises.conditions, program, site):
            return Proof.NOTHING
        if promises.grows is False or not is_full(program, self._promised(promises.adds, program, site)):
            return Proof.ALL
        return Proof.ALL_BUT_ROOM if self._promised(promises.grows, program, site) else Proof.ALL

    def _promised(
        self, promise: PromiseT | Callable[[Any, Program, Any], PromiseT], program: Program, site: SiteT
    ) -> PromiseT:
        """A promise at a site."""
        return promise(self, program, site) if callable(promise) else promise

    def _next(self, program: Program, site: Scope | Leaf) -> Node | None:
        """The next node if the check examines its nest, too; else None."""
        takes_next = self._promised(self.promises.takes_next, program, cast(SiteT, site))
        return program.nest.next_sibling(site) if takes_next else None

    def fault(self, before: Conditions, after: Program, *, proved: bool = False) -> Reason | None:
        """The reason why the program after the move is invalid; None if it is valid.

        A program that already violates some rules (because it was written for another machine) must not violate others.
        If the check has `proved` the rules, a rule that integer sets do not settle is no fault.
        """
        return malformed(after) or self.breach(before, after, proved=proved)

    def breach(self, before: Conditions, after: Program, *, proved: bool = False) -> Reason | None:
        """`fault` for a well-formed program after the move."""
        try:
            present = conditions_of(after)
        except Undecided as undecided:
            return Reason(str(undecided))
        if self.keeps_hints and (changed := _other_hints(before.hints, present.hints)) is not None:
            return changed
        if (broken := before.broken(present, proved=proved)) is not None:
            return broken
        useless = next((text for text in before.useless if text not in present.useless), None)
        if self.keeps_hints and useless is not None:
            return Reason(f"a hint that is of no use would become of use: {useless}; clear it first")
        return None

    def shortage(self, before: Conditions, after: Program) -> Reason | None:
        """`breach` for a move with proof `ALL_BUT_ROOM`."""
        return next((p for p in room_problems(after) if p.about not in before.problems), None)

    def rehearse(self, program: Program, site: SiteT) -> Program:
        """The program after the rewrite, made on a copy; legality is not checked.

        If the move's check has just made that program, it is returned.
        """
        return program.take_rehearsed((self, identify(site))) or self._copied(program, site)

    def foreseen(self, program: Program, site: SiteT) -> Program:
        """`rehearse` for checks: the program is kept until another move is rehearsed, or the move is made."""
        return program.rehearsed((self, identify(site)), lambda: self._copied(program, site))

    def _copied(self, program: Program, site: SiteT) -> Program:
        copied = program.copy()
        return self.perform(copied, self.resolve(copied, identify(site)))

    def perform(self, program: Program, site: SiteT, *, release: bool = True) -> Program:
        """The program after the rewrite, which changes the kernel in place; invalidates `program`.

        Without `release`, rewritten nodes of the previous view keep their extents and accesses. Nodes that remain get
        their new children and places.
        """
        kernel, touched = program.kernel, self.touched(program, site)
        self.rewrite(program, site, PatternRewriter(next(iter(kernel.body.block.ops))))
        after = program.successor(kernel, touched=touched)
        program.retire(after if release else None)
        return after

    def touched(self, program: Program, site: SiteT) -> Container[Node] | None:  # for subclasses
        """The nodes that the rewrite may change, with the scopes around them; None for all."""
        if not self.promises.is_local:
            return None
        match site:
            case Scope() | Leaf():
                following = self._next(program, site)
                return nodes_touched(program, site, *([] if following is None else [following]))
            case Array():
                return users_touched(program, site.buffer)
            case Dimension():
                return users_touched(program, site.array.buffer)

    def at(self, program: Program, site: SiteT) -> Move:
        """The move of this transformation at the site."""
        return self.as_move(locate(program, site))

    def as_move(self, at: str) -> Move:
        """The move of this transformation at a location; parameters with their default value are left out."""
        values = ((spelled(f.name), getattr(self, f.name), f.default) for f in fields(self))
        return Move(self.name, at, tuple((name, value) for name, value, default in values if value != default))

    @classmethod
    def from_move(cls, move: Move) -> Self:
        """The transformation with the move's parameters. Raises IllegalMove for unknown or missing parameters."""
        known = {spelled(f.name): f for f in fields(cls)}
        for key, value in move.params:
            if key not in known:
                close = get_close_matches(key, known, 1)
                hint = f"; did you mean '{close[0]}'?" if close else ""
                raise IllegalMove(
                    f"'{move}': '{cls.name}' has no parameter '{key}'{hint}; it has {', '.join(known) or 'none'}"
                )
            kind = kind_of(known[key])
            if ("an integer" if isinstance(value, int) else "a word") not in kind:
                raise IllegalMove(f"'{move!s:.200}': parameter '{key}' must be {kind}, not '{value!s:.200}'")
        given = dict(move.params)
        for key, declared in known.items():
            if declared.default is MISSING and key not in given:
                raise IllegalMove(f"'{move}': parameter '{key}' is missing; write {cls.name}@{move.at}{{{key}=...}}")
        return cls(**{known[key].name: value for key, value in given.items()})

    @classmethod
    def resolve(cls, program: Program, at: str) -> SiteT:
        """The site at a location. Raises LocationError for a site of another kind."""
        site = resolve_site(program, cls.site, at)
        return cast(SiteT, site)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        """Rewrite if `op` is a site and the move is legal; the analysis is recomputed each time."""
        kernel = kernel_of(op)
        if kernel is None:
            return
        program = Program(kernel, machine_of(kernel))
        for found in sites_at(program, type(self).site, op):
            site = cast(SiteT, found)
            if self.refusal(program, site) is not None:
                continue
            after = self.rehearse(program, site)
            if self.fault(conditions_of(program), after, proved=self.proves(program, site)) is None:
                self.rewrite(program, site, rewriter)
                return


def malformed(program: Program) -> Reason | None:
    """The reason why the program after a move is malformed; None if it is not. Nodes accepted before are skipped."""
    try:
        verify_nest(program.nest)
    except VerifyException as error:
        return Reason(str(error))
    return None


def _other_hints(before: Mapping[str, Attribute], after: Mapping[str, Attribute]) -> Reason | None:
    """The reason why hints change: a move would lose them, or duplicate them, which undo could not revert; or None."""
    for owner, hints in before.items():
        if after.get(owner) != hints:
            return Reason(f"the hints of {owner} would be lost; clear them first")
    if after.keys() - before.keys():
        return Reason(f"the hints of {min(before, default='a scope')} would be there twice; clear them first")
    return None


EFFECT = {
    Numerics.REASSOCIATES: "reassociate a floating-point reduction",
    Numerics.CONTRACTS: "round once, not twice",
    Numerics.FLUSHES: "take denormal numbers for zero",
    Numerics.RECIPROCAL: "round a quotient twice",
    Numerics.NUMBERS: "lose a NaN where the other operand of a maximum or minimum is a number",
    Numerics.TF32: "round the factors of a product to tf32",
    Numerics.APPROXIMATES: "compute a function with a larger or a smaller error",
}
"""The effect of each numerics class on rounding, for messages."""


def spelled(name: str) -> str:
    """The spelling of a parameter in moves: `with` for the field `with_`, because `with` is a Python keyword."""
    return name.removesuffix("_")


def kind_of(parameter: Field[Any]) -> str:
    """The values that a parameter takes, for messages."""
    return {"int": "an integer", "int | str": "an integer or a word"}.get(str(parameter.type), "a word")
