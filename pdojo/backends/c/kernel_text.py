"""A kernel as a C function: scopes as loops with pragmas, buffers as pointers and local arrays.

The function has the interface of the object files (docs/llvm.md): a pointer per interface array, sizes, given strides,
the workspace, the number of threads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pdojo.backends.c.code import FunctionText, printable, variable
from pdojo.backends.c.loops import LoopText
from pdojo.backends.c.names import Identifiers
from pdojo.backends.c.prelude import Prelude
from pdojo.backends.c.statement import lanes
from pdojo.backends.common.placement import ALIGNMENT, MemoryClass, Placement, plan_memory
from pdojo.backends.common.walk import LoopBounds, describe
from pdojo.dialect.attributes import Mapping as ScopeMapping
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.notation.printer import header_lines, tree_lines
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.frames import parallel_ancestor
from pdojo.dialect.rules.tensor import IntrinsicMatch, match
from pdojo.dialect.view.nest import Buffer, Leaf, Nest, Scope
from pdojo.dialect.view.storage import numbers_of
from pdojo.errors import LoweringError

BACKEND = "c"
_OWN = ("lane", "factor", "own")
"""Local names of the printed code that kernels must not use."""


def kernel_text(nest: Nest, prelude: Prelude, intrinsics: Mapping[str, Intrinsic]) -> str:
    """The function of a kernel; adds the helpers that it uses to `prelude`.

    Raises LoweringError for mappings and memories that a CPU lacks, and for instructions without a C template.
    """
    if nest.symbol in intrinsics:
        raise LoweringError(f"kernel '{nest.name}' has the name of an instruction that it uses; rename it")
    try:
        return _KernelText(nest, prelude, intrinsics).text()
    except LoweringError as error:
        raise LoweringError(f"kernel '{nest.name}': {error}") from None


class _KernelText(LoopText):
    def __init__(self, nest: Nest, prelude: Prelude, intrinsics: Mapping[str, Intrinsic]) -> None:
        self.nest, self.prelude, self.intrinsics, self.spelling = nest, prelude, intrinsics, prelude.spelling
        self.plan = plan_memory(nest)
        variables = [variable(d) for d in range(1 + max((s.depth for s in nest.scopes), default=0))]
        names = Identifiers([*variables, *_OWN, nest.symbol, *intrinsics])
        code = FunctionText(prelude, self.plan.placements, {b: names.fresh(b.names[0]) for b in nest.buffers})
        code.tables = {table: names.fresh(table) for table in nest.tables}
        code.indices = {b.names[0]: code.names[b] for b in nest.buffers if b.names[0] in nest.index_arrays}
        code.sizes = {name: names.fresh(name.replace(".", "_")) for name in numbers_of(nest)}
        super().__init__(code)

    def text(self) -> str:
        """The comment with the kernel's declarations, and the function."""
        interface = [b for b in self.nest.buffers if b.intent is not None]
        parameters = [self.spelling.parameter(b, self.code.names[b]) for b in interface]
        self._declare(None)
        for node in self.nest.children:
            self.code.line("")
            for line in tree_lines([node]):
                self.code.line(f"// {printable(line)}")
            self.nodes([node])
        self._fence()
        sizes = [*self.code.sizes.values()]
        idle = self._idle([*(self.code.names[b] for b in interface), *sizes, "workspace", "threads"])
        parameters += [f"int64_t {size}" for size in sizes]
        parameters += [f"void *{self.spelling.restrict} workspace", "int32_t threads"]
        head = self.spelling.function(self.nest.symbol, parameters)
        comment = "\n".join(f"// {printable(line)}" for line in header_lines(self.nest))
        return "\n".join([comment, f"{head} {{", *self.code.table_lines(), *idle, *self.code.lines, "}", ""])

    def _idle(self, parameters: Sequence[str]) -> list[str]:
        """A line that casts unused parameters to void; a parameter that only a pragma names counts as unused."""
        code = (text for text in self.code.lines if "//" not in text and "#pragma" not in text)
        words = {w for text in code for w in re.findall(r"\w+", text)}
        idle = [name for name in parameters if name not in words]
        return [f"  {' '.join(f'(void){name};' for name in idle)}"] if idle else []

    # Memory

    def _declare(self, scope: Scope | None) -> None:
        """Declare the buffers that each iteration of a parallel scope has (None: the buffers of the function)."""
        own = False
        for buffer, placement in self.plan.placements.items():
            if not self._used(buffer, scope, private=placement.home is MemoryClass.THREAD):
                continue
            match placement.home:
                case MemoryClass.FRAME if scope in placement.owners:
                    self.code.line(self._array(buffer, placement))
                    if not any(a.array.buffer is buffer for leaf in self.nest.leaves for a in leaf.reads):
                        self.code.line(f"(void){self.code.names[buffer]};")
                case MemoryClass.WORKSPACE if scope is None:
                    self.code.line(self._pointer(buffer, "(char *)workspace", placement.position))
                case MemoryClass.THREAD if scope is None:
                    offset = self.plan.shared_bytes + placement.position
                    self.code.line(self._pointer(buffer, "(char *)workspace", offset))
                case MemoryClass.THREAD:
                    if not own:
                        self._own_memory()
                    own = True
                    self.code.line(self._pointer(buffer, "own", placement.position))
                case _:
                    pass

    def _used(self, buffer: Buffer, scope: Scope | None, *, private: bool) -> bool:
        """Whether any statement uses a buffer whose declaration is in a parallel scope (None: in the function)."""
        leaves = self.nest.leaves if scope is None else scope.leaves
        if scope is None and private:
            leaves = [leaf for leaf in leaves if parallel_ancestor(leaf) is None]
        return any(buffer in self._touched(leaf) for leaf in leaves)

    def _touched(self, leaf: Leaf) -> set[Buffer]:
        """The buffers in the code of a statement: an instruction's operands, but not its temporaries."""
        for scope in leaf.chain:
            if scope.mapping is ScopeMapping.TENSOR:
                return {o.array.buffer for o in self._match(scope).operands}
        return {a.array.buffer for a in leaf.accesses}

    def _own_memory(self) -> None:
        plan = self.plan
        self.prelude.threads = True
        shared = f" + {plan.shared_bytes}" if plan.shared_bytes else ""
        part = f"{plan.thread_bytes} * {self.spelling.thread}"
        self.code.line(f"char *own = (char *)workspace{shared} + {part};")

    def _array(self, buffer: Buffer, placement: Placement) -> str:
        layout = placement.layout
        alignment = ALIGNMENT if layout.size_bytes >= 16 else None
        return self.spelling.array(buffer.dtype, self.code.names[buffer], layout.size, alignment)

    def _pointer(self, buffer: Buffer, base: str, offset: int) -> str:
        where = f"({base} + {offset})" if offset else base if base == "own" else "workspace"
        return self.spelling.pointer(buffer.dtype, self.code.names[buffer], where)

    # Scopes

    def vector(self, scope: Scope, leaf: Leaf, bounds: LoopBounds) -> None:
        """Append a statement on vectors, or a loop over the lanes."""
        lanes(self.code, scope, leaf, lambda body: self.loop_around(scope, bounds, body))

    def other(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append a parallel scope, or the call of a tensor instruction."""
        match scope.mapping:
            case ScopeMapping.PARALLEL:
                self._parallel(scope, bounds)
            case ScopeMapping.TENSOR:
                self._call(scope)
            case _:
                super().other(scope, bounds)

    def _parallel(self, scope: Scope, bounds: LoopBounds) -> None:
        self.code.line(self.spelling.parallel())

        def body() -> None:
            before, self.code.streams = self.code.streams, False
            self._declare(scope)
            self.nodes(scope.children)
            self._fence()
            self.code.streams = before

        self.loop_around(scope, bounds, body)

    def _fence(self) -> None:
        """Order the thread's non-temporal stores before later accesses."""
        if self.code.streams:
            self.code.line(self.spelling.fence)

    def _call(self, scope: Scope) -> None:
        """Append the call of the instruction that computes a nest."""
        found = self._match(scope)
        intrinsic = found.intrinsic
        self.prelude.template(intrinsic.name, intrinsic.template(BACKEND))
        pointers = [f"&{self.code.names[o.array.buffer]}[{self.code.index(o.base)}]" for o in found.operands]
        strides = [str(stride) for o in found.operands for stride in o.strides]
        self.code.line(f"{intrinsic.name}({', '.join([*pointers, *strides])});")

    def _match(self, scope: Scope) -> IntrinsicMatch:
        where = f"{describe(scope)} is mapped to '{scope.intrinsic}'"
        intrinsic = self.intrinsics.get(scope.intrinsic)
        if intrinsic is None:
            listed = ", ".join(self.intrinsics) or "none"
            raise LoweringError(f"{where}, which the machine does not have; it has {listed}; take the mapping back")
        try:
            intrinsic.template(BACKEND)
        except LoweringError as error:
            raise LoweringError(f"{where}, {error}") from None
        found = match(self.nest, scope, intrinsic)
        if isinstance(found, Reason):
            raise LoweringError(f"{describe(scope)} is not what '{intrinsic.name}' computes: {found}")
        return found
