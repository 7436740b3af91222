"""Data movement: a scope works on a copy of the elements that it reads or writes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Self

from pdojo.transforms.api import (
    EQUAL,
    Access,
    Array,
    Conflict,
    Domain,
    Expr,
    InsertPoint,
    Intent,
    Leaf,
    Mapping,
    Memory,
    Move,
    PatternRewriter,
    Program,
    Promises,
    Query,
    Reach,
    Reason,
    Scope,
    Stride,
    Transformation,
    bounds_within,
    byte_width,
    common_depth,
    conditions_of,
    describe_access,
    describe_scope,
    describe_use,
    fault,
    foresee,
    fresh_id,
    is_full,
    is_special,
    is_used,
    rehearse,
    stride_over,
    uninitialised,
    unreached,
    uses_of,
    var,
)
from pdojo.transforms.common.declaring import declare, fresh_name, name_reason
from pdojo.transforms.common.ordering import same_iteration
from pdojo.transforms.common.redirecting import redirect
from pdojo.transforms.copies.copy_nests import copy_nest, staged
from pdojo.transforms.copies.footprint import Copy, Placed, box_copy, iteration_copy

FORMS = ("iteration", "box")
"""Layouts of a copy: the order of access, or the bounding box of the accesses."""

_SITES = (Mapping.SEQUENTIAL, Mapping.UNROLL, Mapping.PARALLEL, Mapping.VECTOR)
_PATTERNS = (Mapping.FREP, Mapping.STREAM, Mapping.TENSOR)


@dataclass(frozen=True)
class Staging(Transformation[Scope]):
    """Base of staging in and staging out: names, places, conditions of the copy."""

    suffix: ClassVar[str]
    """Suffix of the names of copies."""
    array: str
    location: str
    form: str = "iteration"
    into: str = ""
    """The name of the copy."""

    @staticmethod
    @abstractmethod
    def accesses(site: Scope, array: Array) -> list[Placed]:
        """The accesses to be redirected to the copy."""

    @abstractmethod
    def directions(self, program: Program, site: Scope, copy: Copy) -> str:
        """`r` for a copy nest before the scope, `w` for one after it."""

    @abstractmethod
    def legality(self, program: Program, site: Scope, copy: Copy) -> Reason | None:
        """The reason why the copy would lack needed elements, or write back wrong ones; None if neither."""

    def grows(self, program: Program, site: Scope) -> bool:
        """True if the memory of the copy may be too small."""
        array = program.nest.arrays[self.array]
        copy = self.plan(site, array)
        assert isinstance(copy, Copy)
        return is_full(program, prod(copy.extents) * byte_width(array.dtype), Memory(self.location))

    promises: ClassVar = Promises(conditions=True, grows=grows)

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Scopes that access an element of a heap array more than once; the copy's memory depends on its size."""
        for scope in program.nest.scopes:
            if scope.mapping not in (Mapping.SEQUENTIAL, Mapping.UNROLL, Mapping.PARALLEL):
                continue
            for array in program.nest.arrays.values():
                if array.buffer.memory is Memory.HEAP:
                    yield from ((scope, choice) for choice in cls._choices(program, scope, array))

    @classmethod
    def _choices(cls, program: Program, scope: Scope, array: Array) -> Iterator[Self]:
        accesses = cls.accesses(scope, array)
        if not any(_reuses(scope, leaf, access) for leaf, access in accesses):
            return
        several = len({access.index for _, access in accesses}) > 1
        mixed = any(
            len([v for v in e.variables() if v >= scope.depth]) > 1 for _, access in accesses for e in access.index
        )
        for form in FORMS if several or mixed else FORMS[:1]:
            copy = _FORMS[form](scope, accesses)
            if isinstance(copy, Copy):
                yield cls(array.name, _where(program, scope, copy, accesses).value, form)

    # Legality

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires valid names, a copy with the right elements, and no fault of the program with the copy."""
        array = program.nest.arrays.get(self.array)
        if array is None:
            return Reason(f"there is no array '{self.array}'")
        if self.form not in FORMS:
            return Reason(f"'{self.form}' is no form of a copy; known are {', '.join(FORMS)}")
        refused = name_reason(program, self.into) or self._site_reason(site) or self._accesses_reason(site, array)
        if refused is not None:
            return refused
        copy = self.plan(site, array)
        if isinstance(copy, Reason):
            return copy
        return (
            self._memory_reason(program, site, copy)
            or self.legality(program, site, copy)
            or self._after_reason(program, site, copy)
        )

    @staticmethod
    def _site_reason(site: Scope) -> Reason | None:
        if site.mapping not in _SITES:
            return Reason(f"a copy beside {describe_scope(site)} would be outside of the mapped scopes")
        return None

    def _accesses_reason(self, site: Scope, array: Array) -> Reason | None:
        accesses = self.accesses(site, array)
        if not accesses:
            return Reason(f"nothing inside accesses '{array.name}' in this way")
        for leaf, access in accesses:
            if access.hints.data:
                return Reason(f"{describe_access(access)} has hints, which the copy would not have; clear them first")
            if leaf.asynchronous:
                return Reason(f"the copy of {describe_access(access)} is asynchronous")
            for scope in leaf.chain[site.depth :]:
                if scope.mapping in _PATTERNS:
                    return Reason(f"{describe_access(access)} is part of {describe_scope(scope)}; unmap it first")
        return None

    def plan(self, site: Scope, array: Array) -> Copy | Reason:
        """The copy in the wanted form."""
        return _FORMS[self.form](site, self.accesses(site, array))

    def _memory_reason(self, program: Program, site: Scope, copy: Copy) -> Reason | None:
        known = [m.value for m in Memory]
        if self.location not in known:
            return Reason(f"'{self.location}' is no memory; known are {', '.join(known)}")
        memory = Memory(self.location)
        mappings = [s.mapping for s in site.chain[:-1]]
        if memory is Memory.SHARED and not program.machine.gpu.shared_bytes:
            return Reason(f"{program.machine.name} has no shared memory")
        if memory is Memory.SHARED and (Mapping.GRID not in mappings or {Mapping.BLOCK, Mapping.WARP} & {*mappings}):
            return Reason(
                "shared memory belongs to the blocks of a grid: stage inside a scope ':g', around its threads"
            )
        if memory is Memory.REGISTER and copy.extents:
            return Reason(
                "scopes index the copy, and registers need constants; stage on the stack, unroll, then move it"
            )
        if (
            memory is Memory.REGISTER
            and (threads := _threads_inside(site, self.accesses(site, copy.source))) is not None
        ):
            return Reason(f"threads of {describe_scope(threads)} would share the copy; registers belong to one")
        return None

    def _after_reason(self, program: Program, site: Scope, copy: Copy) -> Reason | None:
        """The reason why the program with the copy has a fault; or None. It is made only if `is_exact` is False."""
        is_exact = is_used("exact copies") and self.is_exact(program, site, copy)
        return None if is_exact else self.tried(program, site)

    def tried(self, program: Program, site: Scope) -> Reason | None:
        """The fault of the program with the copy: bounds, missing values, its conditions; None if there is none."""
        after = foresee(self, program, site)
        name = next(iter(after.nest.arrays.keys() - program.nest.arrays.keys()))
        copy, source = after.nest.arrays[name], after.nest.arrays[self.array]
        return (
            self.beyond(after, site, copy)
            or fault(self, conditions_of(program), after)
            or _unwritten_reason(after, source)
        )

    def is_exact(self, program: Program, site: Scope, copy: Copy) -> bool:
        """Whether the copy nests certainly access the source just as the scope does, so that nothing new can go wrong.

        One access runs through the whole copy, so the copy nests stay within the array, and race only if that access
        races now. Each place of the copy is one element of the source, so iterations that race on the copy race on the
        source already. And every element copied in has a value, because the scope now reads it before it writes it.
        But scopes of a copy nest are sequential: registers need unrolled ones, and iterations of mapped scopes may
        have memory of their own. One thread uses a copy in registers; its iteration indexes it, unless it has no other.
        """
        known = (bool(copy.whole) and self.reads_first(program, site, copy)) or self.only_reads(copy)
        buffer = copy.source.buffer
        depends = bool(copy.extents) and (buffer.memory is Memory.REGISTER or any(buffer.reuse))
        single = any(s.mapping.is_threaded and s.extent == 1 for s in site.chain)
        depends = depends or (self.location == Memory.REGISTER.value and single)
        return known and not (depends or is_special(program) or self._strides(program, site, copy))

    def only_reads(self, copy: Copy) -> bool:  # for subclasses
        """Whether the copy nests only read an input of the kernel, certainly within its extents."""
        return False

    def _strides(self, program: Program, site: Scope, copy: Copy) -> bool:
        """Whether a vector would access the copy with a stride that the machine lacks."""
        lanes = ((a, leaf.parent) for leaf, a in self.accesses(site, copy.source) if not program.machine.gather)
        return any(
            scope is not None
            and scope.mapping is Mapping.VECTOR
            and stride_over(copy.uses[access], scope.depth) is Stride.STRIDED
            for access, scope in lanes
        )

    @abstractmethod
    def reads_first(self, program: Program, site: Scope, copy: Copy) -> bool:
        """Whether the scope certainly reads every element that is copied in before it writes it."""

    def beyond(self, after: Program, site: Scope, copy: Array) -> Reason | None:  # for subclasses
        """The reason why the copy nests would leave the array, in the program with the copy; None if they would not."""
        return None

    # Names

    def copy_name(self, program: Program) -> str:
        """The name of the copy."""
        return fresh_name(program.nest.arrays, self.into or f"{self.array}_{self.suffix}")

    def _ids(self, program: Program, site: Scope, copy: Copy) -> list[str]:
        """Identifiers of the new nodes: scopes and statement of each copy nest."""
        prefix = f"{site.id}.{self.array}"
        names = [
            f"{prefix}.{d}{part}"
            for d in self.directions(program, site, copy)
            for part in (*range(len(copy.extents)), "op")
        ]
        return [fresh_id(program.nest.by_id, name) for name in names]

    # Rewriting

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Declare the copy, redirect the scope to it, and copy before or after the scope."""
        source = program.nest.arrays[self.array]
        copy = self.plan(site, source)
        assert isinstance(copy, Copy)
        ids = self._ids(program, site, copy)
        directions = self.directions(program, site, copy)
        shape = (*copy.outside, *copy.extents)
        slots = (*(1 for _ in copy.outside), *(0 for _ in copy.extents))
        memory = Memory(self.location)
        temporary = declare(program, self.copy_name(program), source.dtype, shape, slots, memory, rewriter)
        redirect(site.leaves, {a: (temporary, index) for a, index in copy.uses.items()}, rewriter)
        here, there = (temporary, copy.slot), (source, copy.index)
        count = len(copy.extents) + 1
        for k, direction in enumerate(directions):
            own = ids[k * count : (k + 1) * count]
            if direction == "r":
                rewriter.insert(copy_nest(copy, site, here, there, own, rewriter), InsertPoint.before(site.op))
            else:
                rewriter.insert(copy_nest(copy, site, there, here, own, rewriter), InsertPoint.after(site.op))

    def inverse(self, program: Program, site: Scope) -> Move:
        name = self.copy_name(program)
        after = rehearse(self, program, site)
        several = len(list(staged(after, after.nest.arrays[name]))) > 1
        return Move("unstage", name, (("array", self.array),) if several else ())


