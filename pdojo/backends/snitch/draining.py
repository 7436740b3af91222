"""The stream registers that may still be writing, at each point of a top-level nest.

Turning streams off does not wait for their last writes. A register that is set up to read before these writes are in
memory does not wait either: instructions that read it get garbage (snitch_ssr.sv). So the code must wait, before a
region reads with a register, for its writes on any path to the region, including paths around loops.
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
"""Stream registers that may still be writing, with their number of jobs: 1, or 2 if one may wait behind another."""
_UNDER_WAY = 16
"""More elements than can be in flight between issue and memory: 4 in the lane's buffer, at most 10 in the FPU's stages.
When this many writes have been issued, the previous job has ended."""


@dataclass(frozen=True)
class StreamUse:
    """A region's use of the stream registers."""

    reads: frozenset[int]
    """Registers that it reads; they must have finished writing before."""
    writes: Mapping[int, int]
    """Registers that it writes, with the numbers of elements."""
    drained: frozenset[int]
    """Registers whose writes it waits for at its end; other written registers may still be writing afterwards."""


@dataclass
class Draining:
    """Tracks which stream registers may be writing while a nest's code is emitted."""

    use: Callable[[Scope], StreamUse]
    writing: Lanes = field(default_factory=dict[int, int])
    """Registers that may be writing at the next instruction."""

    def drain(self, lane: int) -> int:
        """Record that the code waits for a register; returns the number of its jobs, 0 if it cannot be writing."""
        return self.writing.pop(lane, 0)

    def leave(self, use: StreamUse) -> None:
        """Record the end of a region's code, before any waiting."""
        self.writing = _written(use, self.writing)

    def before(self, scope: Scope) -> list[int]:
        """Registers to wait for before a loop, not inside: it reads them, and no iteration leaves them writing."""
        again = self._after_iteration(scope, {})
        regions = dict.fromkeys(s for leaf in scope.leaves for s in leaf.chain if s.mapping is Loop.STREAM)
        read = {lane for region in regions for lane in self.use(region).reads}
        return sorted(lane for lane in self.writing if lane in read and lane not in again)

    def loop(self, scope: Scope) -> None:
        """Record the start of a loop: a register that one iteration leaves writing is writing in the next one, too."""
        self.writing = self._at_entry(scope, self.writing)

    @contextmanager
    def branch(self) -> Generator[None]:
        """A context whose emitted code may be skipped."""
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


def _written(use: StreamUse, before: Lanes) -> Lanes:
    """The registers that may be writing after a region's last instruction has been issued."""
    jobs = {lane: 2 if lane in before and count < _UNDER_WAY else 1 for lane, count in use.writes.items()}
    return {**before, **jobs}


def _joined(one: Lanes, other: Lanes) -> Lanes:
    return {lane: max(one.get(lane, 0), other.get(lane, 0)) for lane in {**one, **other}}
