"""A kernel as functions of the llvm dialect: a main function, and one per parallel scope for the OpenMP runtime to
call.

The kernel's function takes a pointer per interface array, the sizes and given strides (i64), a pointer to the
workspace, and the number of threads (i32). The workspace holds the shared heap buffers, then one part per thread for
the private ones; callers find its sizes in attributes of the function.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    IntegerAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from pdojo.backends.common.placement import ALIGNMENT, MemoryClass, MemoryPlan, Placement, plan_memory
from pdojo.backends.llvm.code import POINTER, FunctionCode, memory_type, table_symbol
from pdojo.backends.llvm.control import CodeBudget, NestCode
from pdojo.backends.llvm.idle import IdleLanes
from pdojo.backends.llvm.memory import Reach
from pdojo.backends.llvm.ops import SelectOp, StoreFenceOp
from pdojo.backends.llvm.sharing import LOOP_FUNCTIONS, ThreadShare
from pdojo.backends.llvm.tensor import TensorUnit
from pdojo.backends.llvm.x86 import Features
from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.table import Table
from pdojo.dialect.view.nest import Buffer, Nest, Scope
from pdojo.dialect.view.nodes import extent_of, run_time_extent
from pdojo.dialect.view.storage import has_open_strides, numbers_of
from pdojo.errors import LoweringError

SHARED_BYTES, THREAD_BYTES = "pdojo.shared_bytes", "pdojo.thread_bytes"
"""Attributes of a kernel's function: bytes of shared workspace, and bytes per thread."""
RUNTIME: dict[str, llvm.LLVMFunctionType] = {
    "GOMP_parallel": llvm.LLVMFunctionType([POINTER, POINTER, i32, i32]),
    "omp_get_num_threads": llvm.LLVMFunctionType([], i32),
    "omp_get_thread_num": llvm.LLVMFunctionType([], i32),
    **LOOP_FUNCTIONS,
}
"""Functions of the OpenMP runtime that lowered parallel scopes call."""
ALONE = 10_000
"""Fewest statement instances, vectors counted as one, that threads share if their number depends on sizes.

Starting threads takes about 10 us (`pdojo.passes.cpu.cost_model.START`), and half of the instances take that long.
"""


def runtime_declarations() -> list[llvm.FuncOp]:
    """Declarations of the OpenMP runtime."""
    return [llvm.FuncOp(n, t, llvm.LinkageAttr("external")) for n, t in RUNTIME.items()]


@dataclass(frozen=True)
class Lowered:
    """The functions of a lowered kernel."""

    functions: list[llvm.FuncOp]
    """Functions of parallel scopes, then the kernel's main function."""
    tables: list[llvm.GlobalOp]
    """The kernel's tables."""
    parallel: bool
    """Whether the functions call the OpenMP runtime."""
    used: dict[str, Intrinsic]
    """The intrinsics that the kernel calls, keyed by name."""


def lower_kernel(
    nest: Nest, features: Features = frozenset(), intrinsics: MappingABC[str, Intrinsic] | None = None
) -> Lowered:
    """The functions of a kernel for a processor with these features and intrinsics.

    Raises LoweringError for mappings and memories that a CPU lacks, and for hints and locations that it cannot follow.
    """
    try:
        tensor = TensorUnit(nest, intrinsics or {}, features)
        lowering = _KernelLowering(nest, plan_memory(nest), tensor, features)
        own = lowering.lower()
    except LoweringError as error:
        raise LoweringError(f"kernel '{nest.name}': {error}") from None
    tables = [_global(nest.symbol, table) for table in nest.tables.values()]
    return Lowered([*lowering.threads, own], tables, bool(lowering.threads), tensor.used)


def _global(kernel: str, table: Table) -> llvm.GlobalOp:
    count = len(table.entries)
    entries = DenseIntOrFPElementsAttr.from_list(TensorType(i64, [count]), table.entries)
    kind, linkage = llvm.LLVMArrayType(count, i64), llvm.LinkageAttr("internal")
    return llvm.GlobalOp(kind, table_symbol(kernel, table), linkage, constant=True, value=entries)


