"""Instructions that the threads of warps run together, printed as calls of the intrinsic's function in each thread.

If several warps reach the instruction, all compute results in registers, and one warp stores results that they share.

An operand in the thread's own memory is passed directly: its elements lie in the order of the slots. Elements of other
operands are first loaded into a fragment, and stored afterwards if the instruction writes them. They are loaded as
matrices (`MatrixLoad`) from shared memory if the machine has an instruction whose rows are contiguous there, else as
vectors wherever neighbouring slots are neighbours in memory. An operand that the unit itself reads from shared memory
is passed as the address of its first element, and its layout as arguments of a function template.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from pdojo.backends.c.code import variable
from pdojo.backends.common.addresses import Address
from pdojo.backends.common.walk import describe
from pdojo.backends.gpu.batches import is_asynchronous
from pdojo.backends.gpu.device_code import DeviceCode
from pdojo.backends.gpu.launches import Launch, reduced_by
from pdojo.backends.gpu.operand_loads import MemoryOperand
from pdojo.backends.gpu.spelling import UNITS, DeviceSpelling
from pdojo.dialect.affine import const
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.machines.collectives import Collective, SharedAccess, SpreadAccess
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.matrix_load import MatrixLoad
from pdojo.dialect.machines.shared_operand import SharedLayout, shared_layout
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.nest import Nest
from pdojo.errors import LoweringError

_ALIGNED = 16
"""Alignment in bytes of fragments: the largest access."""


class CollectiveText:
    """Appends instructions of a warp to a device function."""

    def __init__(self, found: Launch, code: DeviceCode, nest: Nest, machine: Machine) -> None:
        self.launch, self.code, self.nest = found, code, nest
        spelling = code.spelling
        assert isinstance(spelling, DeviceSpelling)
        self.spelling = spelling
        self.loads = [load for load in machine.matrix_loads if spelling.language in load.templates]

    def append(self, collective: Collective) -> None:
        """Append the call that computes a scope. Raises LoweringError if its threads cannot run it together."""
        self._check(collective)
        intrinsic = collective.intrinsic
        depth = max(spread.leaf.depth for spread in collective.operands.values())
        with self.code.block(self._head(collective)), self._lane(collective, depth):
            pointers: list[str] = []
            layouts: list[int] = []
            stores: list[tuple[str, SpreadAccess]] = []
            for number, operand in enumerate(collective.names):
                if operand in collective.shared:
                    layout = self._layout(collective.shared[operand])
                    layouts += layout.major, layout.group_bytes, layout.piece_bytes
                    array = self.code.names[collective.shared[operand].access.array.buffer]
                    pointers.append(f"&{array}[{self.code.position(Address(layout.start))}]")
                    continue
                spread = collective.operands[operand]
                if spread.access.array.buffer in self.code.own:
                    pointers.append(self._own(spread))
                    continue
                name = f"lane{number}"
                pointers.append(name)
                self._load(name, spread, depth)
                if spread.writes:
                    stores.append((name, spread))
            alone = layouts and not is_asynchronous(collective)
            template = f"<{', '.join(map(str, layouts))}>" if layouts else ""
            if alone:
                self.code.line(f"{UNITS}_fence();")
            self.code.line(f"{intrinsic.name}{template}({', '.join(pointers)});")
            if alone:
                self.code.line(f"{UNITS}_commit();")
                self.code.line(f"{UNITS}_wait<0>();")
                for name, _ in stores:
                    self.code.line(f"{UNITS}_hold({name});")
            for name, spread in stores:
                operand = self._operand(spread, depth)
                for slot in range(spread.fragment.slots):
                    place = self.code.position(operand.element(slot))
                    self.code.line(f"{self.code.names[spread.access.array.buffer]}[{place}] = {name}[{slot}];")

    def _check(self, collective: Collective) -> None:
        # Imported here: the analysis takes long to import.
        from pdojo.dialect.rules.tensor import match

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

    def _layout(self, shared: SharedAccess) -> SharedLayout:
        """The layout of an operand that the unit itself reads; `match` has checked that there is one."""
        found = shared_layout(self.nest, shared.access, shared.leaf, shared.depths, shared.atom)
        assert isinstance(found, SharedLayout)
        return found

    def _head(self, collective: Collective) -> str:
        """The condition that selects one of several warps to store a shared result; empty if it is not needed."""
        group, threads = self.launch.group(collective.scope.chain), collective.intrinsic.threads
        stores = any(s.writes and s.access.array.buffer not in self.code.own for s in collective.operands.values())
        if group == threads or not stores:
            return ""
        number = "thread" if group == self.launch.threads else f"thread % {group}"
        return f"if ({number} < {threads})"

    @contextmanager
    def _lane(self, collective: Collective, depth: int) -> Generator[None]:
        """A context that declares the thread's number in its warp as the variable of an innermost scope."""
        threads = collective.intrinsic.threads
        number = "thread" if self.launch.threads == threads else f"thread % {threads}"
        self.code.line(f"const int {variable(depth)} = {number};")
        before = len(self.code.extents)
        chain = next(s.leaf.chain for s in collective.operands.values() if s.leaf.depth == depth)
        self.code.extents.extend(s.extent for s in chain[before:])
        self.code.extents.append(threads)
        yield
        del self.code.extents[before:]

    def _own(self, spread: SpreadAccess) -> str:
        """A pointer to the thread's elements in its own memory."""
        name, part = self.code.names[spread.access.array.buffer], self.code.own[spread.access.array.buffer]
        if part.layout.size == 1:
            return f"&{name}"
        first = dict(zip(spread.depths, map(const, spread.fragment.places[0][0]), strict=True))
        place = self.code.place(spread.access, spread.leaf)
        return f"&{name}[{self.code.position(Address(place.linear.substitute(first, self.code.extents)))}]"

    def _operand(self, spread: SpreadAccess, depth: int) -> MemoryOperand:
        buffer = spread.access.array.buffer
        placement, copies = self.code.placements[buffer], self.code.copies.get(buffer)
        # Copies belong to scopes around all accesses, never to a thread of the warp.
        offset = const(0) if copies is None else copies.offset
        return MemoryOperand(spread, depth, placement.layout, placement.alignment, offset, self.code.bind)

    def _load(self, name: str, spread: SpreadAccess, depth: int) -> None:
        """Load the calling thread's elements of an operand."""
        buffer = spread.access.array.buffer
        kind, array = self.spelling.types[buffer.dtype], self.code.names[buffer]
        self.code.line(f"__align__({_ALIGNED}) {kind} {name}[{spread.fragment.slots}];")
        for piece in self._operand(spread, depth).pieces(self.loads):
            target, place = f"{name}[{piece.slot}]", f"{array}[{self.code.position(piece.place)}]"
            if piece.load is not None:
                self._declare(piece.load)
                self.code.line(f"{piece.load.name}<{piece.matrices}>(&{target}, &{place});")
            elif piece.slots == 1:
                self.code.line(f"{target} = {place};")
            else:
                vector = self.code.prelude.vector(buffer.dtype, piece.slots)
                to, source = self.spelling.vector_at(vector, target), self.spelling.vector_at(f"const {vector}", place)
                self.code.line(f"*{to} = *{source};")

    def _declare(self, load: MatrixLoad) -> None:
        try:
            self.code.prelude.template(load.name, load.template(self.spelling.language))
        except LoweringError as error:
            raise LoweringError(f"operands of a warp are loaded by '{load.name}', {error}") from None
