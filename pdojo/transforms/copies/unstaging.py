"""Data movement: access to an array itself again, instead of the copy that staging made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from pdojo.transforms.api import Array, Move, PatternRewriter, Program, Reason, Scope, Transformation, rehearse
from pdojo.transforms.common.redirecting import redirect
from pdojo.transforms.copies.copy_nests import Staged, staged
from pdojo.transforms.copies.staging import FORMS, StageIn, StageOut, Staging


@dataclass(frozen=True)
class Unstage(Transformation[Array]):
    """Access an array itself again, instead of the copy that `stage_in` or `stage_out` made.

    `unstage@t`:

    8 t[{0}] = x[{0}*2]
    4 8 y[{0},{1}] = exp(t[{1}])  -->  4 8 y[{0},{1}] = exp(x[{1}*2])

    Legal iff staging again is legal and gives this program, and the program without the copy keeps its values, has no
    race and can run: if the array has reused dimensions, its values may be in the copy only.
    """

    name: ClassVar[str] = "unstage"
    undoes: ClassVar = True
    keeps_statements: ClassVar = False
    array: str = ""
    """The array to access again, if the copy may belong to two: the array copied from, or the array copied to."""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Array, Self]]:
        """Temporaries that one plain copy, next to the scope that uses them, fills or empties."""
        for array in program.nest.arrays.values():
            sources = dict.fromkeys(found.source.name for found in staged(program, array))
            yield from ((array, cls("" if len(sources) == 1 else source)) for source in sources)

    def check(self, program: Program, site: Array) -> Reason | None:
        """Requires that staging again gives this program, so that both programs mean the same."""
        found = self._found(program, site)
        return found if isinstance(found, Reason) else None

    def _found(self, program: Program, site: Array) -> tuple[Staged, Staging] | Reason:
        """The staging of the array, and the move that would stage it again; a Reason if either is unclear. Cached."""
        return program.memoised((self, site.name), lambda: self._find(program, site))

    def _find(self, program: Program, site: Array) -> tuple[Staged, Staging] | Reason:
        guesses = [found for found in staged(program, site) if self.array in ("", found.source.name)]
        if not guesses:
            whose = f" of '{self.array}'" if self.array else ""
            return Reason(f"'{site.name}' is not a copy{whose} that stage_in or stage_out made")
        tried = ((found, self._staging(program, self._without(program, found), found)) for found in guesses)
        again = [(found, move) for found, move in tried if move is not None]
        if not again:
            return Reason(f"staging '{guesses[0].source.name}' again would not give this program")
        sources = dict.fromkeys(found.source.name for found, _ in again)
        if len(sources) > 1:
            choices = " or ".join(f"array={source}" for source in sources)
            return Reason(f"'{site.name}' may be a copy of either of two arrays; add {choices}")
        return again[0]

    @staticmethod
    def _without(program: Program, found: Staged) -> Program:
        """The program without the copy, made on a copy of the kernel."""
        copied = program.copy()
        array = copied.nest.arrays[found.copy.name]
        again = next(f for f in staged(copied, array) if f.site.id == found.site.id)
        _remove(again, PatternRewriter(next(iter(copied.kernel.body.block.ops))))
        return copied.successor(copied.kernel)

    def _staging(self, program: Program, without: Program, found: Staged) -> Staging | None:
        """The move that makes this program from the one without the copy; None if there is none."""
        scope = without.nest.by_id[found.site.id]
        assert isinstance(scope, Scope)
        kind = StageIn if found.behind is None else StageOut
        wanted = _text(program)
        for form in FORMS:
            move = kind(found.source.name, found.copy.buffer.memory.value, form, found.copy.name)
            if move.check(without, scope) is None and _text(rehearse(move, without, scope)) == wanted:
                unnamed = replace(move, into="")
                return unnamed if unnamed.copy_name(without) == move.into else move
        return None

    def rewrite(self, program: Program, site: Array, rewriter: PatternRewriter) -> None:
        """Remove the copy nests and the declaration."""
        found = self._found(program, site)
        assert not isinstance(found, Reason)
        _remove(found[0], rewriter)

    def inverse(self, program: Program, site: Array) -> Move:
        found = self._found(program, site)
        assert not isinstance(found, Reason)
        return found[1].as_move(f"%{found[0].site.id}")


def _remove(found: Staged, rewriter: PatternRewriter) -> None:
    redirect(found.site.leaves, found.restored(), rewriter)
    for nest in (found.before, found.behind):
        if nest is not None:
            rewriter.erase(nest.root.op)
    assert found.copy.buffer.op is not None
    rewriter.erase(found.copy.buffer.op)


def _text(program: Program) -> tuple[list[str], str]:
    """The declarations, sorted, and the rest of the program's text."""
    header, _, tree = program.text.partition("\n\n")
    return sorted(header.splitlines()), tree