_FORMS: dict[str, Any] = {"iteration": iteration_copy, "box": box_copy}


def _reads(leaf: Leaf, access: Access) -> bool:
    return access is not leaf.output or leaf.accumulate is not None


def written_before(read: Placed, accesses: Sequence[Placed], copy: Copy) -> bool:
    """Whether the place of a read was certainly written earlier in the same iteration of the scopes around.

    It was if a write runs through the whole copy in a nest before the read. In dimensions in which the write moves with
    a scope around both, the read must move with the same scope; in all others the write runs through all indices.
    """
    leaf, access = read
    for writer, write in accesses:
        if write is not writer.output or write not in copy.whole or _reads(writer, write) or writer.order >= leaf.order:
            continue
        common = common_depth((writer, leaf))
        places = zip(copy.uses[write], copy.uses[access], strict=True)
        if all(min(p.variables(), default=0) >= common or _follows(p, other, writer, leaf) for p, other in places):
            return True
    return False


def _follows(mine: Expr, other: Expr, writer: Leaf, reader: Leaf) -> bool:
    """Whether write and read touch one place for equal variables, and the write has all of the read's iterations."""
    return mine == other and all(reader.extents[v] <= writer.extents[v] for v in mine.variables())


def _reuses(site: Scope, leaf: Leaf, access: Access) -> bool:
    """Whether several iterations inside the scope access one element."""
    used = {v for e in access.index for v in e.variables()}
    return any(s.extent > 1 and s.depth not in used for s in leaf.chain[site.depth :])


