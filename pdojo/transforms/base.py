"""The protocol of transformations: candidates, check, rewrite and inverse.

A transformation with its parameters is a frozen dataclass. The same definition serves as a move and as a pass
(`passes.py`); `legality` decides whether it is legal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator
from dataclasses import MISSING, Field, dataclass, fields
from difflib import get_close_matches
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, cast, get_args

from xdsl.pattern_rewriter import PatternRewriter

from pdojo.dialect.attributes import Numerics
from pdojo.dialect.flow.program import Program
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.nest import Node
from pdojo.errors import IllegalMove
from pdojo.transforms.move import Move
from pdojo.transforms.promises import Promises
from pdojo.transforms.site import SiteKind, SiteT, locate, resolve_site


@dataclass(frozen=True)
class Transformation(ABC, Generic[SiteT]):
    """Base of all transformations, with the kinds of its sites in brackets: `Transformation[Scope | Leaf]`.

    Subclasses are frozen dataclasses whose fields are the parameters. Parameters whose default is `""` or `-1` may be
    left out.
    """

    name: ClassVar[str]
    """The move's name."""
    site: ClassVar[SiteKind | tuple[SiteKind, ...]]
    """The kinds of site that the location may name, as in the brackets behind the base class."""
    promises: ClassVar[Promises] = Promises()
    """Facts about all moves of the family that make them cheaper; a test holds the moves to them."""
    keeps_statements: ClassVar[bool] = True
    """Whether the move keeps statements and indices, so that instances before and after can be compared."""
    keeps_hints: ClassVar[bool] = True
    """Whether the move leaves all hints of scopes and buffers unchanged."""
    undoes: ClassVar[bool] = False
    """Whether the family's moves only undo others, in kernels as people write them; searches rarely draw such moves."""
    finishes: ClassVar[bool] = False
    """Whether a move of the family that pays somewhere probably pays everywhere."""
    exchanges: ClassVar[Literal["order", "values", ""]] = ""
    """Kind of moves that a search may draw instead: other changes of statement order, or of computed values."""
    example_machine: ClassVar[str] = "x86-64-avx512"
    """Machine of the example in the docstring."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for base in cls.__dict__.get("__orig_bases__", ()):
            kinds = get_args(base)
            if kinds and not isinstance(kinds[0], TypeVar):
                cls.site = get_args(kinds[0]) or kinds[0]

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

    @abstractmethod
    def inverse(self, program: Program, site: SiteT) -> Move:
        """The move of the inverse family, located by the identifiers of the program after this move.

        If a move leads back to the program before, except for new names and identifiers, the place and memory of
        declarations, it is this one; `Applied.inverse` asks whether it does. `Game.undo` replays instead, and is exact.
        """

    def touched(self, program: Program, site: SiteT) -> Container[Node] | None:  # for subclasses
        """The nodes that the rewrite may change, with the scopes around them; None for those that `promises` name."""
        return None

    # The methods below spell moves; they are the same for all transformations.

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