@dataclass(eq=False)
class _KernelLowering:
    nest: Nest
    plan: MemoryPlan
    tensor: TensorUnit
    features: Features = frozenset()
    threads: list[llvm.FuncOp] = field(default_factory=list[llvm.FuncOp])
    budget: CodeBudget = field(default_factory=CodeBudget)

    @cached_property
    def idle(self) -> IdleLanes:
        """The elements that only idle lanes access."""
        return IdleLanes(self.nest)

    def lower(self) -> llvm.FuncOp:
        """Build the kernel's main function."""
        interface = [b for b in self.nest.buffers if b.op is None]
        sizes = numbers_of(self.nest)
        types = [*([POINTER] * len(interface)), *([i64] * len(sizes)), POINTER, i32]
        code = FunctionCode(self.nest.symbol, types, self.features)
        *given, self.workspace, self.thread_count = code.arguments
        arrays, numbers = given[: len(interface)], given[len(interface) :]
        for name, value in zip(sizes, numbers, strict=True):
            value.name_hint, code.sizes[name] = name, value
        for value, buffer in zip(arrays, interface, strict=True):
            value.name_hint = buffer.names[0]
            if buffer.names[0] in self.nest.index_arrays:
                code.indices[buffer.names[0]] = value
        self.workspace.name_hint, self.thread_count.name_hint = "workspace", "threads"
        reach = Reach(code, self.plan, self.idle)
        for buffer, placement in self.plan.placements.items():
            self._settle(reach, buffer, placement)
        NestCode(reach, self._parallel, self.budget, self.tensor).nodes(self.nest.children)
        function = _finish(reach, "external")
        function.properties["arg_attrs"] = self._facts(interface)
        function.attributes[SHARED_BYTES] = IntegerAttr(self.plan.shared_bytes, 64)
        function.attributes[THREAD_BYTES] = IntegerAttr(self.plan.thread_bytes, 64)
        return function

    def _facts(self, interface: Sequence[Buffer]) -> ArrayAttr[DictionaryAttr]:
        """The callers' guarantees for each argument: no aliasing, alignment, size."""
        facts: list[DictionaryAttr] = []
        for buffer in interface:
            placement = self.plan.placements[buffer]
            known = 0 if has_open_strides(buffer) else placement.layout.size_bytes
            facts.append(_pointer_facts(placement.alignment, known))
        facts += [DictionaryAttr({})] * len(numbers_of(self.nest))
        facts.append(_pointer_facts(ALIGNMENT, 0))
        facts.append(DictionaryAttr({}))
        return ArrayAttr(facts)

    def _settle(self, reach: Reach, buffer: Buffer, placement: Placement) -> None:
        """Set the address of a buffer in the kernel's main function."""
        code = reach.code
        root = code.levels[0]
        match placement.home:
            case MemoryClass.ARGUMENT:
                reach.bases[buffer] = code.arguments[placement.position]
            case MemoryClass.WORKSPACE:
                reach.bases[buffer] = root.add(_displaced(code, code.arguments[-2], placement.position))
            case MemoryClass.THREAD:
                # Code outside of parallel scopes uses the part of the first thread.
                offset = self.plan.shared_bytes + placement.position
                reach.bases[buffer] = root.add(_displaced(code, code.arguments[-2], offset))
            case MemoryClass.FRAME:
                if None in placement.owners:
                    _frame(reach, buffer, placement)

    # Parallel scopes

    def _parallel(self, outer: NestCode, scope: Scope, low: SSAValue, high: SSAValue) -> None:
        """Append a parallel scope: each thread of the team calls a function that runs its share of the iterations."""
        code = outer.reach.code
        buffers = self._captured(outer.reach, scope)
        variables = sorted(_used(scope) & code.variables.keys())
        values = [outer.reach.bases[b] for b in buffers]
        values += [self.workspace] if self.plan.thread_bytes else []
        values += [low, high, *(code.variables[v][0] for v in variables)]
        values += [*code.indices.values(), *code.sizes.values()]
        threads, alone = self._team(code, scope, low, high)
        values += [] if alone is None else [alone]
        name = f"{self.nest.symbol}.parallel{len(self.threads)}"
        placeholder = llvm.FuncOp(name, llvm.LLVMFunctionType([POINTER]))
        self.threads.append(placeholder)
        position = len(self.threads) - 1
        self.threads[position] = self._thread_function(name, outer, scope, buffers, variables)
        _call_team(code, name, values, threads, alone)

    def _team(
        self, code: FunctionCode, scope: Scope, low: SSAValue, high: SSAValue
    ) -> tuple[SSAValue, SSAValue | None]:
        """The number of threads, and 1 if it is one thread, else 0; None if no extent depends on sizes.

        A team has no more threads than iterations, and one thread if the sizes leave little work.
        """
        if not _depends_on_sizes(scope):
            return self.thread_count, None
        count = code.emit(llvm.SubOp(high, low))
        most = code.intrinsic("llvm.smin", [count, code.emit(llvm.SExtOp(self.thread_count, i64))], i64)
        work = code.emit(llvm.MulOp(count, _work(code, scope)))
        one = code.integer(1)
        team = code.emit(SelectOp(code.compare("slt", work, code.integer(ALONE)), one, most))
        alone = code.emit(SelectOp(code.compare("eq", team, one), one, code.integer(0)))
        return code.emit(llvm.TruncOp(team, i32)), alone

    def _captured(self, reach: Reach, scope: Scope) -> list[Buffer]:
        """The buffers whose addresses the threads receive."""
        used = dict.fromkeys(a.array.buffer for leaf in scope.leaves for a in leaf.accesses)
        return [
            b
            for b in used
            if b in reach.bases and self.plan.placements[b].home is not MemoryClass.THREAD and not self._owned(b, scope)
        ]

    def _owned(self, buffer: Buffer, scope: Scope) -> bool:
        placement = self.plan.placements[buffer]
        return placement.home is MemoryClass.FRAME and scope in placement.owners

    def _thread_function(
        self, name: str, outer: NestCode, scope: Scope, buffers: list[Buffer], variables: list[int]
    ) -> llvm.FuncOp:
        code = FunctionCode(name, [POINTER], self.features)
        code.kernel = self.nest.symbol
        code.known = dict(outer.reach.code.known)
        code.extents = outer.reach.code.extents[:-1]
        reach = Reach(code, self.plan, self.idle)
        slot = _Slots(code)
        for buffer in buffers:
            reach.bases[buffer] = slot.next(POINTER)
        workspace = slot.next(POINTER) if self.plan.thread_bytes else None
        low, high = slot.next(i64), slot.next(i64)
        for variable in variables:
            code.variables[variable] = (slot.next(i64), 0)
        code.indices = {name: slot.next(POINTER) for name in self.nest.index_arrays}
        code.sizes = {name: slot.next(i64) for name in outer.reach.code.sizes}
        alone = slot.next(i64) if _depends_on_sizes(scope) else None
        share = ThreadShare(code, low, high, alone)
        if workspace is not None:
            self._settle_thread(reach, scope, workspace, share.thread)
        for buffer, placement in self.plan.placements.items():
            if self._owned(buffer, scope):
                _frame(reach, buffer, placement)
        share.append(NestCode(reach, outer.parallel, self.budget, self.tensor), scope)
        return _finish(reach, "internal")

    def _settle_thread(self, reach: Reach, scope: Scope, workspace: SSAValue, thread: SSAValue) -> None:
        """Set the addresses of the buffers with a copy per thread in the workspace."""
        code = reach.code
        root = code.levels[0]
        offset = root.add(llvm.MulOp(thread, code.integer(self.plan.thread_bytes)))
        part = root.add(llvm.GEPOp.from_mixed_indices(workspace, [offset], memory_type("i8")))
        used = {a.array.buffer for leaf in scope.leaves for a in leaf.accesses}
        for buffer, placement in self.plan.placements.items():
            if placement.home is MemoryClass.THREAD and buffer in used:
                reach.bases[buffer] = root.add(_displaced(code, part, self.plan.shared_bytes + placement.position))


