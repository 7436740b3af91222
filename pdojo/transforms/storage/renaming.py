"""Renaming: an array of their own for some of another array's values, and one array for two again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from pdojo.transforms.api import (
    Access,
    Array,
    Intent,
    Leaf,
    Memory,
    Move,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Transformation,
    accesses_of,
    conditions_of,
    describe_access,
    fault,
    locate,
    number_of,
    web_of,
    webs_of,
)
from pdojo.transforms.common.declaring import add_buffer, fresh_name, name_reason
from pdojo.transforms.common.ordering import rewritten
from pdojo.transforms.common.redirecting import Target, redirect
from pdojo.transforms.storage.sharing import ShareBuffer, buffer_like, pinned, unlike_in


@dataclass(frozen=True)
class RenameArray(Transformation[Leaf]):
    """Move the values that a statement writes, and all values read together with them, to a new array.

    `rename_array@t#1{into=p}`:

    t f32 [8] heap               t f32 [8] heap
    8 t[{0}] = x[{0}] - 1        p f32 [8] heap
    8 t[{0}] = exp(t[{0}])  -->  8 t[{0}] = x[{0}] - 1
    8 y[{0}] = t[{0}]            8 p[{0}] = exp(t[{0}])
                                 8 y[{0}] = p[{0}]

    The accesses that move are a web: a read is in the same web as every write whose value it gets, and an accumulation
    reads its output. The new array has its own buffer, with the properties of the old one.

    Legal iff the array has accesses outside the web, the web's values neither come from the caller nor go to it, and
    the location is the web's first writing statement.
    """

    name: ClassVar[str] = "rename_array"
    keeps_statements: ClassVar = False
    exchanges: ClassVar = "values"
    promises: ClassVar = Promises(conditions=True, adds=0)
    into: str = ""
    """The name of the new array."""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Plain assignments to arrays that have several; the first assignment to a temporary is no candidate."""
        for array in program.nest.arrays.values():
            plain = [leaf for leaf in program.nest.writers[array.name] if leaf.accumulate is None]
            if len(plain) > 1:
                yield from ((leaf, cls()) for leaf in plain[array.intent is None :])

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires a web that begins here, is not the whole array, and stays inside the kernel."""
        if (unusable := name_reason(program, self.into)) is not None:
            return unusable
        array, web = site.output.array, web_of(program, site)
        if web.is_given:
            return Reason(f"the caller gives values of '{array.name}' that are read together with these")
        if len(webs_of(program, array)) == 1:
            return Reason(f"all accesses to '{array.name}' belong together, so the move would only change its name")
        if web.first is not site:
            assert web.first is not None
            return Reason(f"these values are first written by '{locate(program, web.first)}'; rename them there")
        hinted = next((a for a in web.accesses if a.hints.data), None)
        if hinted is not None:
            return Reason(f"{describe_access(hinted)} has hints for the memory that it has; clear them first")
        if array.intent in (Intent.OUT, Intent.INOUT):
            uses = tuple(use for other in webs_of(program, array) for use in other.uses)
            writes = [number_of(uses, use.leaf, use.access) for use in web.uses if use.writes]
            if any(program.origins.remains(uses, write) for write in writes):
                return Reason(f"elements of the output '{array.name}' keep these values")
        return self._room(program, site)

    def _room(self, program: Program, site: Leaf) -> Reason | None:
        """The reason why the program after the move would violate a rule; None if it would not.

        In whole buffers on the heap it violates none: fewer accesses share a cell, and nothing else changes.
        """
        buffer = site.output.array.buffer
        if buffer.memory is Memory.HEAP and not any(buffer.reuse) and not buffer.hints.data:
            return None
        return fault(self, conditions_of(program), rewritten(program, self, site))

    def _name(self, program: Program, site: Leaf) -> str:
        return self.into or fresh_name(program.nest.arrays, site.output.array.name)

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Declare the array, and redirect the accesses of the web."""
        old, name = site.output.array, self._name(program, site)
        declaration = buffer_like(old.buffer, [name])
        add_buffer(program.kernel, declaration, rewriter)
        buffer = replace(old.buffer, names=(name,), intent=None, op=declaration, guests=None)
        new = Array(name, buffer, declaration.arrays[0])
        targets: dict[Access, Target] = {access: (new, access.index) for access in web_of(program, site).accesses}
        redirect(program.nest.leaves, targets, rewriter)

    def inverse(self, program: Program, site: Leaf) -> Move:
        return MergeArrays(site.output.array.name).as_move(self._name(program, site))


