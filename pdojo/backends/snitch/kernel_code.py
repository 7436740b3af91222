"""A kernel as one function of a Snitch core.

The function takes pointers to the interface arrays, in the order of the signature, then the sizes, of 32 bits each,
then a pointer to the workspace if the kernel has heap temporaries. Arguments are in a0 to a7, further ones on the stack
(ilp32d). All memory must be in the TCDM.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from pdojo.backends.common.addresses import refuse_strides
from pdojo.backends.common.placement import MemoryClass, MemoryPlan, plan_memory
from pdojo.backends.common.walk import LoopBounds, NestWalk, describe, loop_bounds
from pdojo.backends.snitch.addressing import Addresses, Root
from pdojo.backends.snitch.assembly import AssemblyFunction
from pdojo.backends.snitch.cells import Cells, in_registers
from pdojo.backends.snitch.code import (
    ARGUMENT,
    ARRAYS,
    SP,
    ZERO,
    CodeLine,
    FrameKind,
    FrameOffset,
    Register,
    SnitchCode,
)
from pdojo.backends.snitch.finish import finish
from pdojo.backends.snitch.functions import Functions
from pdojo.backends.snitch.numbers import Numbers
from pdojo.backends.snitch.outliers import Outliers
from pdojo.backends.snitch.statement import Statements
from pdojo.backends.snitch.streaming import Regions
from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Mapping, Numerics
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.rules.hardware_loops import instructions_of, snitch_limits
from pdojo.dialect.rules.streams import stream_conflicts
from pdojo.dialect.view.nest import Buffer, Leaf, Nest, Scope
from pdojo.errors import LoweringError

_REGISTERS = 8
"""Number of arguments passed in registers."""
_OTHER_MACHINES = (Mapping.GRID, Mapping.BLOCK, Mapping.WARP, Mapping.TENSOR, Mapping.PARALLEL)


def lower_kernel(nest: Nest, machine: Machine) -> AssemblyFunction:
    """The function of a kernel.

    Raises LoweringError for mappings and memories that the core lacks, for functions that need a missing divider, for
    arrays that exceed its memory, and for hardware loops that need too many registers.
    """
    refuse_strides(nest, "code for Snitch")
    return _SnitchLowering(nest, machine).lower()


@dataclass
class _Frame:
    """The layout of the arrays on the stack."""

    offsets: dict[Buffer, int] = field(default_factory=dict[Buffer, int])
    size: int = 0

    def add(self, buffer: Buffer, size: int) -> None:
        self.offsets[buffer] = self.size
        self.size += -(-size // 8) * 8


class _SnitchLowering(NestWalk):
    dissolved = frozenset()

    def __init__(self, nest: Nest, machine: Machine) -> None:
        super().__init__({}, [])
        self.nest = nest
        self.machine = machine
        self._refuse_mappings()
        self._refuse_sizes()
        self._refuse_limits()
        self.plan: MemoryPlan = plan_memory(nest)
        self.code = SnitchCode(nest.symbol)
        self.numbers = Numbers(self.code, f"{nest.symbol}_constants")
        self.addresses = Addresses(self.code, self.numbers, self.known, self.extents)
        self.cells = Cells(nest, self.known)
        self.regions = Regions(self.code, nest, machine)
        self.stack = _Frame()
        self.entry: list[CodeLine] = []
        self.roots = self._roots()
        outliers = Outliers(self.code, self.numbers, self.known)
        functions = Functions(self.code, self.numbers, frozenset(machine.features), machine.name, outliers)
        # Hardware loops have only the maximum that loses NaN; `streams` rejects them in kernels that do not permit it.
        functions = replace(functions, loses_nan=Numerics.NUMBERS in nest.kernel.permitted)
        self.statements = Statements(
            self.code,
            nest,
            self.plan,
            self.roots,
            self.addresses,
            self.cells,
            self.regions,
            functions,
            self.known,
            self.extents,
        )
        self._pack_cells()

    def lower(self) -> AssemblyFunction:
        for node in self.nest.children:
            with self.code.frame(FrameKind.NEST) as frame:
                self.regions.begin(node)
                self.nodes([node])
                if node is self.nest.children[-1]:
                    self.regions.end()
            self.code.close_nest(frame)
        self.code.finished[:0] = self.entry
        lines, frame_bytes = finish(self.code, self.stack.size, self.nest.symbol)
        self._check_memory(frame_bytes)
        facts = {"workspace_bytes": self.plan.shared_bytes, "stack_bytes": frame_bytes}
        return AssemblyFunction(self.nest.symbol, lines, self.numbers.data, facts)

    # Memory

    def _refuse_mappings(self) -> None:
        """Raise LoweringError for scopes whose mapping the core lacks."""
        for scope in self.nest.scopes:
            if scope.mapping in _OTHER_MACHINES:
                raise LoweringError(
                    f"kernel '{self.nest.name}': {describe(scope)} is mapped to what a Snitch core does not have; "
                    "apply unmap to it first"
                )
            if scope.extent >= 1 << 31:
                raise LoweringError(f"kernel '{self.nest.name}': {describe(scope)} is counted in 32 bits: tile it")

    def _refuse_sizes(self) -> None:
        """Raise LoweringError for sizes and indices that 32 bits do not hold."""
        known = [(f"the size {size.name} goes", size.high) for size in self.nest.sizes.values()]
        known += [(f"indices of '{each.name}' go", each.bounds[1]) for each in self.nest.index_arrays.values()]
        known += [(f"entries of '{each.name}' go", max(each.entries)) for each in self.nest.tables.values()]
        for what, high in known:
            if high >= 1 << 31:
                raise LoweringError(
                    f"kernel '{self.nest.name}': {what} to {high}, and integers of a Snitch core have 32 bits; give a "
                    "smaller range"
                )

    def _refuse_limits(self) -> None:
        """Raise LoweringError for violated limits of streams and hardware loops; moves never violate them."""
        if any(s.mapping in (Mapping.STREAM, Mapping.FREP) for s in self.nest.scopes):
            program = Program(self.nest.kernel, self.machine, nest=self.nest)
            for problem in (*stream_conflicts(program), *snitch_limits(program)):
                raise LoweringError(f"kernel '{self.nest.name}': {problem.text}")

    def _roots(self) -> dict[Buffer, Root]:
        """The starts of buffers in memory; also sets the entry code."""
        roots: dict[Buffer, Root] = {}
        arguments: list[Register] = []
        workspace = Register("x", area=MemoryClass.WORKSPACE)
        for buffer in self.nest.buffers:
            placement = self.plan.placements[buffer]
            match placement.home:
                case MemoryClass.ARGUMENT:
                    arguments.append(Register("x", area=buffer))
                    roots[buffer] = Root(arguments[-1], 0)
                    self.addresses.indices[buffer.names[0]] = arguments[-1]
                case MemoryClass.WORKSPACE:
                    roots[buffer] = Root(workspace, placement.position)
                case _ if in_registers(self.nest, buffer):
                    continue
                case _:
                    self.stack.add(buffer, placement.layout.size_bytes)
        for name in self.nest.sizes:
            arguments.append(Register("x"))
            self.addresses.sizes[name] = arguments[-1]
        if self.plan.shared_bytes:
            arguments.append(workspace)
        with self.code.at(self.entry):
            self._receive(arguments)
            for buffer, offset in self.stack.offsets.items():
                start = Register("x", area=buffer)
                self.code.x("addi", SP, immediate=FrameOffset(ARRAYS, offset), to=start)
                roots[buffer] = Root(start, 0)
        return roots

    def _receive(self, arguments: Sequence[Register]) -> None:
        """Copy the arguments from registers and stack."""
        passed = [Register("x", f"a{k}") for k in range(min(_REGISTERS, len(arguments)))]
        self.code.emit("entry", passed)
        for register, argument in zip(passed, arguments, strict=False):
            self.code.move(register, argument)
        for number, argument in enumerate(arguments[_REGISTERS:]):
            self.code.x("lw", SP, immediate=FrameOffset(ARGUMENT, 4 * number), to=argument)

    def _check_memory(self, frame_bytes: int) -> None:
        """Raise LoweringError if the kernel's memory does not fit the TCDM."""
        interface = sum(p.layout.size_bytes for p in self.plan.placements.values() if p.home is MemoryClass.ARGUMENT)
        total, room = interface + self.plan.shared_bytes + frame_bytes, self.machine.cache_bytes[-1]
        if self.machine.architecture and total > room:
            raise LoweringError(
                f"kernel '{self.nest.name}': arrays, temporaries and stack take {total} bytes, but the memory of "
                f"{self.machine.name} has {room}"
            )

    def _pack_cells(self) -> None:
        """Find the register buffers that packed statements access by lanes."""
        for leaf in self.nest.leaves:
            lanes = leaf.parent
            if lanes is None or lanes.mapping is not Mapping.VECTOR:
                continue
            if not self.statements.packs(leaf):
                continue
            for access in leaf.accesses:
                if access.array.buffer not in self.roots and any(e.uses(lanes.depth) for e in access.index):
                    self.cells.packed.add(access.array.buffer)

    # The tree

    def statement(self, leaf: Leaf) -> None:
        self.statements.emit(leaf)

    @contextmanager
    def branch(self, constraints: Sequence[Expr]) -> Generator[None]:
        skip = self.code.label("skip")
        for constraint in constraints:
            self.code.emit("blt", (), (self.addresses.exact(constraint), ZERO), skip)
        with self.regions.branch(), self.code.frame(FrameKind.IF) as frame:
            yield
        self.code.close_if(frame, skip)

    def bounds(self, scope: Scope) -> LoopBounds:
        """The guard of a scope; what bounds no loop's variable is checked in each iteration."""
        found = loop_bounds(scope, self.extents)
        return replace(found, outer=(), inner=(*found.outer, *found.inner), own=scope.guard)

    def unroll(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append the iterations of an unrolled scope; if it is one statement, its copies share tests of arguments."""
        leaf = _only_statement(scope)
        if leaf is None:
            self.unrolled(scope, bounds)
            return
        with self.statements.together(leaf):
            self.unrolled(scope, bounds)

    def vector(self, scope: Scope, leaf: Leaf, bounds: LoopBounds) -> None:
        """Append a statement, packed, or lane by lane, which also checks the guard of each lane."""
        if scope.guard or self.statements.goes_by_lanes(leaf):
            self.unrolled(scope, bounds)
        else:
            self.statement(leaf)

    def other(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append a hardware loop or a streaming region."""
        if scope.mapping is Mapping.FREP:
            self._hardware_loop(scope, scope.extent)
            return
        assert scope.mapping is Mapping.STREAM, "other mappings are refused"
        self.regions.enter(scope, self.addresses, self.roots)
        self.loop(scope, bounds)
        self.regions.leave(scope)

    def loop(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append a loop, or only its hardware loop if the body is nothing else."""
        repeated, trips = self._repeated(scope)
        if repeated is not None:
            self._hardware_loop(repeated, trips)
            return
        if scope.extent == 1:
            self.unrolled(scope, bounds)
            return
        self.regions.loop(scope)
        span = self.addresses.span(scope.extent, bounds.lows, bounds.highs)
        skipped = nullcontext() if span is None or span.runs else self.regions.branch()
        with skipped, self.code.frame(FrameKind.LOOP, scope, span) as frame:
            self.body(scope, bounds)
        self.code.close_loop(frame)

    def _repeated(self, scope: Scope) -> tuple[Scope | None, int]:
        """The hardware loop that is a loop's only content, and all iterations together; (None, 0) without one."""
        trips, inner = scope.extent, scope
        while len(inner.children) == 1 and not inner.guard:
            (child,) = inner.children
            if isinstance(child, Leaf):
                break
            trips *= child.extent
            if child.mapping is Mapping.FREP:
                return (child, trips) if trips <= self.machine.snitch.frep_trips else (None, 0)
            if child.mapping is not Mapping.SEQUENTIAL:
                break
            inner = child
        return None, 0

    def _hardware_loop(self, scope: Scope, trips: int) -> None:
        expected = sum(instructions_of(leaf, scope) for leaf in scope.leaves)
        if scope.extent == 1:
            self.known[scope.depth] = 0
        # The scopes in between are not walked: the hardware loop runs their iterations.
        around = len(self.extents)
        self.extents[around:] = [s.extent for s in scope.chain[around:]]
        with self.code.frame(FrameKind.HARDWARE_LOOP, scope) as frame:
            self.nodes(scope.children)
        del self.extents[around:]
        self.known.pop(scope.depth, None)
        self.code.close_hardware_loop(frame, expected, trips, self.machine.name)


def _only_statement(scope: Scope) -> Leaf | None:
    """The statement that is all of an unrolled scope, without guards; None if there is no such statement."""
    node: Scope | Leaf = scope
    while isinstance(node, Scope):
        if node.guard or len(node.children) != 1 or node.mapping not in (Mapping.UNROLL, Mapping.VECTOR):
            return None
        node = node.children[0]
    return node
