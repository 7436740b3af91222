"""Tensor scopes: a nest is unified with the meaning of an intrinsic to prove that the instruction computes it.

The instruction works on memory, so accesses are compared by address: an operand is a base address, which may depend on
the scopes around the nest, and strides, which the intrinsic prescribes. If every access of the nest goes to the cell
that the meaning names, running the nest on memory is running the meaning on the operands. The instruction does not
write temporaries; no statement outside may read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from operator import mul
from typing import TypeAlias

from pdojo.dialect.affine import Expr, const, var
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.flow.program import Program
from pdojo.dialect.intrinsic import FREE, Intrinsic
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.pattern import IntrinsicPattern, pair, pattern_of, same_form
from pdojo.dialect.machines.shared_operand import shared_layout
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.messages import describe_access, describe_scope
from pdojo.dialect.view.nest import Access, Array, Constant, Leaf, Nest, Node, Scope
from pdojo.dialect.view.storage import physical_index, physical_shape


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of an instruction, in a program."""

    array: Array
    base: Expr
    """Distance of the operand's first element from the start of the buffer (of the thread's copy), in elements."""
    strides: tuple[int, ...]
    """Strides of the dimensions with free stride, in order."""


@dataclass(frozen=True, slots=True)
class IntrinsicMatch:
    """A nest that an intrinsic computes; the operands in order of the meaning's arguments."""

    intrinsic: Intrinsic
    operands: tuple[Operand, ...]


Place: TypeAlias = tuple[Access, Access, Leaf]
"""An access of the meaning, the matching access of the program, and the program's statement."""


def match(nest: Nest, site: Scope, intrinsic: Intrinsic) -> IntrinsicMatch | Reason:
    """Unify the nest at `site` with the meaning of `intrinsic`; a Reason if that fails."""
    pattern = pattern_of(intrinsic)
    problem = _shape_problem(pattern, site)
    if problem is not None:
        return problem
    pairs = pair(pattern.root, site)
    bound: dict[str, Array] = {}
    places: list[Place] = []
    for one, other in pairs:
        if isinstance(one, Leaf) and isinstance(other, Leaf):
            problem = _statement_problem(one, other)
            if problem is not None:
                return problem
            places += [(*accesses, other) for accesses in _accesses(one, other)]
    problem = _binding_problem(pattern, places, bound) or _temporary_problem(nest, pattern, site, places, bound)
    if problem is not None:
        return problem
    operands: list[Operand] = []
    unify = _spread_operand if intrinsic.threads else _operand
    for name in pattern.operands:
        found = unify(nest, pattern, site, [p for p in places if p[0].array.name == name])
        if isinstance(found, Reason):
            return found
        operands.append(found)
    return IntrinsicMatch(intrinsic, tuple(operands))


def _shape_problem(pattern: IntrinsicPattern, site: Scope) -> Reason | None:
    """The reason why the nest's form differs (extents, places of statements, guards, mappings inside); or None."""
    if not same_form(pattern.root, site):
        return Reason(f"the nest has another form than the instruction's, {_form(pattern.root)}")
    for scope in _scopes(site):
        if scope.guard:
            return Reason(f"{describe_scope(scope)} has a guard")
        if scope is not site and scope.mapping is not Mapping.SEQUENTIAL:
            return Reason(f"{describe_scope(scope)} inside is mapped")
    return None


def _form(node: Node) -> str:
    """`16 (4 (u s acc))`: extents, and the names of written arrays."""
    if isinstance(node, Leaf):
        return node.output.array.name
    return f"{node.extent} ({' '.join(map(_form, node.children))})"


def _scopes(node: Node) -> Iterator[Scope]:
    if isinstance(node, Scope):
        yield node
        for child in node.children:
            yield from _scopes(child)


