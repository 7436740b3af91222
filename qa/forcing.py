"""Forcing of refused moves: the exact oracle judges if the refusal was justified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.pattern_rewriter import PatternRewriter
from xdsl.utils.exceptions import VerifyException

from pdojo.dialect.flow.program import Program
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.oracle import Oracle, check_valid
from pdojo.errors import PdojoError
from pdojo.transforms.base import Transformation
from pdojo.transforms.move import Move
from pdojo.transforms.registry import instantiate
from pdojo.transforms.site import Site, identify

MALFORMED = "malformed"
"""The rewrite fails, or its result does not verify."""
CHANGED = "changes the meaning"
INVALID = "no valid program"
"""The storage of the new program mixes up elements, or the program has races, even harmless ones."""
HARMLESS = "harmless"


@dataclass(frozen=True)
class Verdict:
    """The effect of a move."""

    kind: str
    detail: str = ""


class Judge:
    """Judges moves on one program, legal or not. The seed determines arithmetics and schedules."""

    def __init__(self, before: Program, seed: int, *, arithmetics: int = 2, schedules: int = 6) -> None:
        self.before = before
        self.seed = seed
        self.schedules = schedules
        self.oracles = [Oracle(before.nest, seed + k) for k in range(arithmetics)]

    def force(self, wanted: Transformation[Any], site: Site) -> Verdict:
        """Make a move without a legality check; returns the first problem."""
        try:
            after = rewritten(self.before, wanted, identify(site))
        except (PdojoError, VerifyException) as error:
            return Verdict(MALFORMED, str(error))
        except Exception as error:  # noqa: BLE001  # a rewrite may rely on its refused conditions
            return Verdict(MALFORMED, f"{type(error).__name__}: {error}")
        return self._meaning(after) or self._validity(after) or Verdict(HARMLESS)

    def _meaning(self, after: Program) -> Verdict | None:
        try:
            for oracle in self.oracles:
                found = oracle.difference(after.nest, schedules=self.schedules, first=self.seed)
                if found is not None:
                    return Verdict(CHANGED, str(found))
        except PdojoError as error:
            return Verdict(MALFORMED, str(error))
        return None

    def _validity(self, after: Program) -> Verdict | None:
        found = check_valid(after.nest, schedules=self.schedules, seed=self.seed)
        if found is not None:
            return Verdict(INVALID, str(found))
        try:
            validate(after)
        except PdojoError as error:
            return Verdict(INVALID, str(error))
        return None


def rewritten(program: Program, wanted: Transformation[Any], at: str) -> Program:
    """The verified program after a rewrite without a legality check."""
    kernel = program.kernel.clone()
    copied = program.successor(kernel)
    wanted.rewrite(copied, wanted.resolve(copied, at), PatternRewriter(next(iter(kernel.body.block.ops))))
    kernel.verify()
    return program.successor(kernel)


def forced(program: Program, move: str) -> Program:
    """The program after a move's rewrite; the move names a location."""
    parsed = Move.parse(move)
    return rewritten(program, instantiate(parsed), parsed.at)
