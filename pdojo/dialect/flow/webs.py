"""Webs: the accesses of an array that belong together, because values flow between them.

A *web* is the field's word for definitions and uses that reach one another: a read is in the web of every write that
gives some instance of it a value. An accumulation reads its output, so it is in one web with its initialisation. Webs
are about elements with all scopes in order, the meaning of a program. Two webs of one array exchange no value, so each
may have a name of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdojo.dialect.flow.origins import Origins, element_uses
from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.view.nest import Access, Array, Leaf


@dataclass(frozen=True, slots=True)
class Web:
    """Some of the accesses to an array."""

    uses: tuple[Use, ...]
    """The uses in textual order; the output first within a statement."""
    is_given: bool
    """Whether some read is of an element that is not written before; its value is the caller's."""

    @property
    def first(self) -> Leaf | None:
        """The first statement of the web that writes; None if no statement does."""
        return next((use.leaf for use in self.uses if use.writes), None)

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The accesses, in the order of the uses."""
        return tuple(use.access for use in self.uses)


def webs_of(program: Program, array: Array) -> tuple[Web, ...]:
    """The webs of an array, in textual order of their first accesses. Raises Undecided."""
    return program.memoised(("webs", array.name), lambda: _webs(program.origins, element_uses(program.nest, array)))


def web_of(program: Program, leaf: Leaf) -> Web:
    """The web of a statement's output. Raises Undecided."""
    return next(web for web in webs_of(program, leaf.output.array) if leaf.output in web.accesses)


def _webs(origins: Origins, uses: Sequence[Use]) -> tuple[Web, ...]:
    groups = [{number} for number in range(len(uses))]
    given: set[int] = set()
    for number, use in enumerate(uses):
        if not use.reads:
            continue
        writers, complete = origins.writers(uses, number)
        if not complete:
            given.add(number)
        together = {number, *writers}
        joined = set[int]().union(*(group for group in groups if group & together))
        groups = [*(group for group in groups if not group & together), joined]
    return tuple(
        Web(tuple(uses[number] for number in sorted(group)), is_given=bool(group & given))
        for group in sorted(groups, key=min)
    )