def _statement_problem(pattern: Leaf, leaf: Leaf) -> Reason | None:
    """The reason why a statement differs in function, accumulation, constants or types; None if it does not."""
    written = describe_access(leaf.output)
    if leaf.asynchronous:
        return Reason(f"the copy to {written} is asynchronous")
    if (pattern.function, len(pattern.inputs)) != (leaf.function, len(leaf.inputs)):
        return Reason(f"the statement that writes {written} computes another function than the instruction")
    if (pattern.accumulate, pattern.contracted) != (leaf.accumulate, leaf.contracted):
        return Reason(f"the statement that writes {written} accumulates otherwise than the instruction")
    for one, other in zip(pattern.inputs, leaf.inputs, strict=True):
        if not isinstance(one, Access) and (not isinstance(one, Constant) or one != other):
            return Reason(f"an input of the statement that writes {written} is not the constant of the instruction")
        if isinstance(one, Access) and not isinstance(other, Access):
            return Reason(f"an input of the statement that writes {written} is no array")
    for one, other in _accesses(pattern, leaf):
        if one.array.dtype != other.array.dtype:
            return Reason(f"{describe_access(other)} is {other.array.dtype}; the instruction takes {one.array.dtype}")
        if other.hints.data:
            return Reason(f"{describe_access(other)} has hints, which one instruction cannot honour; clear them first")
    return None


def _accesses(pattern: Leaf, leaf: Leaf) -> list[tuple[Access, Access]]:
    """The accesses of two statements of equal form, side by side."""
    pairs = [(pattern.output, leaf.output)]
    for one, other in zip(pattern.inputs, leaf.inputs, strict=True):
        if isinstance(one, Access) and isinstance(other, Access):
            pairs.append((one, other))
    return pairs


def _binding_problem(pattern: IntrinsicPattern, places: list[Place], bound: dict[str, Array]) -> Reason | None:
    """Check that each array of the meaning stands for one array, and that written operands share no memory."""
    for one, other, _ in places:
        before = bound.setdefault(one.array.name, other.array)
        if before is not other.array:
            return Reason(f"operand '{one.array.name}' would be both '{before.name}' and '{other.array.name}'")
    written = {leaf.output.array.name for leaf in pattern.nest.leaves}
    names = list(pattern.operands)
    for position, name in enumerate(names):
        for second in names[position + 1 :]:
            if bound[name].buffer is bound[second].buffer and written & {name, second}:
                return Reason(f"operands '{name}' and '{second}' would share the memory of '{bound[name].name}'")
    return None


def _temporary_problem(
    nest: Nest, pattern: IntrinsicPattern, site: Scope, places: list[Place], bound: dict[str, Array]
) -> Reason | None:
    """Check that temporaries keep values only within one body, as in the meaning, and are not read elsewhere."""
    for name, array in bound.items():
        if name in pattern.operands:
            continue
        if array.intent is not None:
            return Reason(f"'{array.name}' is an interface array, but '{name}' is a temporary of the instruction")
        if any(other is not name and bound[other] is array for other in bound):
            return Reason(f"'{array.name}' would be '{name}' and another array of the instruction")
        indices = {other.index for one, other, _ in places if one.array.name == name}
        if len(indices) > 1:
            return Reason(f"'{array.name}' is written and read at different indices")
        for reader in nest.readers[array.name]:
            if site not in reader.chain and not _own_value(nest, reader, array, site):
                return Reason(
                    f"'{array.name}' is read outside of the nest, but '{name}' is a temporary of the instruction"
                )
    return None


def _own_value(nest: Nest, reader: Leaf, array: Array, site: Scope) -> bool:
    """Whether every value of the array that a statement reads was written in its body, after the nest's writes.

    For each read at index e, a plain write at e stands before it in the same body, and the nest is not between the two.
    So the last write of that element before the read is in the body, whatever the nest wrote.
    """
    inside = [leaf.order for leaf in site.leaves]
    return all(
        any(
            writer.parent is reader.parent
            and writer.accumulate is None
            and writer.output.index == access.index
            and writer.order < reader.order
            and not any(writer.order < order < reader.order for order in inside)
            for writer in nest.writers[array.name]
        )
        for access in reader.accesses
        if access.array is array and (access is not reader.output or reader.accumulate is not None)
    )