@dataclass(frozen=True)
class MergeArrays(Transformation[Array]):
    """Store the values of an array in another array, and delete its declaration.

    `merge_arrays@p{with=t}`:

    t f32 [8] heap               t f32 [8] heap
    p f32 [8] heap               8 t[{0}] = x[{0}] - 1
    8 t[{0}] = x[{0}] - 1   -->  8 t[{0}] = exp(t[{0}])
    8 p[{0}] = exp(t[{0}])       8 y[{0}] = t[{0}]
    8 y[{0}] = p[{0}]

    Both have the same type and shape, the deleted array shares its memory with no other, and its accesses are one web
    (`rename_array`). Legal iff for every flow from the last write w of an element to a read r, no write to the same
    element of the other array comes in between, in the order of the program; the caller gives and gets the same
    values.
    """

    name: ClassVar[str] = "merge_arrays"
    keeps_statements: ClassVar = False
    undoes: ClassVar = True
    with_: str

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Array, Self]]:
        """Temporaries, with earlier arrays in otherwise equal buffers."""
        arrays = [array for array in program.nest.arrays.values() if array.buffer in program.live_ranges]
        for position, guest in enumerate(arrays):
            for host in arrays[:position] if guest.intent is None and len(guest.buffer.names) == 1 else ():
                if host.intent is not Intent.IN and unlike_in(guest.buffer, host.buffer) is None:
                    yield guest, cls(host.name)

    def check(self, program: Program, site: Array) -> Reason | None:
        """Requires two arrays of one kind such that neither overwrites values that the other still needs."""
        host = program.nest.arrays.get(self.with_)
        if host is None:
            return Reason(f"there is no array '{self.with_}'")
        if site.intent is not None:
            return Reason(f"'{site.name}' is an interface array, which callers know")
        if len(site.buffer.names) > 1:
            return Reason(f"'{site.name}' shares its memory with other arrays; unshare_buffer takes it out first")
        if host is site:
            return Reason(f"'{site.name}' cannot be merged with itself")
        if host.intent is Intent.IN:
            return Reason(f"'{host.name}' is an input of the kernel, which nothing may overwrite")
        for what, mine, other in (
            ("type", site.dtype, host.dtype),
            ("extents", site.buffer.extents, host.buffer.extents),
        ):
            if mine != other:
                return Reason(f"'{site.name}' and '{host.name}' differ in {what}")
        if (fixed := pinned(program.nest, site)) is not None:
            return fixed
        webs = webs_of(program, site)
        if len(webs) != 1:
            return Reason(f"the accesses to '{site.name}' are {len(webs)} webs, not one; rename_array separates them")
        return program.merging_violation(site, host)

    def argues(self, program: Program, site: Array) -> bool:
        """True if `share_buffer` may make one of the two buffers, and every element has a cell.

        Then the program is the one after `share_buffer`, with one name for both arrays. No statement depends on other
        iterations of itself if each that writes one of the arrays reads only the very element that it writes.
        """
        host, shared = program.nest.arrays[self.with_], ShareBuffer(self.with_)
        is_whole = not any(host.buffer.reuse) and len(host.buffer.names) == 1 and not site.buffer.hints.data
        if not (is_whole and shared.argues(program, site)):
            return False
        pair = site, host
        writers = [leaf for array in pair for leaf in program.nest.writers[array.name]]
        depends = any(a.array in pair and a.index != leaf.output.index for leaf in writers for a in leaf.reads)
        return not depends and shared.check(program, site) is None

    promises: ClassVar = Promises(conditions=argues, adds=0)

    def rewrite(self, program: Program, site: Array, rewriter: PatternRewriter) -> None:
        """Redirect the accesses, and erase the declaration."""
        host = program.nest.arrays[self.with_]
        placed = [(leaf, access) for leaf, access in accesses_of(program.nest, site.buffer) if access.array is site]
        targets: dict[Access, Target] = {access: (host, access.index) for _, access in placed}
        redirect(list(dict.fromkeys(leaf for leaf, _ in placed)), targets, rewriter)
        assert site.buffer.op is not None
        rewriter.erase(site.buffer.op)

    def inverse(self, program: Program, site: Array) -> Move:
        (web,) = webs_of(program, site)
        assert web.first is not None
        return RenameArray(site.name).as_move(f"%{web.first.id}")
