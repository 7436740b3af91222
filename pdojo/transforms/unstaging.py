"""Data movement: access an array itself again, not the copy that staging made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from xdsl.pattern_rewriter import PatternRewriter

from pdojo.dialect.analysis.lanes import register_problem
from pdojo.dialect.analysis.program import Program
from pdojo.dialect.attributes import Memory
from pdojo.dialect.nest import Array, Leaf, Scope
from pdojo.dialect.notation.equality import plain_mlir
from pdojo.dialect.ops import KernelOp, OpOp, ScopeOp
from pdojo.transforms.aftermath import vector_problem
from pdojo.transforms.base import Reason, Transformation
from pdojo.transforms.copies import Staged, redirect, staged
from pdojo.transforms.footprint import Copy
from pdojo.transforms.move import Move
from pdojo.transforms.staging import FORMS, StageIn, StageOut, Staging


@dataclass(frozen=True)
class Unstage(Transformation[Array]):
    """Access an array itself again, not the copy that stage_in or stage_out made.

    `unstage@t`:

    8 t[{0}] = x[{0}*2]
    4 8 y[{0},{1}] = exp(t[{1}])  -->  4 8 y[{0},{1}] = exp(x[{1}*2])

    Legal iff staging again gives this very program, to the letter: the two programs mean the same because that move is
    legal. Refused where lanes could not access the array itself.
    """

    name: ClassVar[str] = "unstage"
    site: ClassVar = Array

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Array, Self]]:
        """Temporaries that are filled or emptied by one plain copy beside the scope that uses them."""
        for array in program.nest.arrays.values():
            if not isinstance(staged(program, array), str):
                yield array, cls()

    def check(self, program: Program, site: Array) -> Reason | None:
        """Staging again gives this program, so the two mean the same."""
        found = staged(program, site)
        if isinstance(found, str):
            return Reason(found)
        after = self.rehearse(program, site)
        if self._staging(program, after, found) is None:
            return Reason(f"staging '{found.source.name}' again would not give this program")
        # In the order of the copy an access may have been one of lanes, and not be one in the order of the source.
        changed = (after.nest.by_id[leaf.id] for leaf in found.site.leaves)
        problem = next((p for leaf in changed if isinstance(leaf, Leaf) and (p := vector_problem(after, leaf))), None)
        if problem is None and found.source.buffer.memory is Memory.REGISTER:
            problem = register_problem(after.nest, after.nest.arrays[found.source.name].buffer)
        return None if problem is None else Reason(problem)

    def _staging(self, program: Program, without: Program, found: Staged) -> Staging | None:
        """The move that gives this program from the one without the copy, if there is one."""
        scope = without.nest.by_id[found.site.id]
        assert isinstance(scope, Scope)
        kind = StageIn if found.behind is None else StageOut
        buffer = found.copy.buffer
        assert buffer.op is not None
        position = list(program.kernel.buffers()).index(buffer.op)
        ids = [i for n in (found.before, found.behind) if n is not None for i in n.ids]
        wanted = _fingerprint(program.kernel)
        for form in FORMS:
            move = kind(found.source.name, buffer.memory.value, form, found.copy.name, position, " ".join(ids))
            if move.check(without, scope) is None and _fingerprint(move.rehearse(without, scope).kernel) == wanted:
                return _shortest(move, without, scope, ids)
        return None

    def rewrite(self, program: Program, site: Array, rewriter: PatternRewriter) -> None:
        """The copy nests and the declaration go."""
        found = staged(program, site)
        assert isinstance(found, Staged)
        redirect(found.site.leaves, found.restored(), rewriter)
        for nest in (found.before, found.behind):
            if nest is not None:
                rewriter.erase(nest.root.op)
        assert site.buffer.op is not None
        rewriter.erase(site.buffer.op)

    def inverse(self, program: Program, site: Array) -> Move:
        """Stage again, with the same name, place and identifiers."""
        found = staged(program, site)
        assert isinstance(found, Staged)
        staging = self._staging(program, self.rehearse(program, site), found)
        assert staging is not None
        return staging.as_move(f"%{found.site.id}")


def _shortest(move: Staging, program: Program, scope: Scope, ids: Sequence[str]) -> Staging:
    """The move without what it would choose by itself."""
    copy = move.plan(scope, program.nest.arrays[move.array])
    assert isinstance(copy, Copy)
    if move.natural_ids(program, scope, copy) == list(ids):
        move = replace(move, ids="")
    if move.position == len(list(program.kernel.buffers())):
        move = replace(move, position=-1)
    return replace(move, into="") if replace(move, into="").copy_name(program) == move.into else move


def _fingerprint(kernel: KernelOp) -> tuple[str, list[str]]:
    """Text and identifiers."""
    return plain_mlir(kernel), [op.id.data for op in kernel.walk() if isinstance(op, ScopeOp | OpOp) and op.id]