def _operand(nest: Nest, pattern: IntrinsicPattern, site: Scope, places: list[Place]) -> Operand | Reason:
    """The base address and the free strides of one operand, from all its accesses."""
    found: Operand | None = None
    for one, other, leaf in places:
        if other.array.buffer.swizzles:
            return Reason(f"'{other.array.name}' is swizzled, but operands have strides in memory")
        if other.array.buffer.strides:
            return Reason(f"'{other.array.name}' is strided, but operands are dense")
        if other.array.buffer.op is None and other.array.buffer.sized:
            return Reason(f"the strides of '{other.array.name}' depend on sizes, but those of operands are constant")
        extents = leaf.extents
        address = _address(nest, other, leaf)
        local = {d: const(0) for d in range(site.depth, leaf.depth)}
        start = address.substitute(local, extents)
        wanted, free = pattern.address(one)
        shift = {d: var(d + site.depth) for d in range(len(leaf.chain) - site.depth)}
        expected = (wanted - wanted.constant).substitute(shift, extents)
        strides: list[int] = []
        for depth in sorted(free, key=lambda d: free[d]):
            strides.append(address.coefficient(depth + site.depth))
            expected = expected + var(depth + site.depth) * strides[-1]
        if address - start != expected:
            return Reason(
                f"{describe_access(other)} does not lie in memory as operand '{one.array.name}' of the "
                f"instruction must: its elements are {_spell(address - start)} apart, not {_spell(expected)}"
            )
        operand = Operand(other.array, start - wanted.constant, tuple(strides))
        if found is not None and found != operand:
            return Reason(f"accesses to '{other.array.name}' begin at different addresses")
        found = operand
        if pattern.writes(one.array) and _overlapping(pattern, one.array, strides):
            return Reason(f"elements of '{other.array.name}' that the instruction writes would share a cell")
    assert found is not None, "every operand of an instruction is used"
    return found


def _spread_operand(nest: Nest, pattern: IntrinsicPattern, site: Scope, places: list[Place]) -> Operand | Reason:
    """An operand of a warp instruction; each thread finds its elements by the program's index.

    All accesses have one index, with no scope that the meaning's index lacks. Elements that the instruction writes are
    different cells.
    """
    one, other, leaf = places[0]
    wanted = {d + site.depth for e in one.index for d in e.variables()}
    for _, access, _ in places:
        if access.index != other.index:
            return Reason(f"accesses to '{other.array.name}' have two indices, {_spell_index(other)} and another one")
    physical = physical_index(other, leaf.chain)
    for depth in range(site.depth, leaf.depth):
        if depth not in wanted and any(e.uses(depth) for e in physical):
            return Reason(f"{describe_access(other)} changes with {{{depth}}}, but operand '{one.array.name}' does not")
    if pattern.writes(one.array) and _one_cell(physical, leaf, sorted(wanted)):
        return Reason(f"elements of '{other.array.name}' that the instruction writes would share a cell")
    if pattern.shared and pattern.writes(one.array) and other.array.buffer.memory is Memory.STACK:
        return Reason(
            f"the instruction runs on while its threads go on, so '{other.array.name}' must be in registers or in "
            "memory of the block, not on the stack"
        )
    if one.array.name in pattern.shared:
        depths = [d + site.depth for e in one.index for d in e.variables()]
        found = shared_layout(nest, other, leaf, depths, pattern.shared[one.array.name])
        if isinstance(found, Reason):
            return found
    return Operand(other.array, const(0), ())