def _where(program: Program, scope: Scope, copy: Copy, accesses: Sequence[Placed]) -> Memory:
    """The memory to propose: shared in a block, the heap around a grid, a register for one element, else by size."""
    mappings = {s.mapping for s in scope.chain[:-1]}
    if program.machine.gpu.shared_bytes and Mapping.GRID in mappings and not mappings & {Mapping.BLOCK, Mapping.WARP}:
        return Memory.SHARED
    if (threads := _threads_inside(scope, accesses)) is not None and threads.mapping is Mapping.GRID:
        return Memory.HEAP
    if not copy.extents and threads is None:
        return Memory.REGISTER
    size = prod(copy.extents) * byte_width(copy.source.dtype)
    return Memory.STACK if size <= program.machine.stack_bytes // 8 else Memory.HEAP


def _threads_inside(scope: Scope, accesses: Sequence[Placed]) -> Scope | None:
    """The scope whose threads would share one copy; None in a grid, where threads' copies are checked afterwards."""
    if any(s.mapping is Mapping.GRID for s in scope.chain[:-1]):
        return None
    return next((s for leaf, _ in accesses for s in leaf.chain[scope.depth :] if s.mapping.is_threaded), None)


def _unwritten_reason(program: Program, source: Array) -> Reason | None:
    if source.intent in (Intent.IN, Intent.INOUT):
        return None
    uses = [u for u in uses_of(program.nest, source.name, source.buffer.reuse) if u.access.array is source]
    missing = uninitialised(uses)
    if missing is None:
        return None
    return Reason(f"the copy would read elements of '{source.name}' that nothing wrote", describe_use(*missing))