@dataclass(eq=False)
class _Slots:
    """The values that a thread function's argument points to, 8 bytes each."""

    code: FunctionCode
    count: int = 0

    def next(self, kind: Attribute) -> SSAValue:
        root = self.code.levels[0]
        address = self.code.arguments[0]
        if self.count:
            address = root.add(llvm.GEPOp.from_mixed_indices(address, [self.count], i64))
        self.count += 1
        return root.add(llvm.LoadOp(address, kind, 8))


def _depends_on_sizes(scope: Scope) -> bool:
    """True if the number of statement instances in a scope depends on sizes."""
    return any(run_time_extent(each) is not None for each in scope.scopes)


def _work(code: FunctionCode, scope: Scope) -> SSAValue:
    """The statement instances of an iteration, where a vector counts as one and guards exclude none."""
    total = code.integer(0)
    for child in scope.children:
        work = _work(code, child) if isinstance(child, Scope) else code.integer(1)
        if isinstance(child, Scope) and child.mapping is not Mapping.VECTOR:
            work = code.emit(llvm.MulOp(work, code.index(extent_of(child))))
        total = code.emit(llvm.AddOp(total, work))
    return total


def _call_team(
    code: FunctionCode, name: str, values: Sequence[SSAValue], threads: SSAValue, alone: SSAValue | None
) -> None:
    """Call a function of threads with the values; directly if `alone` is 1, since starting a team takes a while."""
    root = code.levels[0]
    record = root.add(llvm.AllocaOp(code.integer(len(values)), i64, 8))
    for position, value in enumerate(values):
        address = record
        if position:
            address = code.emit(llvm.GEPOp.from_mixed_indices(record, [position], i64))
        code.do(llvm.StoreOp(value, address, 8))
    if alone is not None:
        after = code.skip_unless(code.compare("ne", alone, code.integer(0)))
        code.do(llvm.CallOp(name, record))
        code.rejoin(after)
    together = None if alone is None else code.skip_unless(code.compare("eq", alone, code.integer(0)))
    function = code.emit(llvm.AddressOfOp(SymbolRefAttr(name), POINTER))
    code.do(llvm.CallOp("GOMP_parallel", function, record, threads, code.integer(0, 32)))
    if together is not None:
        code.rejoin(together)


