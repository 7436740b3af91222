"""Runs the gpu form of a kernel: the threads of a block are generators that stop at barriers and shuffles.

Blocks and threads take turns in an order that a seed permutes. What a device would not forgive is an error: two threads
that touch one cell with no barrier between them, one of them writing; threads at different barriers; shuffles that not
all threads of a warp run; arrays in shared memory that overlap or do not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, func, gpu, memref, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IndexType, IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from pdojo.backends.gpu.ir.dialect import DynamicSharedMemoryOp, ShuffleOp
from pdojo.dialect.functions import byte_width, dtype_name, is_float
from pdojo.dialect.semantics.functions import apply
from pdojo.dialect.semantics.rounding import CARRIERS

Waiting: TypeAlias = gpu.BarrierOp | ShuffleOp
Steps: TypeAlias = Generator[tuple[Waiting, tuple[Any, ...]], Any, tuple[Any, ...]]
"""A thread: gives what it waits at with its value, takes what it gets, and returns what its block yields."""

_INDEX: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": lambda a, b: a // b,
    "arith.divui": lambda a, b: a // b,
    "arith.remsi": lambda a, b: a % b,
    "arith.remui": lambda a, b: a % b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.minsi": min,
    "arith.maxsi": max,
}
"""Arithmetic of indices, which are never negative where they are divided."""
_TESTS: dict[str, Callable[[int, int], bool]] = {
    "sle": lambda a, b: a <= b,
    "sge": lambda a, b: a >= b,
    "ult": lambda a, b: a < b,
}
"""Comparisons of indices."""
_PATTERN = 0x5A


class DeviceError(AssertionError):
    """A program that a device would run wrongly, or not to its end."""


@dataclass(frozen=True)
class Visit:
    """An access to a cell: which thread of which block, and how many barriers the block had passed."""

    block: int
    thread: int
    passed: int
    atomic: bool = False
    """Whether it is an atomic operation."""

    def races(self, other: Visit) -> bool:
        """Whether nothing orders the two, and one of them is no atomic operation."""
        if self.atomic and other.atomic:
            return False
        if self.block != other.block:
            return True
        return self.thread != other.thread and self.passed == other.passed


@dataclass
class Memory:
    """The elements of a memref, and who has visited them during a launch."""

    values: NDArray[Any]
    dtype: str
    is_private: bool = False
    """Whether a thread has it for itself."""
    reads: dict[tuple[int, ...], set[Visit]] = field(default_factory=dict[tuple[int, ...], set[Visit]])
    writes: dict[tuple[int, ...], set[Visit]] = field(default_factory=dict[tuple[int, ...], set[Visit]])

    @staticmethod
    def of(kind: MemRefType[Attribute]) -> Memory:
        """Memory whose elements nobody has written."""
        dtype = dtype_name(kind.element_type)
        values = np.empty(kind.get_shape(), CARRIERS[dtype])
        values.reshape(-1).view(np.uint8)[...] = _PATTERN
        if is_float(dtype):
            values[...] = np.nan
        return Memory(values, dtype)

    def visit(self, index: tuple[int, ...], visit: Visit | None, *, writing: bool) -> None:
        """Note an access; `visit` is None on the host. Raises DeviceError for a race or an index out of bounds."""
        if min(index, default=0) < 0:
            raise DeviceError(f"index {index} of {self.values.shape}")
        if visit is None or self.is_private:
            return
        for others in (self.writes, self.reads) if writing else (self.writes,):
            for other in others.get(index, ()):
                if visit.races(other):
                    raise DeviceError(f"element {index} of {self.values.shape}: {other} and {visit}")
        (self.writes if writing else self.reads).setdefault(index, set()).add(visit)

    def forget(self) -> None:
        """A launch has ended."""
        self.reads.clear()
        self.writes.clear()


@dataclass
class Shared:
    """The shared memory of a block, by first byte."""

    size: int
    arrays: dict[int, Memory] = field(default_factory=dict[int, Memory])

    def view(self, offset: int, kind: MemRefType[Attribute]) -> Memory:
        """The array at an offset."""
        if offset not in self.arrays:
            self.arrays[offset] = Memory.of(kind)
            ends = {o: o + m.values.size * byte_width(m.dtype) for o, m in self.arrays.items()}
            for (_, end), begin in zip(sorted(ends.items()), [*sorted(ends)[1:], self.size], strict=True):
                if end > begin:
                    raise DeviceError(f"arrays in shared memory: {ends} in {self.size} bytes")
        found = self.arrays[offset]
        assert found.values.shape == kind.get_shape()
        return found


@dataclass
class Team:
    """A block of a launch."""

    number: int
    threads: int
    shared: Shared
    passed: int = 0
    """Barriers."""


Prepared: TypeAlias = tuple[Operation, "Step | None", tuple[SSAValue, ...], tuple[SSAValue, ...]]
"""An operation, what it does, its operands and its results."""


class Device:
    """Runs functions of a module in gpu form."""

    def __init__(self, module: ModuleOp, *, warp: int, seed: int) -> None:
        module.verify()
        self.functions = {f.sym_name.data: f for f in module.walk() if isinstance(f, func.FuncOp)}
        self.tables = {op.sym_name.data: _table(op) for op in module.walk() if isinstance(op, memref.GlobalOp)}
        self.warp, self.random = warp, np.random.default_rng(seed)
        self.memories: list[Memory] = []
        """What launches share."""
        self._prepared: dict[Block, Sequence[Prepared]] = {}
        self.barriers = self.shuffles = 0
        """How many a block or warp has passed."""

    def prepared(self, block: Block) -> Sequence[Prepared]:
        """The operations of a block, ready to run."""
        if block not in self._prepared:
            self._prepared[block] = [(op, step_of(op), tuple(op.operands), tuple(op.results)) for op in block.ops]
        return self._prepared[block]

    def call(self, name: str, arguments: Sequence[Memory | int]) -> None:
        """Run a function on the memory of its arguments; sizes are numbers."""
        block = self.functions[name].body.block
        self.memories += [each for each in arguments if isinstance(each, Memory)]
        host = Thread(self, dict(zip(block.args, arguments, strict=True)), None, 0)
        for op, _ in host.run(block):
            raise DeviceError(f"the host waits at {op.name}")

    def launch(self, op: gpu.LaunchOp, values: dict[SSAValue, Any]) -> None:
        """Run all blocks."""
        blocks, threads = (
            prod(values[v] for v in sizes)
            for sizes in ((op.gridSizeX, op.gridSizeY, op.gridSizeZ), (op.blockSizeX, op.blockSizeY, op.blockSizeZ))
        )
        size = 0 if op.dynamicSharedMemorySize is None else int(values[op.dynamicSharedMemorySize])
        for number in self.random.permutation(blocks):
            team = Team(int(number), threads, Shared(size))
            self._run([Thread(self, dict(values), team, t).run(op.body.block) for t in range(threads)], team)
        for memory in self.memories:
            memory.forget()

    def _run(self, threads: list[Steps], team: Team) -> None:
        gifts: dict[int, Any] = dict.fromkeys(range(len(threads)))
        waiting: dict[int, tuple[Waiting, Any]] = {}
        while gifts:
            for number in map(int, self.random.permutation(list(gifts))):
                try:
                    waiting[number] = threads[number].send(gifts[number])
                except StopIteration:
                    waiting.pop(number, None)
            gifts = self._shuffled(waiting, len(threads))
            if not gifts and waiting:
                places = {op for op, _ in waiting.values()}
                if len(waiting) < len(threads) or len(places) > 1 or isinstance(places.pop(), ShuffleOp):
                    raise DeviceError(f"threads {sorted(waiting)} wait, the others do not come")
                team.passed += 1
                self.barriers += 1
                gifts = dict.fromkeys(waiting)

    def _shuffled(self, waiting: dict[int, tuple[Waiting, Any]], threads: int) -> dict[int, Any]:
        """What the threads get whose whole warps wait at one shuffle."""
        gifts: dict[int, Any] = {}
        for first in range(0, threads, self.warp):
            lanes = range(first, min(first + self.warp, threads))
            ops = {waiting[lane][0] if lane in waiting else None for lane in lanes}
            op = ops.pop()
            if ops or not isinstance(op, ShuffleOp):
                continue
            for lane in lanes:
                _, (_, offset, width) = waiting[lane]
                other = (lane - first) ^ offset
                if width != len(lanes) or other >= width:
                    raise DeviceError(f"a shuffle of {width} threads in a warp of {len(lanes)}")
                gifts[lane] = waiting[first + other][1][0]
            self.shuffles += 1
        return gifts


@dataclass
class Thread:
    """A thread of a block, or the host."""

    device: Device
    values: dict[SSAValue, Any]
    team: Team | None
    number: int

    def run(self, block: Block) -> Steps:
        """Run a block; gives what it yields."""
        values = self.values
        for op, step, operands, results in self.device.prepared(block):
            given = [values[o] for o in operands]
            if step is not None:
                found = step(self, given)
            elif isinstance(op, scf.ForOp):
                found = yield from self._loop(op, given)
            elif isinstance(op, scf.IfOp):
                region = op.true_region if given[0] else op.false_region
                found = (yield from self.run(region.block)) if region.blocks else ()
            elif isinstance(op, scf.YieldOp):
                return tuple(given)
            elif isinstance(op, ShuffleOp):
                found = (yield op, tuple(given)), True
            else:
                assert isinstance(op, gpu.BarrierOp)
                yield op, ()
                continue
            values.update(zip(results, found, strict=True))
        return ()

    def _loop(self, op: scf.ForOp, operands: list[Any]) -> Steps:
        lower, upper, step, *carried = operands
        block = op.body.block
        for value in range(lower, upper, step):
            self.values.update(zip(block.args, (value, *carried), strict=True))
            carried = yield from self.run(block)
        return tuple(carried)

    def visit(self, memory: Memory, index: list[int], *, writing: bool, atomic: bool = False) -> tuple[int, ...]:
        """Note an access; the index."""
        place = tuple(index)
        team = self.team
        visit = None if team is None else Visit(team.number, self.number, team.passed, atomic=atomic)
        memory.visit(place, visit, writing=writing)
        return place


Step: TypeAlias = Callable[[Thread, list[Any]], tuple[Any, ...]]
"""What an operation does that waits for nobody: its results."""


def step_of(op: Operation) -> Step | None:
    """What an operation does; None if it has regions that threads run, waits, or ends a block."""
    if isinstance(op, scf.ForOp | scf.IfOp | scf.YieldOp | gpu.BarrierOp | ShuffleOp):
        return None
    if type(op) in _STEPS:
        return _STEPS[type(op)](op)
    function = scalar(op)
    return lambda thread, operands: (function(operands),)


def _load(op: Operation) -> Step:
    def load(thread: Thread, operands: list[Any]) -> tuple[Any, ...]:
        memory, *index = operands
        return (memory.values[thread.visit(memory, index, writing=False)],)

    return load


def _store(op: Operation) -> Step:
    def store(thread: Thread, operands: list[Any]) -> tuple[Any, ...]:
        value, memory, *index = operands
        memory.values[thread.visit(memory, index, writing=True)] = value
        return ()

    return store


def _atomic(op: Operation) -> Step:
    assert isinstance(op, memref.AtomicRMWOp)
    function = {0: "arith.addf", 1: "arith.addi"}[op.kind.value.data]

    def add(thread: Thread, operands: list[Any]) -> tuple[Any, ...]:
        value, memory, *index = operands
        place = thread.visit(memory, index, writing=True, atomic=True)
        old = memory.values[place]
        memory.values[place] = apply(function, [old, value], [memory.dtype] * 2, memory.dtype)
        return (old,)

    return add


def _allocate(op: Operation) -> Step:
    kind = op.results[0].type
    assert isa(kind, MemRefType[Attribute])

    def allocate(thread: Thread, operands: list[Any]) -> tuple[Any, ...]:
        memory = Memory.of(kind)
        memory.is_private = thread.team is not None
        if thread.team is None:
            thread.device.memories.append(memory)
        return (memory,)

    return allocate


def _table(op: memref.GlobalOp) -> Memory:
    """A constant, which all threads may read."""
    assert isinstance(op.initial_value, DenseIntOrFPElementsAttr)
    return Memory(np.array(op.initial_value.get_values(), np.int64), "i64")


def _get_global(op: Operation) -> Step:
    assert isinstance(op, memref.GetGlobalOp)
    name = op.name_.root_reference.data

    def get(thread: Thread, operands: list[Any]) -> tuple[Any, ...]:
        return (thread.device.tables[name],)

    return get


def _launch(op: Operation) -> Step:
    assert isinstance(op, gpu.LaunchOp)

    def launch(thread: Thread, operands: list[Any]) -> tuple[Any, ...]:
        assert thread.team is None
        thread.device.launch(op, thread.values)
        return ()

    return launch


def _call(op: Operation) -> Step:
    assert isinstance(op, func.CallOp)

    def call(thread: Thread, operands: list[Any]) -> tuple[Any, ...]:
        thread.device.call(op.callee.string_value(), operands)
        return ()

    return call


def _view(op: Operation) -> Step:
    kind = op.results[0].type
    assert isa(kind, MemRefType[Attribute])

    def view(thread: Thread, operands: list[Any]) -> tuple[Any, ...]:
        assert thread.team is not None
        return (thread.team.shared.view(operands[1], kind),)

    return view


def _of_team(read: Callable[[Thread, Team], tuple[Any, ...]]) -> Callable[[Operation], Step]:
    def step(thread: Thread, operands: list[Any]) -> tuple[Any, ...]:
        assert thread.team is not None
        return read(thread, thread.team)

    return lambda op: step


def _nothing(op: Operation) -> Step:
    return lambda thread, operands: ()


_STEPS: dict[type[Operation], Callable[[Operation], Step]] = {
    memref.LoadOp: _load,
    memref.StoreOp: _store,
    memref.AtomicRMWOp: _atomic,
    memref.AllocaOp: _allocate,
    memref.ViewOp: _view,
    memref.GetGlobalOp: _get_global,
    gpu.AllocOp: _allocate,
    gpu.LaunchOp: _launch,
    gpu.ThreadIdOp: _of_team(lambda thread, team: (thread.number,)),
    gpu.BlockIdOp: _of_team(lambda thread, team: (team.number,)),
    DynamicSharedMemoryOp: _of_team(lambda thread, team: (team.shared,)),
    func.CallOp: _call,
    gpu.DeallocOp: _nothing,
    gpu.TerminatorOp: _nothing,
    func.ReturnOp: _nothing,
}


def scalar(op: Operation) -> Callable[[list[Any]], Any]:
    """An operation of arith or math: what pdojo's function of the same name computes."""
    if isinstance(op, arith.ConstantOp):
        constant = _constant(op)
        return lambda operands: constant
    kind = op.results[0].type
    if isinstance(kind, IndexType) and op.name in _INDEX:
        index = _INDEX[op.name]
        return lambda operands: index(operands[0], operands[1])
    name = op.name
    if isinstance(op, arith.CmpiOp | arith.CmpfOp):
        table = arith.CMPI_COMPARISON_OPERATIONS if isinstance(op, arith.CmpiOp) else arith.CMPF_COMPARISON_OPERATIONS
        name = f"{name}.{table[op.predicate.value.data]}"
        if isinstance(op.operands[0].type, IndexType):
            test = _TESTS[name.rpartition(".")[2]]
            return lambda operands: test(operands[0], operands[1])
    if isinstance(op, arith.IndexCastOp):
        if isinstance(kind, IndexType):
            return lambda operands: int(operands[0])
        name = "arith.trunci"
    dtypes = ["i64" if isinstance(o.type, IndexType) else dtype_name(o.type) for o in op.operands]
    carriers, result = [CARRIERS[t] for t in dtypes], dtype_name(kind)

    def compute(operands: list[Any]) -> Any:
        carried = [np.asarray(v).astype(c) for v, c in zip(operands, carriers, strict=True)]
        return apply(name, carried, dtypes, result)[()]

    return compute


def _constant(op: arith.ConstantOp) -> Any:
    value, kind = op.value, op.result.type
    assert isinstance(value, IntegerAttr | FloatAttr)
    if isinstance(kind, IndexType):
        return value.value.data
    return np.asarray(value.value.data).astype(CARRIERS[dtype_name(kind)])[()]
