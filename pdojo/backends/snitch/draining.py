"""The stream registers that may still be writing, at each point of a top-level nest.

Turning streams off does not wait for their last writes. A register that is set up to read before they are in memory
does not wait either: until then instructions that read it get garbage (snitch_ssr.sv). So wherever a region begins to
read, the code must wait for the registers that may be writing on any path to it, around loops too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from pdojo.dialect.attributes import Mapping as Loop
from pdojo.dialect.view.nest import Leaf, Node, Scope

if TYPE_CHECKING:
    from collections.abc import Generator

Lanes: TypeAlias = dict[int, int]
"""Stream registers that may still be writing, with their jobs: 1, or 2 if one may wait behind another."""
_UNDER_WAY = 16
"""More elements than can be in flight between issue and memory: 4 in the lane's buffer, at most 10 in the stages of the
FPU. When the writes of so many have been issued, the previous job has ended."""


@dataclass(frozen=True)
class Use:
    """A region's use of the stream registers."""

    reads: frozenset[int]
    """Registers that it reads, which must have drained before."""
    writes: Mapping[int, int]
    """Registers that it writes, with the number of elements."""
    drained: frozenset[int]
    """Registers whose writes it waits for at its end; it leaves the others writing."""


@dataclass
class Draining:
    """Tracks the stream registers through a nest while its code is emitted."""

    use: Callable[[Scope], Use]
    writing: Lanes = field(default_factory=dict[int, int])
    """Registers that may be writing at the next instruction."""

    def drain(self, lane: int) -> int:
        """Note that the code waits for a register; returns the jobs that it may have, 0 if certainly none."""
        return self.writing.pop(lane, 0)

    def leave(self, use: Use) -> None:
        """Note the end of a region's code, before any waiting."""
        self.writing = _written(use, self.writing)

    def before(self, scope: Scope) -> list[int]:
        """The registers to wait for before a loop rather than inside: it reads them and does not leave them writing."""
        again = self._after_iteration(scope, {})
        regions = dict.fromkeys(s for leaf in scope.leaves for s in leaf.chain if s.mapping is Loop.STREAM)
        read = {lane for region in regions for lane in self.use(region).reads}
        return sorted(lane for lane in self.writing if lane in read and lane not in again)

    def loop(self, scope: Scope) -> None:
        """Note the start of a loop: registers that an iteration leaves writing are writing in the next one, too."""
        self.writing = self._at_entry(scope, self.writing)

    @contextmanager
    def branch(self) -> Generator[None]:
        """Code emitted within may be skipped."""
        before = dict(self.writing)
        yield
        self.writing = _joined(before, self.writing)

    def _at_entry(self, scope: Scope, before: Lanes) -> Lanes:
        """The registers that may be writing at the start of an iteration."""
        found = before
        while scope.extent > 1 and (wider := _joined(found, self._after_iteration(scope, found))) != found:
            found = wider
        return found

    def _after_iteration(self, scope: Scope, before: Lanes) -> Lanes:
        found = before
        for child in scope.children:
            found = self._after(child, found)
        return _joined(before, found) if scope.guard else found

    def _after(self, node: Node, before: Lanes) -> Lanes:
        if isinstance(node, Leaf):
            return before
        if node.mapping is not Loop.STREAM:
            return self._after_iteration(node, self._at_entry(node, before))
        use = self.use(node)
        found = _written(use, {lane: jobs for lane, jobs in before.items() if lane not in use.reads})
        return {lane: jobs for lane, jobs in found.items() if lane not in use.drained}


def _written(use: Use, before: Lanes) -> Lanes:
    """The registers that may be writing after all instructions of a region have been issued."""
    jobs = {lane: 2 if lane in before and count < _UNDER_WAY else 1 for lane, count in use.writes.items()}
    return {**before, **jobs}


def _joined(one: Lanes, other: Lanes) -> Lanes:
    return {lane: max(one.get(lane, 0), other.get(lane, 0)) for lane in {**one, **other}}
