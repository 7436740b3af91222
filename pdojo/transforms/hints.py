"""Hints on accesses, scopes and buffers: facts that generated code may use. They never change meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    AHEAD,
    LANE,
    LAUNCH_BOUNDS,
    NONTEMPORAL,
    ORDINARY,
    PREFETCH,
    READONLY,
    STREAMING,
    Access,
    Array,
    Attribute,
    BufferOp,
    DictionaryAttr,
    IntegerAttr,
    Leaf,
    Mapping,
    Memory,
    Move,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Scope,
    ScopeOp,
    Transformation,
    UnitAttr,
    describe_access,
    describe_scope,
    hint_rules,
    hints_attr,
    i64,
    streams_of,
    value_of,
)
from pdojo.transforms.storage.location import fixed_memory, temporaries

PREFETCH_DISTANCES = (256, 1024, 4096)
"""Distances in bytes that candidates propose."""

COMING = (4, 16)
"""Numbers of iterations ahead that candidates propose."""

LAUNCH_BLOCKS = (1, 2, 4)
"""Blocks per multiprocessor that candidates propose."""


@dataclass(frozen=True)
class Hint(Transformation[Scope | Leaf]):
    """Set a hint on an access (`access` 0 is the output, 1 the first array read, and so on), or on a scope.

    `hint@t{kind=nontemporal}`:

    16:v t[{0}] = x[{0}]       16:v t[{0}]!nontemporal = x[{0}]
    16 y[{0}] = t[{0}]    -->  16 y[{0}] = t[{0}]

    `nontemporal` bypasses the caches on a plain store; lanes must write whole, aligned vectors. `prefetch` with `value`
    bytes fetches ahead of a load; `ahead` with `value` fetches what a load at an entry of an array of indices
    (`x[idx[{0}],{1}]`) needs so many iterations later. In a grid, `streaming` marks data that is used once, and
    `readonly` loads of arrays that the kernel never writes; on an outermost grid scope, `launch_bounds` with `value` is
    the number of blocks that a multiprocessor should hold at once. In a streaming region, `lane` with `value` chooses
    the stream register; `ordinary` marks an access that remains a load or a store.
    """

    name: ClassVar[str] = "hint"
    keeps_hints: ClassVar = False
    promises: ClassVar = Promises(conditions=True, grows=False)
    kind: str
    access: int = 0
    value: int = -1

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope | Leaf, Self]]:
        """Vector accesses to the heap, accesses in grids and streams, launches."""
        for leaf in program.nest.leaves:
            for number, access in enumerate(leaf.accesses):
                if access.array.buffer.memory is Memory.HEAP:
                    yield from ((leaf, choice) for choice in cls._choices(program, leaf, number, access))
        for scope in program.nest.scopes:
            if scope.mapping is Mapping.GRID and not scope.hints.data:
                yield from ((scope, cls(LAUNCH_BOUNDS, value=blocks)) for blocks in LAUNCH_BLOCKS)

    @classmethod
    def _choices(cls, program: Program, leaf: Leaf, number: int, access: Access) -> Iterator[Self]:
        present, mappings = access.hints.data, {s.mapping for s in leaf.chain}
        lanes = leaf.parent
        # Cores with streams have no cache before their memory.
        if lanes is not None and lanes.mapping is Mapping.VECTOR and not program.machine.snitch.stream_registers:
            if number == 0 and NONTEMPORAL not in present and hint_rules.streaming_misfit(leaf, lanes) is None:
                yield cls(NONTEMPORAL)
            elif number and PREFETCH not in present:
                yield from (cls(PREFETCH, number, distance) for distance in PREFETCH_DISTANCES)
        is_cached = not program.machine.snitch.stream_registers and Mapping.GRID not in mappings
        if number and is_cached and AHEAD not in present and hint_rules.coming_access(leaf, access, 1) is not None:
            yield from (cls(AHEAD, number, iterations) for iterations in COMING)
        if Mapping.GRID in mappings:
            yield from (cls(kind, number) for kind in (STREAMING, READONLY) if kind not in present)
        if Mapping.STREAM in mappings and LANE not in present:
            yield from (cls(LANE, number, lane) for lane in range(program.machine.snitch.stream_registers))
        if leaf.chain and ORDINARY not in present and _has_too_many_streams(program, leaf.chain[0]):
            yield cls(ORDINARY, number)

    def check(self, program: Program, site: Scope | Leaf) -> Reason | None:
        """Requires a known hint on an access or a scope that can carry it."""
        if isinstance(site, Scope):
            if self.kind in site.hints.data:
                return Reason(f"{describe_scope(site)} has the hint already")
            return self.misfit(program, site)
        if self.kind not in hint_rules.ACCESS_HINTS:
            return self._unknown()
        if not 0 <= self.access < len(site.accesses):
            return Reason(f"'access' must be between 0 (the output) and {len(site.accesses) - 1}")
        access = site.accesses[self.access]
        if self.kind in access.hints.data:
            return Reason(f"{describe_access(access)} has the hint already")
        return self.misfit(program, site)

    def _unknown(self) -> Reason:
        return Reason(f"'{self.kind}' is no hint of an access; known are {', '.join(hint_rules.ACCESS_HINTS)}")

    def misfit(self, program: Program, site: Scope | Leaf) -> Reason | None:
        """The reason why the access or scope cannot carry the hint; None if it can."""
        if isinstance(site, Scope):
            if self.access != 0:
                return Reason("a scope has no accesses: leave 'access' out")
            problem = hint_rules.scope_misfit(program, site, self.kind, self.value)
        else:
            problem = hint_rules.access_misfit(program, site, self.access, self.kind, self.value)
        return problem

    def rewrite(self, program: Program, site: Scope | Leaf, rewriter: PatternRewriter) -> None:
        if isinstance(site, Scope):
            set_hints(site.op, {**site.hints.data, self.kind: _attribute(self.value)}, rewriter)
            return
        hints = {**site.accesses[self.access].hints.data, self.kind: _attribute(self.value)}
        _set_access_hints(site, self.access, hints, rewriter)

    def inverse(self, program: Program, site: Scope | Leaf) -> Move:
        return Unhint(self.kind, self.access).as_move(f"%{site.id}")


@dataclass(frozen=True)
class Unhint(Transformation[Scope | Leaf]):
    """Clear a hint of an access or a scope.

    `unhint@t{kind=nontemporal}`:

    16:v t[{0}]!nontemporal = x[{0}]       16:v t[{0}] = x[{0}]
    16 y[{0}] = t[{0}]                -->  16 y[{0}] = t[{0}]
    """

    name: ClassVar[str] = "unhint"
    keeps_hints: ClassVar = False
    undoes: ClassVar = True
    promises: ClassVar = Promises(conditions=True, grows=False)
    kind: str
    access: int = 0

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope | Leaf, Self]]:
        """Every hint."""
        for leaf in program.nest.leaves:
            for number, access in enumerate(leaf.accesses):
                yield from ((leaf, cls(kind, number)) for kind in access.hints.data)
        for scope in program.nest.scopes:
            yield from ((scope, cls(kind)) for kind in scope.hints.data)

    def check(self, program: Program, site: Scope | Leaf) -> Reason | None:
        """Requires a present hint that `hint` can set."""
        if isinstance(site, Scope):
            if self.kind not in site.hints.data:
                return Reason(f"{describe_scope(site)} has no hint '{self.kind}'")
        elif not 0 <= self.access < len(site.accesses):
            return Reason(f"'access' must be between 0 (the output) and {len(site.accesses) - 1}")
        elif self.kind not in site.accesses[self.access].hints.data:
            return Reason(f"{describe_access(site.accesses[self.access])} has no hint '{self.kind}'")
        misfit = self._again(site).misfit(program, site)
        return None if misfit is None else Reason(f"'hint' could not set it again: {misfit.text}")

    def rewrite(self, program: Program, site: Scope | Leaf, rewriter: PatternRewriter) -> None:
        kept = {k: v for k, v in self._hints(site).data.items() if k != self.kind}
        if isinstance(site, Scope):
            set_hints(site.op, kept, rewriter)
        else:
            _set_access_hints(site, self.access, kept, rewriter)

    def _hints(self, site: Scope | Leaf) -> DictionaryAttr:
        return site.hints if isinstance(site, Scope) else site.accesses[self.access].hints

    def inverse(self, program: Program, site: Scope | Leaf) -> Move:
        return self._again(site).as_move(f"%{site.id}")

    def _again(self, site: Scope | Leaf) -> Hint:
        return Hint(self.kind, self.access, value_of(self._hints(site).data[self.kind]))


@dataclass(frozen=True)
class HintBuffer(Transformation[Array]):
    """Set a hint on a buffer.

    `hint_buffer@t{kind=persistent}`:

    t f32 [8, 4] heap  -->  t f32 [8, 4] heap!persistent

    `persistent` asks the shared cache of a graphics processor to keep the buffer from one launch to the next.
    """

    name: ClassVar[str] = "hint_buffer"
    keeps_hints: ClassVar = False
    promises: ClassVar = Promises(conditions=True, grows=False)
    example_machine: ClassVar = "toy-gpu"
    kind: str

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Array, Self]]:
        """Temporaries on the heap, on machines that support the hint."""
        for array in temporaries(program) if program.machine.gpu.block_threads else ():
            yield from ((array, cls(kind)) for kind in hint_rules.BUFFER_HINTS if kind not in array.buffer.hints.data)

    def check(self, program: Program, site: Array) -> Reason | None:
        """Requires a temporary, and a hint that the machine supports."""
        if (refused := fixed_memory(site)) is not None:
            return refused
        if self.kind in site.buffer.hints.data:
            return Reason(f"'{site.name}' has the hint already")
        return hint_rules.buffer_misfit(program, site, self.kind)

    def rewrite(self, program: Program, site: Array, rewriter: PatternRewriter) -> None:
        assert site.buffer.op is not None
        set_hints(site.buffer.op, {**site.buffer.hints.data, self.kind: UnitAttr()}, rewriter)

    def inverse(self, program: Program, site: Array) -> Move:
        return UnhintBuffer(self.kind).as_move(site.name)


@dataclass(frozen=True)
class UnhintBuffer(Transformation[Array]):
    """Clear a hint of a buffer.

    `unhint_buffer@t{kind=persistent}`:

    t f32 [8, 4] heap!persistent  -->  t f32 [8, 4] heap
    """

    name: ClassVar[str] = "unhint_buffer"
    keeps_hints: ClassVar = False
    undoes: ClassVar = True
    promises: ClassVar = Promises(conditions=True, grows=False)
    example_machine: ClassVar = "toy-gpu"
    kind: str

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Array, Self]]:
        """Every hint."""
        for array in temporaries(program):
            yield from ((array, cls(kind)) for kind in array.buffer.hints.data)

    def check(self, program: Program, site: Array) -> Reason | None:
        """Requires a present hint that `hint_buffer` can set."""
        if self.kind not in site.buffer.hints.data:
            return Reason(f"'{site.name}' has no hint '{self.kind}'")
        value = site.buffer.hints.data[self.kind]
        problem = hint_rules.buffer_misfit(program, site, self.kind)
        if problem is None and not isinstance(value, UnitAttr):
            problem = f"'{self.kind}' has no value"
        return None if problem is None else Reason(f"'hint_buffer' could not set it again: {problem}")

    def rewrite(self, program: Program, site: Array, rewriter: PatternRewriter) -> None:
        assert site.buffer.op is not None
        kept = {k: v for k, v in site.buffer.hints.data.items() if k != self.kind}
        set_hints(site.buffer.op, kept, rewriter)

    def inverse(self, program: Program, site: Array) -> Move:
        return HintBuffer(self.kind).as_move(site.name)


def _attribute(value: int) -> Attribute:
    return UnitAttr() if value < 0 else IntegerAttr(value, i64)


def set_hints(op: ScopeOp | BufferOp, hints: dict[str, Attribute], rewriter: PatternRewriter) -> None:
    """Replace the hints of a scope or a buffer."""
    if hints:
        op.properties["hints"] = DictionaryAttr(dict(sorted(hints.items())))
    else:
        op.properties.pop("hints", None)
    rewriter.notify_op_modified(op)


def _set_access_hints(site: Leaf, access: int, hints: dict[str, Attribute], rewriter: PatternRewriter) -> None:
    entries = list(site.op.access_hints)
    entries[access] = DictionaryAttr(dict(sorted(hints.items())))
    attribute = hints_attr(entries)
    if attribute is None:
        site.op.properties.pop("hints", None)
    else:
        site.op.properties["hints"] = attribute
    rewriter.notify_op_modified(site.op)


def _has_too_many_streams(program: Program, region: Scope) -> bool:
    """Whether a scope has more accesses than the machine has streams."""
    most = program.machine.snitch.stream_registers
    return bool(most) and len(streams_of(program.nest, region, program.machine)) > most