@dataclass(frozen=True)
class StageIn(Staging):
    """Copy the elements of an array that a scope reads before it, and let the scope read the copy.

    `stage_in@y:1{array=x location=stack into=t}`:

    4 8 2 y[{0},{1},{2}] = exp(x[{1}])  -->  4
                                             | 8 t[{0},{1}] = x[{1}]
                                             | 8 2 y[{0},{1},{2}] = exp(t[{0},{1}])

    Legal iff no access (r, i) that reads is written by (w, j) in the scope, i and j in one iteration of the scopes
    around: not exists i, j: cell(r, i) = cell(w, j); and the program with the copy is in bounds, reads no unwritten
    element, and has no race.
    """

    name: ClassVar[str] = "stage_in"
    keeps_statements: ClassVar = False
    suffix: ClassVar = "in"

    @staticmethod
    def accesses(site: Scope, array: Array) -> list[Placed]:
        """The accesses among the inputs of the scope's statements."""
        return [(leaf, access) for leaf in site.leaves for access in leaf.reads if access.array is array]

    def directions(self, program: Program, site: Scope, copy: Copy) -> str:  # the same for all
        """Always in."""
        return "r"

    def legality(self, program: Program, site: Scope, copy: Copy) -> Reason | None:
        """Requires that no element is both read and written in one iteration of the scopes around."""
        relation = same_iteration(site)
        for leaf, access in self.accesses(site, copy.source):
            read = next(t for t in program.uses[leaf] if t.access is access)
            for other in site.leaves:
                write = program.uses[other][0]
                if write.access.array.buffer is not copy.source.buffer:
                    continue
                equal = tuple(zip(read.cell, write.cell, strict=True))
                witness = program.collisions.find(Query(read.domain, write.domain, equal, relation))
                if witness is not None:
                    conflict = Conflict(leaf, access, other, write.access, witness, False, True)
                    return Reason(f"the scope writes what it reads of '{copy.source.name}'", str(conflict))
        return None

    def reads_first(self, program: Program, site: Scope, copy: Copy) -> bool:
        """True: the scope writes no element that it reads in an iteration."""
        return True

    def only_reads(self, copy: Copy) -> bool:
        """True for an input that the copy nest certainly accesses within its extents."""
        rows = list(zip(copy.index, copy.source.buffer.extents, strict=True))
        within = all(room.bounds(copy.around)[0] >= 0 for e, n in rows for room in (e, n - 1 - e))
        return copy.source.intent is Intent.IN and within

    def beyond(self, after: Program, site: Scope, copy: Array) -> Reason | None:
        """The reason why the copy nest, without some guards of the scope, exceeds the array; None if it does not."""
        leaf = next(leaf for leaf in after.nest.writers[copy.name] if after.nest.by_id[site.id] not in leaf.chain)
        (access,) = leaf.reads
        for expression, sized in zip(access.index, access.array.buffer.extents, strict=True):
            low, high = bounds_within(leaf, expression, sized)
            if low < 0 or high >= sized.bounds(())[1]:
                return Reason(
                    f"the copy nest would access {describe_access(access)} from {low} to {high}: it lacks "
                    "guards that also depend on other variables; form=box stays within the array"
                )
        return None