def _frame(reach: Reach, buffer: Buffer, placement: Placement) -> None:
    """Allocate a buffer in the frame of the function under construction.

    The buffer is zeroed if idle lanes compute with it: on some processors, operations on subnormals take 150 cycles.
    """
    code, root, elements = reach.code, reach.code.levels[0], reach.framed_elements(buffer)
    kind = llvm.LLVMArrayType(elements, memory_type(buffer.dtype))
    base = root.add(llvm.AllocaOp(code.integer(1), kind, placement.alignment))
    if reach.idle.touch(buffer):
        size = code.integer(elements * placement.layout.element_bytes)
        root.do(llvm.CallIntrinsicOp("llvm.memset.p0.i64", [base, code.integer(0, 8), size, code.integer(0, 1)], []))
    reach.bases[buffer] = base
    reach.framed.add(buffer)


def _displaced(code: FunctionCode, base: SSAValue, offset: int) -> llvm.GEPOp:
    """The address `offset` bytes after a pointer; immediate offsets are signed 32-bit integers."""
    index = offset if offset < 1 << 31 else code.integer(offset)
    return llvm.GEPOp.from_mixed_indices(base, [index], memory_type("i8"))


def _pointer_facts(alignment: int, size: int) -> DictionaryAttr:
    facts: dict[str, Attribute] = {
        "llvm.noalias": UnitAttr(),
        "llvm.noundef": UnitAttr(),
        "llvm.align": IntegerAttr(alignment, 64),
    }
    if size:
        facts["llvm.nonnull"] = UnitAttr()
        facts["llvm.dereferenceable"] = IntegerAttr(size, 64)
    return DictionaryAttr(facts)


def _used(scope: Scope) -> set[int]:
    """The depths of the induction variables that the code of a scope reads."""
    expressions: list[Expr] = []
    pending: list[Scope] = [scope]
    while pending:
        current = pending.pop()
        expressions.extend(current.guard)
        pending.extend(c for c in current.children if isinstance(c, Scope))
    for leaf in scope.leaves:
        expressions.extend(leaf.expressions)
    return {v for e in expressions for v in e.variables()}


def _finish(reach: Reach, linkage: str) -> llvm.FuncOp:
    """End the function with a return, after a fence if it made non-temporal stores."""
    code = reach.code
    if reach.fence:
        code.do(StoreFenceOp())
    code.do(llvm.ReturnOp())
    kinds = [a.type for a in code.arguments]
    return llvm.FuncOp(code.name, llvm.LLVMFunctionType(kinds), llvm.LinkageAttr(linkage), body=code.region)