def _one_cell(index: Sequence[Expr], leaf: Leaf, depths: Sequence[int]) -> bool:
    """Whether two iterations of the scopes at `depths`, in one iteration of all others, may touch one cell."""
    inside = [e.substitute({d: const(0) for d in range(depths[0])}, leaf.extents) for e in index]
    if any((e - i).variables() & set(depths) for e, i in zip(index, inside, strict=True)):
        return True  # unknown: a division mixes scopes inside and around
    cells: set[tuple[int, ...]] = set()
    for values in product(*(range(leaf.extents[d]) for d in depths)):
        point = [0] * leaf.depth
        for depth, value in zip(depths, values, strict=True):
            point[depth] = value
        cells.add(tuple(e.evaluate(point) for e in inside))
    return len(cells) < prod(leaf.extents[d] for d in depths)


def _spell_index(access: Access) -> str:
    return f"[{','.join(map(_spell, access.index))}]"


def _overlapping(pattern: IntrinsicPattern, operand: Array, free: list[int]) -> bool:
    """Whether two elements of an operand lie at one address."""
    given = iter(free)
    strides = [next(given) if s == FREE else s for s in pattern.strides[operand.name]]
    places = {sum(map(mul, strides, index)) for index in product(*map(range, operand.shape))}
    return len(places) < prod(operand.shape)


def _address(nest: Nest, access: Access, leaf: Leaf) -> Expr:
    """Distance of the accessed element from the start of its buffer, in elements."""
    total, step = const(0), 1
    shape = physical_shape(nest, access.array.buffer)
    for index, extent in zip(reversed(physical_index(access, leaf.chain)), reversed(shape), strict=True):
        total = total + index * step
        step *= extent
    return total


def _spell(expression: Expr) -> str:
    return expression.render("{{{}}}".format)


def available(machine: Machine) -> dict[str, Intrinsic]:
    """The intrinsics that a machine can run, keyed by name."""
    return {i.name: i for i in machine.intrinsics if i.available(machine.features)}


def tensor_problems(program: Program) -> Iterator[Reason]:
    """Tensor scopes whose nest is not the meaning of their instruction, on the program's machine."""
    known = available(program.machine)
    for scope in program.nest.scopes:
        if scope.mapping is not Mapping.TENSOR:
            continue
        if scope.intrinsic not in known:
            yield Reason(f"{program.machine.name} has no intrinsic '{scope.intrinsic}' for {describe_scope(scope)}")
            continue
        intrinsic = known[scope.intrinsic]
        if intrinsic.threads and (misplaced := _misplaced(scope)) is not None:
            yield misplaced
        found = match(program.nest, scope, intrinsic)
        if isinstance(found, Reason):
            yield Reason(f"{describe_scope(scope)} would not be what the instruction computes: {found}; unmap it first")


_AROUND = (Mapping.SEQUENTIAL, Mapping.UNROLL, Mapping.BLOCK)


def _misplaced(scope: Scope) -> Reason | None:
    """The reason why a warp cannot compute a scope at its place; None if it can.

    A warp belongs to a block, and its threads are the innermost thread scopes. Different warps accumulate into
    different cells.
    """
    where = f"a warp computes {describe_scope(scope)}"
    grids = [s.depth for s in scope.chain if s.mapping is Mapping.GRID]
    if not grids:
        return Reason(f"{where}, which must be inside a grid scope (:g)")
    inside = scope.chain[grids[-1] + 1 : -1]
    other = next((s for s in inside if s.mapping not in _AROUND), None)
    if other is not None:
        return Reason(f"{where}, which cannot be inside {describe_scope(other)}")
    for around in inside:
        if around.mapping is not Mapping.BLOCK or around.extent == 1:
            continue
        for leaf in scope.leaves:
            if leaf.accumulate is not None and not any(e.uses(around.depth) for e in leaf.output.index):
                return Reason(
                    f"{where}, but the warps of {describe_scope(around)} would accumulate into one cell; "
                    "split_reduction gives each a partial result"
                )
    return None