@dataclass(frozen=True)
class StageOut(Staging):
    """Let a scope write a copy of an array, which is written back after it; old values are copied in before it.

    `stage_out@y#1:0{array=y location=stack into=t}`:

    8 y[{0}] = 0                   8 y[{0}] = 0
    4 8 y[{1}] += x[{0},{1}]  -->  8 t[{0}] = y[{0}]
                                   4 8 t[{1}] += x[{0},{1}]
                                   8 y[{0}] = t[{0}]

    Legal iff every element that is copied back is written, and every element that is accessed is copied: image(writes)
    = image(copy) and image(accesses) <= image(copy); no two places of the copy hold one element; the program with the
    copy has no race. Old values are copied in iff the scope has a read without an earlier write in the same iteration
    of the scopes around.
    """

    name: ClassVar[str] = "stage_out"
    keeps_statements: ClassVar = False
    suffix: ClassVar = "out"

    @staticmethod
    def accesses(site: Scope, array: Array) -> list[Placed]:
        """All accesses, if the scope writes the array."""
        found = [(leaf, access) for leaf in site.leaves for access in leaf.accesses if access.array is array]
        return found if any(access is leaf.output for leaf, access in found) else []

    def directions(self, program: Program, site: Scope, copy: Copy) -> str:
        """`w`; also `r` if the scope may need a value that it did not write."""
        accesses = self.accesses(site, copy.source)
        if all(written_before(read, accesses, copy) for read in accesses if _reads(*read)):
            return "w"
        inside = {*site.leaves}
        uses = [u for u in uses_of(program.nest, copy.source.name, copy.source.buffer.reuse) if u.leaf in inside]
        needed = uninitialised([u for u in uses if u.access.array is copy.source], site.depth)
        return "w" if needed is None else "rw"

    def reads_first(self, program: Program, site: Scope, copy: Copy) -> bool:
        """True if the scope only accumulates, so that the first access reads the element, or if none is copied in."""
        writes = [leaf for leaf, access in self.accesses(site, copy.source) if access is leaf.output]
        return all(leaf.accumulate for leaf in writes) or self.directions(program, site, copy) == "w"

    def legality(self, program: Program, site: Scope, copy: Copy) -> Reason | None:
        """Requires memory of the array's own, one place in the copy per element, all that is copied back written."""
        name = copy.source.name
        for leaf in site.leaves:
            for access in leaf.accesses:
                if access.array is not copy.source and access.array.buffer is copy.source.buffer:
                    return Reason(f"the scope also accesses '{access.array.name}', which shares the memory of '{name}'")
        depth = site.depth
        guards = (*(g for s in site.chain[:-1] for g in s.guard), *copy.guards)
        domain = Domain(copy.around, guards)
        own = tuple((var(depth + k), var(depth + k)) for k in range(len(copy.extents)))
        twice = Query(domain, domain, tuple((e, e) for e in copy.index), (EQUAL,) * depth, own)
        if own and (witness := program.collisions.find(twice)) is not None:
            places = f"copied by iterations {witness.first} and {witness.second}"
            return Reason(f"the copy would hold an element of '{name}' twice; use form=box", places)
        return self._written_reason(site, copy, (copy.around, guards, copy.slot))

    def _written_reason(self, site: Scope, copy: Copy, copied: Reach) -> Reason | None:
        """The reason why a copied element is not written; or None. By construction, all accesses are to the copy."""
        accesses = self.accesses(site, copy.source)
        if not copied[2] or any(access is leaf.output and access in copy.whole for leaf, access in accesses):
            return None
        written = [(leaf.extents, leaf.guards, copy.uses[access]) for leaf, access in accesses if access is leaf.output]
        spared = unreached([copied], written)
        if spared is None:
            return None
        place = f"place {spared} of the copy"
        return Reason(f"the scope does not write all of '{copy.source.name}' that would be copied back", place)
