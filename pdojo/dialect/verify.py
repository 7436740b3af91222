"""Verification of a kernel: structure, names, types, bounds and placement of mappings (cheap, after every move).

Messages name the array, the scope and the position in the tree; the parsers add the source position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingABC
from math import prod
from typing import TYPE_CHECKING, NoReturn

from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineMapAttr, IndexType, NoneAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineConstantExpr, AffineConstraintKind, AffineExpr
from xdsl.utils.exceptions import VerifyException

from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import IndexValueAttr, Intent, Mapping, Memory
from pdojo.dialect.functions import accumulates, check_types, is_element_type
from pdojo.dialect.machine import is_machine_name
from pdojo.dialect.names import name_problem
from pdojo.dialect.narrowing import is_memref
from pdojo.dialect.nest import Access, Leaf, Nest, Node, Scope, nest_of
from pdojo.dialect.ops import MOST_SCOPES, BufferOp, KernelOp, OpOp, ScopeOp, Swizzle
from pdojo.dialect.reason import Reason
from pdojo.dialect.storage import granule_numbers
from pdojo.dialect.syntax import MOST_PARTS, names_of
from pdojo.dialect.verify_mappings import describe_scope as describe_scope
from pdojo.dialect.verify_mappings import misplaced_mapping

if TYPE_CHECKING:
    from pdojo.dialect.analysis.dependent import Dependence


LARGEST = 1 << 62
"""Bound of extents and of the numbers in index expressions, exclusive."""


class KernelVerifyException(VerifyException):
    """A verification error with the operation it concerns, and perhaps one of its accesses and a remedy."""

    def __init__(self, message: str, operation: Operation, access: int | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.operation = operation
        self.access = access
        self.hint = hint


def verify_kernel(kernel: KernelOp) -> None:
    """Raise `KernelVerifyException` with one precise message if the kernel is malformed."""
    _verify_interface(kernel)
    _verify_body(kernel)
    try:
        nest = nest_of(kernel)
    except ValueError as error:
        _fail(kernel, str(error))
    _verify_tree(nest)


def verify_nest(nest: Nest) -> None:
    """`verify_kernel` for a kernel whose view exists already."""
    _verify_interface(nest.kernel)
    _verify_body(nest.kernel)
    _verify_tree(nest)


def _verify_tree(nest: Nest) -> None:
    _verify_ids(nest)
    for scope in nest.scopes:
        _verify_scope(scope)
    for leaf in nest.leaves:
        _verify_leaf(leaf)


def _fail(operation: Operation, message: str) -> NoReturn:
    raise KernelVerifyException(message, operation)


def _verify_interface(kernel: KernelOp) -> None:
    problem = name_problem(kernel.sym_name.data)
    if problem is not None:
        _fail(kernel, f"kernel: {problem}")
    if kernel.machine is not None and not is_machine_name(kernel.machine.data):
        _fail(
            kernel,
            f"machine {kernel.machine.data[:60]!r}: a kernel names a machine that is known; give a machine file to the "
            f"tool (--machine FILE), and its name to the kernel",
        )
    arguments = kernel.body.block.args
    names = names_of(kernel.arg_names)
    if not len(arguments) == len(names) == len(kernel.arg_intents.data):
        _fail(kernel, f"kernel has {len(arguments)} arguments but {len(names)} names")
    if kernel.arg_alignments is not None and len(kernel.arg_alignments.data) != len(names):
        _fail(kernel, f"kernel has {len(names)} arguments but {len(kernel.arg_alignments.data)} alignments")
    for name, argument in zip(names, arguments, strict=True):
        _verify_array_type(kernel, name, argument)
    _verify_unique(kernel, names)


def _verify_unique(kernel: KernelOp, interface: Iterable[str]) -> None:
    seen: set[str] = set()
    operations: list[Operation] = [kernel, *kernel.guests(), *kernel.buffers()]
    for operation in operations:
        for name in names_of(operation.array_names) if isinstance(operation, BufferOp) else interface:
            if name in seen:
                _fail(operation, f"array '{name}' is declared twice")
            problem = name_problem(name)
            if problem is not None:
                _fail(operation, f"array: {problem}")
            seen.add(name)


def _verify_array_type(operation: Operation, name: str, array: SSAValue) -> None:
    if not is_memref(array.type):
        _fail(operation, f"array '{name}' must be a memref, not {array.type}")
    if not is_element_type(array.type.element_type):
        _fail(
            operation,
            f"array '{name}' has element type {array.type.element_type}; known are f64 f32 f16 bf16 i64 i32 i16 i8 i1",
        )
    shape = array.type.get_shape()
    if any(extent < 1 for extent in shape):
        spelled = ", ".join("?" if extent == DYNAMIC_INDEX else str(extent) for extent in shape)
        _fail(operation, f"array '{name}' needs static extents of at least 1, not [{spelled}]")
    if prod(shape) * 8 >= 1 << 63:
        _fail(operation, f"array '{name}' of {list(shape)} elements is larger than any memory")
    if not isinstance(array.type.layout, NoneAttr):
        _fail(
            operation,
            f"array '{name}' has the layout {array.type.layout}, which pdojo does not know: arrays are dense, in "
            f"row-major order",
        )
    if not isinstance(array.type.memory_space, NoneAttr):
        _fail(operation, f"array '{name}' has the memory space {array.type.memory_space}; write where a buffer lies")


def _verify_body(kernel: KernelOp) -> None:
    declared = True
    position = -1
    for operation in kernel.body.block.ops:
        if isinstance(operation, BufferOp):
            if not declared:
                _fail(operation, "buffers are declared before the first scope or op")
            _verify_buffer(operation)
            if operation.host is not None:
                position = _verify_guests(kernel, operation, position)
            else:
                position = len(kernel.arg_intents.data)
        else:
            declared = False
            _verify_structure(operation)
    if declared:
        _fail(kernel, "kernel has no statements")


def _verify_buffer(buffer: BufferOp) -> None:
    names = names_of(buffer.array_names)
    if not names or len(names) != len(buffer.arrays):
        _fail(buffer, f"buffer has {len(names)} names for {len(buffer.arrays)} arrays")
    for name, array in zip(names, buffer.arrays, strict=True):
        _verify_array_type(buffer, name, array)
        if array.type != buffer.array_type:
            _fail(buffer, f"array '{name}' has type {array.type}; arrays of one buffer have one type")
    if buffer.reuse is not None and len(buffer.reuse.data) != len(buffer.array_type.get_shape()):
        _fail(buffer, f"buffer '{names[0]}' has {len(buffer.reuse.data)} numbers of slots for its dimensions")
    _verify_swizzles(buffer, names[0])
    for extent, slots in zip(buffer.array_type.get_shape(), buffer.slots, strict=True):
        if slots < 0 or (slots > 1 and slots >= extent):
            known = "a circular buffer has at least 2, and fewer than there are indices"
            _fail(buffer, f"buffer '{names[0]}' has {slots} slots for {extent} indices; {known}")


def _verify_swizzles(buffer: BufferOp, name: str) -> None:
    swizzles, shape, slots = buffer.swizzles, buffer.array_type.get_shape(), buffer.slots
    for dimension, swizzle in swizzles.items():
        problem = swizzle_problem(shape, slots, dimension, swizzle)
        if problem is None and swizzle.by in swizzles:
            problem = f"dimension {swizzle.by} is swizzled itself"
        if problem is None and buffer.memory.data is Memory.REGISTER:
            problem = "registers have no addresses"
        if problem is None and buffer.host is not None:
            problem = "its memory is the caller's"
        if problem is not None:
            _fail(buffer, f"dimension {dimension} of buffer '{name}' cannot be swizzled: {problem}")


def swizzle_problem(shape: Sequence[int], slots: Sequence[int], dimension: int, swizzle: Swizzle) -> Reason | None:
    """Why a dimension cannot be swizzled so; None if it can."""
    by, granule = swizzle
    if not 0 <= by < len(shape) or by == dimension:
        return Reason("'by' must be another dimension")
    if slots[dimension] or slots[by]:
        return Reason(f"dimensions {dimension} and {by} must be whole, not reused or folded")
    granules = shape[dimension] // max(granule, 1)
    if granule < 1 or shape[dimension] % granule or granules < 2 or granules & (granules - 1):
        return Reason(f"'granule' must divide the extent {shape[dimension]} into 2, 4, 8 ... granules")
    return None


def _verify_guests(kernel: KernelOp, guests: BufferOp, behind: int) -> int:
    """Check temporaries in an interface array: one declaration per array, in order, before all other buffers."""
    name = names_of(guests.array_names)[0]
    arguments = list(kernel.body.block.args)
    position = next((k for k, argument in enumerate(arguments) if argument is guests.host), None)
    if position is None or arguments[position].type != guests.array_type:
        _fail(guests, f"array '{name}' can live in an interface array of its type only, not in another value")
    if kernel.arg_intents.data[position].data is Intent.IN:
        _fail(guests, f"array '{name}' cannot live in '{names_of(kernel.arg_names)[position]}', an input of the kernel")
    if guests.memory.data is not Memory.HEAP or guests.reuse is not None:
        _fail(guests, f"array '{name}' lives in the caller's memory, which is on the heap and not reused")
    if position <= behind:
        _fail(guests, "arrays in interface arrays are declared first, in the order of these, one buffer for each")
    return position


def _verify_structure(operation: Operation, depth: int = 0) -> None:
    """Check that scopes are neither empty nor too deep, hold scopes and statements, and maps use variables in scope."""
    match operation:
        case ScopeOp():
            count, block = operation.count, operation.body.block
            if not 1 <= count < LARGEST:
                _fail(operation, f"a scope needs at least one iteration and fewer than 2^62, not {count}")
            if depth == MOST_SCOPES:
                _fail(operation, f"scopes are nested more than {MOST_SCOPES} deep")
            if block.is_empty:
                _fail(operation, f"scope of extent {count} is empty")
            if [a.type for a in block.args] != [IndexType()]:
                _fail(operation, "a scope has one induction variable of type index")
            _verify_guard(operation)
            for child in block.ops:
                _verify_structure(child, depth + 1)
        case OpOp():
            _verify_maps(operation)
        case _:
            _fail(operation, f"'{operation.name}' cannot be part of a pdojo.kernel")


def _verify_guard(scope: ScopeOp) -> None:
    variables = scope.guard_ivs
    if scope.guard is not None:
        if scope.guard.data.num_dims != len(variables) + 1 or scope.guard.data.num_symbols:
            _fail(scope, "the guard's dimensions must be its operands and the own variable, and it has no symbols")
        for constraint in scope.guard.data.constraints:
            if constraint.kind is not AffineConstraintKind.ge or constraint.rhs != AffineExpr.constant(0):
                _fail(scope, "a guard is a conjunction of 'expression >= 0'")
            _verify_expression(scope, constraint.lhs)
    _verify_variables(scope, variables)


def _verify_variables(operation: Operation, variables: Iterable[SSAValue]) -> None:
    enclosing: set[SSAValue] = set()
    around = operation.parent_op()
    while isinstance(around, ScopeOp):
        enclosing.update(around.body.block.args)
        around = around.parent_op()
    if not enclosing.issuperset(variables):
        _fail(operation, "index expressions use induction variables of enclosing scopes only")


def _verify_maps(op: OpOp) -> None:
    inputs, hints = op.inputs.data, op.hints
    output, read, ivs = op.operand_groups
    _verify_variables(op, ivs)
    maps = [op.output_map, *(m for m in inputs if isinstance(m, AffineMapAttr))]
    arrays = [output, *read]
    if len(maps) != len(arrays):
        _fail(op, f"op has {len(maps) - 1} accesses among its inputs but {len(arrays) - 1} arrays")
    if hints is not None and len(hints.data) != len(arrays):
        _fail(op, f"op has hints for {len(hints.data)} of its {len(arrays)} accesses")
    values = [i.map for i in inputs if isinstance(i, IndexValueAttr)]
    for index_map in (*maps, *values):
        if index_map.data.num_dims != len(ivs) or index_map.data.num_symbols:
            _fail(op, f"{index_map} must have one dimension per induction variable of the op and no symbols")
        for expression in index_map.data.results:
            _verify_expression(op, expression)
    for array, index_map in zip(arrays, maps, strict=True):
        assert is_memref(array.type)
        rank = array.type.get_num_dims()
        if len(index_map.data.results) != rank:
            _fail(op, f"access has {len(index_map.data.results)} indices for an array of {rank} dimensions")


def _verify_expression(operation: Operation, expression: AffineExpr) -> None:
    """Check that an expression is small enough for recursion, and its numbers for the integers of generated code."""
    parts, seen = [expression], 0
    while parts:
        part = parts.pop()
        seen += 1
        if isinstance(part, AffineBinaryOpExpr):
            parts += (part.lhs, part.rhs)
        if seen > 2 * MOST_PARTS:
            _fail(operation, f"an index expression has more than {MOST_PARTS} parts")
        if isinstance(part, AffineConstantExpr) and abs(part.value) >= LARGEST:
            _fail(operation, f"{part.value} is too large for an index expression, which stays below 2^62")


def _verify_ids(nest: Nest) -> None:
    seen: set[str] = set()
    for node in (*nest.scopes, *nest.leaves):
        if node.id and node.id in seen:
            _fail(node.op, f"identifier '{node.id}' is used twice")
        seen.add(node.id)


def _verify_scope(scope: Scope) -> None:
    problem = misplaced_mapping(scope)
    if problem is not None:
        _fail(scope.op, problem.text)


def describe_access(access: Access) -> str:
    """`x[{0},{1}*16+{2}]` for messages."""
    return f"{access.array.name}[{','.join(e.render('{{{}}}'.format) for e in access.index)}]"


def _verify_leaf(leaf: Leaf) -> None:
    if leaf.output.array.intent is Intent.IN:
        _fail(leaf.op, f"array '{leaf.output.array.name}' is an input of the kernel and cannot be written")
    dtype = leaf.output.array.dtype
    wrong = check_types(
        leaf.function, [i.array.dtype if isinstance(i, Access) else i.dtype for i in leaf.inputs], dtype
    )
    if wrong is not None:
        _fail(leaf.op, f"{wrong} in the op that writes {describe_access(leaf.output)}")
    if leaf.accumulate is not None and not accumulates(leaf.accumulate, dtype):
        _fail(leaf.op, f"'{leaf.accumulate}' does not accumulate into {dtype} array '{leaf.output.array.name}'")
    if leaf.contracted and (leaf.accumulate, leaf.function) != ("arith.addf", "arith.mulf"):
        _fail(leaf.op, "only 'fma=' of a product rounds once")
    if leaf.asynchronous and (problem := async_problem(leaf)) is not None:
        _fail(leaf.op, f"'async=' of {describe_access(leaf.output)}: {problem}")
    for access in leaf.accesses:
        for dimension, expression in enumerate(access.index):
            _verify_bounds(leaf, access, dimension, expression)
        _verify_lanes(leaf, access)
    _verify_independent(leaf)


def _verify_independent(leaf: Leaf) -> None:
    """Check that no statement depends on another iteration of itself; only statements that read their array can."""
    if all(access.array is not leaf.output.array for access in leaf.reads):
        return
    from pdojo.dialect.analysis.dependent import dependent_iteration

    found = dependent_iteration(leaf)
    if found is not None:
        raise KernelVerifyException(
            f"dependent iteration is not supported: the statement reads '{leaf.output.array.name}' where another "
            f"iteration writes it ({describe_dependence(leaf, found)})",
            leaf.op,
            found.access,
            "accumulate with += *= max= ..., or write the result to another array",
        )


def describe_dependence(leaf: Leaf, found: Dependence) -> str:
    """`write of z[{0}+1] at iteration (0) and read of z[{0}] at iteration (1)` for messages."""
    written, read = (f"({', '.join(map(str, values))})" for values in (found.written, found.read))
    access = describe_access(leaf.accesses[found.access])
    return f"write of {describe_access(leaf.output)} at iteration {written} and read of {access} at iteration {read}"


def _verify_lanes(leaf: Leaf, access: Access) -> None:
    """Check that no vector runs through slots of a folded dimension or splits granules of a swizzled one."""
    for scope in leaf.chain:
        if scope.mapping is Mapping.VECTOR:
            for problem in (folded_lanes(access, scope, access.array.buffer.reuse), swizzled_lanes(access, scope)):
                if problem is not None:
                    _fail(leaf.op, problem.text)


def folded_lanes(access: Access, scope: Scope, slots: Sequence[int]) -> Reason | None:
    """Why the access cannot be a vector access over `scope` under `slots`; None if it can."""
    if any(count > 1 and e.uses(scope.depth) for e, count in zip(access.index, slots, strict=True)):
        return Reason(f"{describe_access(access)} runs through a folded dimension over {describe_scope(scope)}")
    return None


def swizzled_lanes(access: Access, scope: Scope, swizzles: MappingABC[int, Swizzle] | None = None) -> Reason | None:
    """Why the access cannot be a vector access over `scope` under `swizzles` (None: the buffer's); None if it can."""
    extents = [s.extent for s in scope.chain]
    buffer = access.array.buffer
    for dimension, swizzle in (buffer.swizzles if swizzles is None else swizzles).items():
        granule, by = granule_numbers(access.index, buffer.shape, dimension, swizzle, extents)
        if granule.uses(scope.depth) or by.uses(scope.depth):
            return Reason(f"{describe_access(access)} runs through granules of a swizzle over {describe_scope(scope)}")
    return None


def async_problem(leaf: Leaf) -> Reason | None:
    """Why a statement cannot be an asynchronous copy on any machine; None if it can."""
    (source, *others) = leaf.inputs
    plain = leaf.function is None and leaf.accumulate is None and not others
    if not plain or not isinstance(source, Access):
        return Reason("only plain copies of an array run on their own")
    memories = source.array.buffer.memory, leaf.output.array.buffer.memory
    if memories != (Memory.HEAP, Memory.SHARED):
        return Reason(
            f"it must copy from heap to shared memory, not from {memories[0].value} to {memories[1].value} memory"
        )
    if not any(s.mapping is Mapping.GRID for s in leaf.chain):
        return Reason("only blocks of a grid (a scope ':g' around it) have copies that run on their own")
    return None


def index_bounds(leaf: Leaf, expression: Expr, extent: int) -> tuple[int, int]:
    """Least and greatest value of an index over the statement's domain; exact if the box alone leaves `extent`.

    A statement that never runs is never out of bounds.
    """
    low, high = expression.bounds(leaf.extents)
    if (low >= 0 and high < extent) or (expression.is_linear and not leaf.guards):
        return low, high
    from pdojo.dialect.analysis.integer_sets import bounds_over_domain

    found = bounds_over_domain(expression, leaf.extents, leaf.guards)
    return (0, extent - 1) if found is None else found


def _verify_bounds(leaf: Leaf, access: Access, dimension: int, expression: Expr) -> None:
    extent = access.array.shape[dimension]
    low, high = index_bounds(leaf, expression, extent)
    if low < 0 or high >= extent:
        _fail(
            leaf.op,
            f"access {describe_access(access)} is out of bounds: dimension {dimension} of '{access.array.name}' has "
            f"extent {extent}, the index runs from {low} to {high}",
        )


def node_path(node: Node) -> tuple[int, ...]:
    """Positions from the root to the node."""
    return (*(node_path(node.parent) if node.parent else ()), node.position)


def relative_paths(leaves: Sequence[Leaf]) -> list[tuple[int, ...]]:
    """Positions from the root, counted only among siblings that are or contain one of the statements."""
    paths = [node_path(leaf) for leaf in leaves]
    siblings: dict[tuple[int, ...], list[int]] = {}
    for prefix, position in sorted({(path[:k], path[k]) for path in paths for k in range(len(path))}):
        siblings.setdefault(prefix, []).append(position)
    return [tuple(siblings[path[:k]].index(path[k]) for k in range(len(path))) for path in paths]
