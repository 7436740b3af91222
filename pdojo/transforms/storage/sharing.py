"""Sharing: arrays that use one memory in turn, which may be an interface array's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    Array,
    Buffer,
    BufferOp,
    InsertPoint,
    Intent,
    Memory,
    Move,
    Nest,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Scope,
    SSAValue,
    Transformation,
    accesses_of,
    base_alignment,
    describe_access,
    describe_scope,
    find_race,
    open_strides,
)
from pdojo.transforms.common.declaring import add_buffer
from pdojo.transforms.storage.location import fixed_memory


def unlike_in(guest: Buffer, host: Buffer) -> str | None:
    """The difference that prevents merging two buffers; None if there is none."""
    pairs = {
        "type": (guest.dtype, host.dtype),
        "extents": (guest.extents, host.extents),
        "slots": (guest.reuse, host.reuse),
        "swizzles": (dict(guest.swizzles), dict(host.swizzles)),
        "location": (guest.memory, host.memory),
        "hints": (guest.hints, host.hints),
        "the time of binding": (guest.constant, host.constant),
    }
    return next((what for what, (mine, other) in pairs.items() if mine != other), None)


def pinned(nest: Nest, array: Array) -> Reason | None:
    """The reason why the accesses to an array need its present memory; None if they do not."""
    for _, access in accesses_of(nest, array.buffer):
        if access.array is array and access.hints.data:
            return Reason(f"{describe_access(access)} has hints for the memory that it has; clear them first")
    return None


def _several_threads(nest: Nest, buffers: Iterable[Buffer]) -> Reason | None:
    """The reason why registers cannot be shared: they belong to one thread, and several use them; None if they can."""
    owners: set[Scope | None] = set()
    for buffer in buffers:
        for leaf, _ in accesses_of(nest, buffer) if buffer.memory is Memory.REGISTER else ():
            owners.add(next((s for s in reversed(leaf.chain) if s.mapping.is_threaded), None))
    return Reason("several threads use these registers, which belong to one") if len(owners) > 1 else None


def buffer_like(like: Buffer, names: Sequence[str], host: SSAValue | None = None) -> BufferOp:
    """A declaration of arrays in a buffer of the same kind; in the memory of the interface array `host` if given."""
    constant = like.constant and like.op is not None
    facts = like.memory, like.reuse, host, like.hints, like.swizzles
    return BufferOp.of(names, like.dtype, like.extents, *facts, constant=constant)


def _declare(program: Program, host: Buffer, names: Sequence[str], rewriter: PatternRewriter) -> BufferOp | None:
    """Replace a buffer's declaration by one for the arrays `names`; an array that leaves keeps its old SSA value.

    For an interface array, `names` are the temporaries in it; if there are none, there is no declaration.
    """
    kernel, arrays = program.kernel, program.nest.arrays
    old = host.guests if host.op is None else host.op
    if not names:
        return None
    argument = arrays[host.names[0]].value if host.op is None else None
    new = buffer_like(host, names, argument)
    anchor = old
    if anchor is None:
        order: dict[SSAValue | None, int] = {a: k for k, a in enumerate(kernel.body.block.args)}
        behind = (
            op
            for op in kernel.body.block.ops
            if not isinstance(op, BufferOp) or op.host is None or order[op.host] > order[argument]
        )
        anchor = next(behind)
    rewriter.insert(new, InsertPoint.before(anchor))
    for name, value in zip(names, new.arrays, strict=True):
        rewriter.replace_all_uses_with(arrays[name].value, value)
    return new


def _guests(buffer: Buffer) -> tuple[str, ...]:
    """The arrays in the declaration of a buffer; an interface array is not one of them."""
    return buffer.names if buffer.op is not None else buffer.names[1:]


@dataclass(frozen=True)
class ShareBuffer(Transformation[Array]):
    """Let an array share the memory of another one, which may be an output of the kernel.

    `share_buffer@t{with=p}`:

    p f32 [8] heap                 p f32 [8] heap -> p, t
    t f32 [8] heap                 8 t[{0}] = exp(x[{0}])
    8 t[{0}] = exp(x[{0}])    -->  8 p[{0}] = t[{0}] + 1
    8 p[{0}] = t[{0}] + 1          8 y[{0}] = p[{0}]
    8 y[{0}] = p[{0}]

    Both have the same type, shape and location. Legal iff for every flow from the last write w of an element to a read
    r, no other instance writes r's cell in between, and concurrent iterations do not race for a cell. For an interface
    array, moreover, the caller must get the array's own values, and values from the caller must survive until they are
    read.
    """

    name: ClassVar[str] = "share_buffer"
    with_: str

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Array, Self]]:
        """Arrays that are alone in their buffers, with earlier, otherwise equal buffers."""
        nest = program.nest
        for position, guest in enumerate(nest.buffers):
            if guest.op is None or len(guest.names) != 1 or guest not in program.live_ranges:
                continue
            for host in nest.buffers[:position]:
                if host.intent is not Intent.IN and unlike_in(guest, host) is None:
                    yield nest.arrays[guest.names[0]], cls(host.names[0])

    def check(self, program: Program, site: Array) -> Reason | None:
        """Requires two buffers that could be one, and values that survive the sharing."""
        host = program.nest.arrays.get(self.with_)
        if host is None:
            return Reason(f"there is no array '{self.with_}'")
        if (refused := fixed_memory(site) or self._unlike(site, host)) is not None:
            return refused
        fixed = pinned(program.nest, site) or _several_threads(program.nest, [site.buffer, host.buffer])
        return fixed or self._loss(program, site, host)

    def argues(self, program: Program, site: Array) -> bool:
        """False if vectors of the array may lose the alignment that they need, or their constant distances."""
        host = program.nest.arrays[self.with_].buffer
        needs = program.machine.aligned_vectors or bool(program.machine.gpu.async_copy_bytes)
        return not open_strides(host) and not (needs and base_alignment(host) % base_alignment(site.buffer))

    promises: ClassVar = Promises(conditions=argues, adds=0)

    def _unlike(self, site: Array, host: Array) -> Reason | None:
        """The reason why the two cannot have one memory in any program; None if they can."""
        if site.buffer is host.buffer:
            return Reason(f"'{site.name}' and '{host.name}' share memory already")
        if len(site.buffer.names) > 1:
            others = ", ".join(f"'{name}'" for name in site.buffer.names if name != site.name)
            return Reason(f"'{site.name}' shares its memory with {others}; unshare_buffer takes it out first")
        if host.intent is Intent.IN:
            return Reason(f"'{host.name}' is an input of the kernel, which nothing may overwrite")
        difference = unlike_in(site.buffer, host.buffer)
        return None if difference is None else Reason(f"'{site.name}' and '{host.name}' differ in {difference}")

    def _loss(self, program: Program, site: Array, host: Array) -> Reason | None:
        """The reason why one array would lose values to the other, in order or among concurrent iterations; or None."""
        violation = program.sharing_violation(site.buffer, host.buffer)
        if violation is not None:
            return violation
        if not any(s.mapping.is_concurrent for s in program.nest.scopes):
            return None
        race = find_race(program, program.uses_shared(site.buffer, host.buffer), {host.buffer})
        if race is None:
            return None
        return Reason(f"iterations of {describe_scope(race.scope)} would share memory", str(race.conflict))

    def rewrite(self, program: Program, site: Array, rewriter: PatternRewriter) -> None:
        host = program.nest.arrays[self.with_].buffer
        names = [*host.names, site.name]
        old = host.guests if host.op is None else host.op
        _declare(program, host, names if host.op is not None else names[1:], rewriter)
        if old is not None:
            rewriter.erase(old)
        assert site.buffer.op is not None
        rewriter.erase(site.buffer.op)

    def inverse(self, program: Program, site: Array) -> Move:
        return UnshareBuffer().as_move(site.name)


@dataclass(frozen=True)
class UnshareBuffer(Transformation[Array]):
    """Give an array its own memory, instead of memory shared with others.

    `unshare_buffer@t`:

    p f32 [8] heap -> p, t         p f32 [8] heap
    8 t[{0}] = exp(x[{0}])         t f32 [8] heap
    8 p[{0}] = t[{0}] + 1     -->  8 t[{0}] = exp(x[{0}])
    8 y[{0}] = p[{0}]              8 p[{0}] = t[{0}] + 1
                                   8 y[{0}] = p[{0}]

    Sequential code keeps every value. Legal iff concurrent iterations, which may have had private copies before, do
    not race for the new memory, and there is room for one more buffer.
    """

    name: ClassVar[str] = "unshare_buffer"
    undoes: ClassVar = True

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Array, Self]]:
        """Temporaries in buffers of several arrays."""
        for array in program.nest.arrays.values():
            if array.intent is None and len(array.buffer.names) > 1:
                yield array, cls()

    def check(self, program: Program, site: Array) -> Reason | None:
        """Requires a temporary that shares memory."""
        nest = program.nest
        if len(site.buffer.names) < 2:
            return Reason(f"'{site.name}' shares its memory with no other array")
        if site.intent is not None:
            return Reason(f"'{site.name}' is an interface array; the arrays in its memory can leave it")
        return pinned(nest, site)

    def rewrite(self, program: Program, site: Array, rewriter: PatternRewriter) -> None:
        host = site.buffer
        old = host.guests if host.op is None else host.op
        assert old is not None
        _declare(program, host, [name for name in _guests(host) if name != site.name], rewriter)
        own = buffer_like(host, [site.name])
        add_buffer(program.kernel, own, rewriter)
        rewriter.replace_all_uses_with(site.value, own.arrays[0])
        rewriter.erase(old)

    def inverse(self, program: Program, site: Array) -> Move:
        return ShareBuffer(next(name for name in site.buffer.names if name != site.name)).as_move(site.name)
