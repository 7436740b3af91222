"""Instructions that the threads of a warp run together, as calls of the intrinsic's function in each of them.

If more than one warp is at the place, all compute what is in their registers, and one what they share.

An operand in the thread's own memory is passed as it is: its elements lie in the order of the slots. Elements of other
operands are loaded into a fragment first, and stored afterwards if the instruction writes them. They are loaded as
matrices (`MatrixLoad`) from shared memory if the machine has an instruction whose rows are whole there, else in vectors
where neighbouring slots are neighbours in memory.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pdojo.backends.addresses import Address, address_of, known_alignment
from pdojo.backends.c.code import variable
from pdojo.backends.gpu.device_code import DeviceCode
from pdojo.backends.gpu.homes import SHARED_ALIGNMENT
from pdojo.backends.gpu.launches import Launch, reduced_by
from pdojo.backends.gpu.spelling import DeviceSpelling
from pdojo.backends.walk import describe
from pdojo.dialect.affine import Expr, const
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.collectives import Collective, Spread
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.matrix_load import MatrixLoad, rows_of
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.nest import Access, Nest, Scope
from pdojo.errors import LoweringError

_MOST_BYTES = 16
"""Most bytes that one access moves."""


class CollectiveText:
    """Appends instructions of a warp to a device function."""

    def __init__(self, found: Launch, code: DeviceCode, nest: Nest, machine: Machine) -> None:
        self.launch, self.code, self.nest = found, code, nest
        spelling = code.spelling
        assert isinstance(spelling, DeviceSpelling)
        self.spelling = spelling
        self.loads = [load for load in machine.matrix_loads if spelling.language in load.templates]

    def append(self, collective: Collective) -> None:
        """Append the call that computes a scope. Raises LoweringError if its threads cannot make it together."""
        self._check(collective)
        intrinsic = collective.intrinsic
        depth = max(spread.leaf.depth for spread in collective.operands.values())
        with self.code.block(self._head(collective)), self._lane(collective, depth):
            pointers: list[str] = []
            stores: list[tuple[str, Spread]] = []
            for number, spread in enumerate(collective.operands.values()):
                if spread.access.array.buffer in self.code.own:
                    pointers.append(self._own(spread))
                    continue
                name = f"lane{number}"
                pointers.append(name)
                self._load(name, spread, depth)
                if spread.writes:
                    stores.append((name, spread))
            self.code.line(f"{intrinsic.name}({', '.join(pointers)});")
            for name, spread in stores:
                for slot in range(spread.fragment.slots):
                    place = self.code.position(self._address(spread, slot, depth))
                    self.code.line(f"{self.code.names[spread.access.array.buffer]}[{place}] = {name}[{slot}];")

    def _check(self, collective: Collective) -> None:
        # The analysis's module takes long to import.
        from pdojo.dialect.analysis.tensor import match

        scope, intrinsic = collective.scope, collective.intrinsic
        try:
            self.code.prelude.template(intrinsic.name, intrinsic.template(self.spelling.language))
        except LoweringError as error:
            raise LoweringError(f"{describe(scope)} is mapped to '{intrinsic.name}', {error}") from None
        found = match(self.nest, scope, intrinsic)
        if isinstance(found, Reason):
            raise LoweringError(f"{describe(scope)} is not what '{intrinsic.name}' computes: {found}")
        if not self.launch.grids or any(s.mapping is Mapping.WARP for s in scope.chain):
            raise LoweringError(f"a warp computes {describe(scope)}, which must be inside a grid, and outside of ':w'")
        if any(reduced_by(leaf) for leaf in scope.leaves):
            raise LoweringError(f"different warps would accumulate into the cells of {describe(scope)}")

    def _head(self, collective: Collective) -> str:
        """The condition that lets one of several warps store what they would all compute; empty if there is one."""
        group, threads = self.launch.group(collective.scope.chain), collective.intrinsic.threads
        stores = any(s.writes and s.access.array.buffer not in self.code.own for s in collective.operands.values())
        if group == threads or not stores:
            return ""
        number = "thread" if group == self.launch.threads else f"thread % {group}"
        return f"if ({number} < {threads})"

    @contextmanager
    def _lane(self, collective: Collective, depth: int) -> Generator[None]:
        """The number of the thread in its warp, as the variable of a scope inside all others."""
        threads = collective.intrinsic.threads
        number = "thread" if self.launch.threads == threads else f"thread % {threads}"
        self.code.line(f"const int {variable(depth)} = {number};")
        before = len(self.code.extents)
        chain = next(s.leaf.chain for s in collective.operands.values() if s.leaf.depth == depth)
        self.code.extents.extend(s.extent for s in chain[before:])
        self.code.extents.append(threads)
        yield
        del self.code.extents[before:]

    def _own(self, spread: Spread) -> str:
        """A pointer to the thread's elements, in its own memory."""
        name, part = self.code.names[spread.access.array.buffer], self.code.own[spread.access.array.buffer]
        if part.layout.size == 1:
            return f"&{name}"
        first = dict(zip(spread.depths, map(const, spread.fragment.places[0][0]), strict=True))
        place = self.code.place(spread.access, spread.leaf)
        return f"&{name}[{self.code.position(Address(place.linear.substitute(first, self.code.extents)))}]"

    def _address(self, spread: Spread, slot: int, depth: int) -> Address:
        """The place of the element in a slot of the calling thread."""
        return self._place(spread, spread.fragment.element(slot, depth, self._around(spread, depth)[1]), depth)

    def _place(self, spread: Spread, element: Sequence[Expr], depth: int) -> Address:
        """The place of an element of an operand, whose index is over the variables of the scope and the lane."""
        around, extents = self._around(spread, depth)
        index = dict(zip(spread.depths, element, strict=True))
        access = Access(spread.access.array, tuple(e.substitute(index, extents) for e in spread.access.index))
        return address_of(access, self.code.placements[spread.access.array.buffer].layout, around)

    def _around(self, spread: Spread, depth: int) -> tuple[list[Scope], list[int]]:
        """The scopes around the access and the lane, which is that at `depth`, and their extents."""
        chain = spread.leaf.chain
        lane = Scope(chain[-1].op, chain[-1], 0, depth, spread.fragment.threads, Mapping.SEQUENTIAL, ())
        around = [*chain, *(lane for _ in range(depth + 1 - len(chain)))]
        return around, [s.extent for s in around]

    def _load(self, name: str, spread: Spread, depth: int) -> None:
        """Load the calling thread's elements of an operand: matrices if that is fewer instructions, else vectors."""
        buffer, slots = spread.access.array.buffer, spread.fragment.slots
        kind, source = self.spelling.types[buffer.dtype], self.code.names[buffer]
        self.code.line(f"__align__({_MOST_BYTES}) {kind} {name}[{slots}];")
        addresses = [self._address(spread, slot, depth) for slot in range(slots)]
        slot = 0
        while slot < slots:
            count = self._together(spread, addresses, slot)
            matrices = self._matrices(spread, slot, depth)
            if matrices is not None and self._accesses(spread, addresses, slot, matrices.slots) > 1:
                row = self.code.position(matrices.row)
                self.code.line(f"{matrices.function}(&{name}[{slot}], &{source}[{row}]);")
                slot += matrices.slots
                continue
            place = self.code.position(addresses[slot])
            if count == 1:
                self.code.line(f"{name}[{slot}] = {source}[{place}];")
            else:
                vector = self.code.prelude.vector(buffer.dtype, count)
                self.code.line(f"*({vector} *)&{name}[{slot}] = *(const {vector} *)&{source}[{place}];")
            slot += count

    def _matrices(self, spread: Spread, slot: int, depth: int) -> _Matrices | None:
        """The instruction that loads most slots as matrices from one on; None if none fits the place in memory."""
        buffer = spread.access.array.buffer
        if buffer.memory is not Memory.SHARED:
            return None
        width = byte_width(buffer.dtype)
        _, extents = self._around(spread, depth)
        for load in self.loads:
            for matrices in reversed(load.matrices):
                rows = rows_of(load, spread.fragment, width, slot, matrices)
                if rows is None:
                    continue
                row = [self._place(spread, element, depth) for element in rows.elements(depth, extents)]
                if self._is_run(spread, row):
                    self._declare(load)
                    return _Matrices(f"{load.name}<{matrices}>", rows.slots, row[0])
        return None

    def _declare(self, load: MatrixLoad) -> None:
        try:
            self.code.prelude.template(load.name, load.template(self.spelling.language))
        except LoweringError as error:
            raise LoweringError(f"operands of a warp are loaded by '{load.name}', {error}") from None

    def _accesses(self, spread: Spread, addresses: Sequence[Address], slot: int, slots: int) -> int:
        """How many accesses of a thread load some slots from one on."""
        end, count = slot + slots, 0
        while slot < end:
            slot += self._together(spread, addresses, slot)
            count += 1
        return count

    def _together(self, spread: Spread, addresses: Sequence[Address], slot: int) -> int:
        """How many slots one access can load: neighbours, aligned in memory and in the fragment; a power of two."""
        count = _MOST_BYTES // byte_width(spread.access.array.dtype)
        while count > 1:
            inside = addresses[slot : slot + count]
            if slot % count == 0 and len(inside) == count and self._is_run(spread, inside):
                return count
            count //= 2
        return 1

    def _is_run(self, spread: Spread, addresses: Sequence[Address]) -> bool:
        """Whether places are neighbours in memory, of which the first is aligned to the size of all."""
        buffer = spread.access.array.buffer
        width, base = byte_width(buffer.dtype), self.code.placements[buffer].alignment
        if buffer.memory is Memory.SHARED:
            base = min(base, SHARED_ALIGNMENT)
        first, *_ = addresses
        if any(
            one.exchanges != first.exchanges or one.linear - first.linear != const(k) for k, one in enumerate(addresses)
        ):
            return False
        parts = [self.code.bind(first.linear), *(const(e.factor) for e in first.exchanges)]
        return all(known_alignment(part, width, base) % (len(addresses) * width) == 0 for part in parts)


@dataclass(frozen=True)
class _Matrices:
    """An instruction that loads matrices."""

    function: str
    slots: int
    """The elements of each thread."""
    row: Address
    """The place of the first element of the row that the calling thread gives."""
