"""A kernel as text: one device function per launch, and the host function that launches them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pdojo.backends.c.code import FunctionText, printable, variable
from pdojo.backends.c.loops import LoopText
from pdojo.backends.c.names import Identifiers
from pdojo.backends.c.prelude import Prelude
from pdojo.backends.common.addresses import refuse_strides
from pdojo.backends.common.placement import ALIGNMENT
from pdojo.backends.common.walk import LoopBounds, describe
from pdojo.backends.gpu.device_function import DeviceFunction, KernelState, LaunchText, grid_count, product_text
from pdojo.backends.gpu.homes import Workspace, workspace_of
from pdojo.backends.gpu.launches import holds_grid
from pdojo.backends.gpu.spelling import DeviceSpelling, Uses
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.lookups import lookups_in
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation.printer import header_lines
from pdojo.dialect.view.nest import Leaf, Nest, Node, Scope
from pdojo.errors import LoweringError

_OWN = ("thread", "total", "lane", "stream", "workspace", "pd_shared", "error")
"""Local names of the printed code that kernels must not use."""


class KernelText:
    """Device functions and host function of a kernel."""

    def __init__(self, nest: Nest, prelude: Prelude, machine: Machine) -> None:
        spelling = prelude.spelling
        assert isinstance(spelling, DeviceSpelling)
        # One more than the depth of the scopes: the lane of a warp's instruction needs a variable, too.
        variables = [variable(d) for d in range(2 + max((s.depth for s in nest.scopes), default=0))]
        intrinsics = {s.intrinsic for s in nest.scopes if s.intrinsic}
        if intrinsics:
            intrinsics |= {load.name for load in machine.matrix_loads}
        if nest.symbol in intrinsics:
            raise LoweringError("its function would have the name of an instruction that it uses")
        taken = Identifiers([*variables, *_OWN, nest.symbol, *intrinsics])
        names = {b: taken.fresh(b.names[0]) for b in nest.buffers}
        tables = {table: taken.fresh(table) for table in nest.tables}
        sizes = {size: taken.fresh(size) for size in nest.sizes}
        kernel = KernelState(nest, prelude, spelling, names, tables, sizes, taken, workspace_of(nest), machine)
        host = _Host(kernel)
        comment = "\n".join(f"// {printable(line)}" for line in header_lines(nest))
        self.nest = nest
        self.launches: Sequence[LaunchText] = host.launches
        self.text = "\n".join([comment, *(entry.text for entry in host.launches), host.text, ""])
        """The printed functions, after a comment with the kernel's declarations."""
        self.workspace: Workspace = kernel.workspace
        self.uses = Uses(
            kernel.shuffles, frozenset(kernel.copies), frozenset(kernel.helpers), frozenset(kernel.atomics)
        )


def kernel_text(nest: Nest, prelude: Prelude, machine: Machine) -> KernelText:
    """The code of a kernel for a machine's blocks, warps and instructions.

    Raises LoweringError for kernels that device code cannot express.
    """
    refuse_strides(nest, "code for GPUs")
    try:
        return KernelText(nest, prelude, machine)
    except LoweringError as error:
        raise LoweringError(f"kernel '{nest.name}': {error}") from None


class _Host(LoopText):
    """Prints the host function: launches, and loops around them."""

    hardware = "a host"

    def __init__(self, kernel: KernelState) -> None:
        self.kernel, nest, spelling = kernel, kernel.nest, kernel.spelling
        self.launches: list[LaunchText] = []
        super().__init__(FunctionText(kernel.prelude, {}, kernel.names, sizes=kernel.sizes))
        interface = [b for b in nest.buffers if b.intent is not None]
        parameters = [spelling.host_parameter(b, kernel.names[b]) for b in interface]
        parameters += kernel.size_parameters
        self.nodes(nest.children)
        begin, end = spelling.host_only[:1], spelling.host_only[1:]
        size = kernel.workspace.size_bytes
        lines = [*([] if size else ["  (void)workspace;"]), *self.code.lines]
        aligned = {kernel.names[b]: b.alignment for b in interface} | ({"workspace": ALIGNMENT} if size else {})
        text = spelling.host(nest.symbol, [*parameters, "void *workspace"], lines, aligned)
        self.text = "\n".join([*begin, *spelling.workspace(nest.symbol, size), text, *end])

    def nodes(self, nodes: Sequence[Node]) -> None:
        """Append launches and loops."""
        for node in nodes:
            is_grid = isinstance(node, Scope) and node.mapping is Mapping.GRID
            if holds_grid(node) and not is_grid:
                super().nodes([node])
            else:
                self._launch(node)

    def bounds(self, scope: Scope) -> LoopBounds:
        """The guard of a loop of the host. Raises LoweringError for indices, which are in the device's memory."""
        for found in lookups_in(scope.guard):
            raise LoweringError(
                f"{describe(scope)} is a loop of the host, and the indices '{found.table.name}' in its guard are on "
                f"the device; move the grid around it"
            )
        bounds = super().bounds(scope)
        return replace(bounds, highs=tuple(e for e in bounds.highs if not lookups_in([e])))

    def _launch(self, node: Node) -> None:
        entry = DeviceFunction(self.kernel, node, len(self.launches), dict(self.known)).entry()
        self.launches.append(entry)
        found, arguments = entry.launch, entry.arguments(self.kernel)
        blocks = product_text([grid_count(self.code, scope) for scope in found.grids])
        launched = self.kernel.spelling.launch(entry.name, blocks, found.threads, entry.shared_bytes, arguments)
        for line in launched:
            self.code.line(line)

    def statement(self, leaf: Leaf) -> None:
        """Never called: a statement outside of grids is a launch."""
        raise AssertionError(leaf)

    def vector(self, scope: Scope, leaf: Leaf, bounds: LoopBounds) -> None:
        """Never called: a vector scope outside of grids is a launch."""
        raise AssertionError(scope)
