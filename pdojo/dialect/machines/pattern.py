"""The meaning of an intrinsic as a pattern that nests are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pdojo.dialect.affine import Expr, const, var
from pdojo.dialect.attributes import Mapping as ScopeMapping
from pdojo.dialect.intrinsic import FREE, Intrinsic, Stride
from pdojo.dialect.machines.fragment import Fragment, fragment
from pdojo.dialect.machines.shared_operand import Atom, atom_of
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Access, Array, Index, Leaf, Nest, Node, Scope
from pdojo.errors import NotationError, UsageError


@dataclass(frozen=True, eq=False)
class IntrinsicPattern:
    """The meaning of an intrinsic, ready to be compared with nests."""

    nest: Nest
    root: Scope
    operands: dict[str, Array]
    strides: dict[str, tuple[Stride, ...]]
    fragments: dict[str, Fragment]
    """Per operand in the registers of whole warps, how the threads hold it; empty for other instructions."""
    shared: dict[str, Atom]
    """Per operand that the unit itself reads from shared memory, how rows lie there."""

    def writes(self, operand: Array) -> bool:
        """Whether the instruction writes an operand."""
        return bool(self.nest.writers[operand.name])

    def address(self, access: Access) -> tuple[Expr, dict[int, int]]:
        """The distance in elements from the operand's first element, without free strides; the scopes of free strides.

        The scopes are depths, each with the dimension whose free stride it runs along.
        """
        total = const(0)
        free: dict[int, int] = {}
        for dimension, (index, stride) in enumerate(zip(access.index, self.strides[access.array.name], strict=True)):
            if stride == FREE:
                (depth,) = index.variables()
                free[depth] = dimension
            else:
                total = total + index * stride
        return total, free


def pattern_of(intrinsic: Intrinsic) -> IntrinsicPattern:
    """The meaning as a pattern. Raises UsageError if the meaning is not one."""
    given = (
        tuple(sorted(intrinsic.strides.items())),
        intrinsic.threads,
        tuple(sorted(intrinsic.fragments.items())),
        tuple(sorted(intrinsic.shared.items())),
    )
    return _pattern(intrinsic.name, intrinsic.meaning, *given)


@lru_cache(maxsize=256)
def _pattern(
    name: str,
    meaning: str,
    strides: tuple[tuple[str, tuple[Stride, ...]], ...],
    threads: int,
    fragments: tuple[tuple[str, str], ...],
    shared: tuple[tuple[str, tuple[int, ...]], ...],
) -> IntrinsicPattern:
    try:
        kernels = parse_notation(meaning, f"meaning of '{name}'")
    except NotationError as error:
        raise UsageError(f"'meaning' is no kernel: {error}") from None
    if [k.sym_name.data for k in kernels] != [name]:
        raise UsageError(f"'meaning' must be one kernel with the name '{name}'")
    nest = nest_of(kernels[0])
    root = nest.children[0]
    if len(nest.children) != 1 or not isinstance(root, Scope):
        raise UsageError("'meaning' must be one nest: one scope around everything")
    for scope in nest.scopes:
        if scope.mapping is not ScopeMapping.SEQUENTIAL or scope.guard:
            raise UsageError(f"in 'meaning', the scope of extent {scope.extent} has a mapping or a guard; remove it")
    operands = {n: a for n, a in nest.arrays.items() if a.intent is not None}
    given = dict(strides)
    distances = {n: given.pop(n, _dense(a)) for n, a in operands.items()}
    if given:
        raise UsageError(f"strides are given for '{min(given)}', which is no operand: {', '.join(operands)}")
    atoms = _atoms(nest, operands, threads, dict(shared))
    spread = {n: a for n, a in operands.items() if n not in atoms}
    held = _fragments(spread, threads, dict(fragments))
    pattern = IntrinsicPattern(nest, root, operands, distances, held, atoms)
    _check_operands(pattern)
    _check_temporaries(nest)
    if threads:
        _check_warp(pattern, dict(strides))
    return pattern


def _atoms(nest: Nest, operands: dict[str, Array], threads: int, given: dict[str, tuple[int, ...]]) -> dict[str, Atom]:
    """The atoms of the operands that the unit reads from shared memory: matrices that it does not write."""
    found: dict[str, Atom] = {}
    for name, numbers in given.items():
        if name not in operands:
            raise UsageError(f"'shared' has '{name}', which is no operand: {', '.join(operands)}")
        if not threads or nest.writers[name] or len(operands[name].shape) != 2:
            raise UsageError(f"operand '{name}' of 'shared' must be a matrix that an instruction of whole warps reads")
        try:
            found[name] = atom_of(numbers)
        except UsageError as error:
            raise UsageError(f"operand '{name}' of 'shared': {error}") from None
    return found


def _fragments(operands: dict[str, Array], threads: int, texts: dict[str, str]) -> dict[str, Fragment]:
    """The fragments of an instruction of a whole warp: one for each operand."""
    if texts and not threads:
        raise UsageError("'fragments' are for the instructions of a warp, whose number of threads 'threads' must give")
    for name in texts:
        if name not in operands:
            raise UsageError(
                f"a fragment is given for '{name}', which is no operand in registers: {', '.join(operands)}"
            )
    found: dict[str, Fragment] = {}
    for name, array in operands.items() if threads else ():
        if name not in texts:
            raise UsageError(f"operand '{name}' needs a fragment, as {threads} threads share it")
        try:
            found[name] = fragment(texts[name], array.shape, threads)
        except UsageError as error:
            raise UsageError(f"fragment of '{name}': {error}") from None
    return found


def _check_warp(pattern: IntrinsicPattern, strides: dict[str, tuple[Stride, ...]]) -> None:
    """Check that each operand has one index, and that each of its dimensions has a scope of its own."""
    if strides:
        raise UsageError("'strides' do not apply to a warp, whose threads load their elements one by one")
    for name, array in pattern.operands.items():
        indices = {a.index for leaf in pattern.nest.leaves for a in leaf.accesses if a.array is array}
        if len(indices) > 1:
            raise UsageError(f"operand '{name}' must be used at one index, so that each thread has its elements")
        (index,) = indices
        if len(set(index)) < len(index) or any(e != var(d) for e in index for d in e.variables() or (-1,)):
            raise UsageError(f"each dimension of operand '{name}' must be indexed by a scope of its own")


def _dense(array: Array) -> tuple[Stride, ...]:
    strides: list[Stride] = []
    step = 1
    for extent in reversed(array.shape):
        strides.insert(0, step)
        step *= extent
    return tuple(strides)


def _check_operands(pattern: IntrinsicPattern) -> None:
    for name, strides in pattern.strides.items():
        if len(strides) != len(pattern.operands[name].shape):
            raise UsageError(f"operand '{name}' needs a stride for each of its dimensions, not {len(strides)}")
        if not any(a.array.name == name for leaf in pattern.nest.leaves for a in leaf.accesses):
            raise UsageError(f"operand '{name}' is not used")
    for leaf in pattern.nest.leaves:
        if any(isinstance(i, Index) for i in leaf.inputs):
            raise UsageError("'meaning' must not use an iteration as a value")
        for access in leaf.accesses:
            if access.array.name not in pattern.operands:
                continue
            for dimension, index in enumerate(access.index):
                _check_index(pattern, access, dimension, index)


def _check_index(pattern: IntrinsicPattern, access: Access, dimension: int, index: Expr) -> None:
    if not index.is_linear:
        raise UsageError(f"operand '{access.array.name}' must be indexed without '//' and '%'")
    if pattern.strides[access.array.name][dimension] != FREE:
        return
    depths = list(index.variables())
    others = (e for d, e in enumerate(access.index) if d != dimension)
    if len(depths) != 1 or index != var(depths[0]) or any(e.uses(depths[0]) for e in others):
        raise UsageError(
            f"operand '{access.array.name}' has a free stride in dimension {dimension}, which must be indexed by a "
            f"scope of its own"
        )


def _check_temporaries(nest: Nest) -> None:
    """Check that one plain statement writes each temporary, and that reads follow in its body and at its index."""
    for name, array in nest.arrays.items():
        if array.intent is not None:
            continue
        uses = [(leaf, a) for leaf in nest.leaves for a in leaf.accesses if a.array is array]
        writers = nest.writers[name]
        if len(writers) != 1 or writers[0].accumulate is not None:
            raise UsageError(f"temporary '{name}' must be written by one statement that does not accumulate")
        first = writers[0]
        if any(leaf.parent is not first.parent or a.index != first.output.index for leaf, a in uses):
            raise UsageError(f"temporary '{name}' must be used at one index, in the body that writes it")
        if any(leaf.order <= first.order for leaf in nest.readers[name]):
            raise UsageError(f"temporary '{name}' must be read after the statement that writes it")


def pair(pattern: Node, node: Node) -> list[tuple[Node, Node]]:
    """Pairs of nodes at equal places of two trees of the same form, parents first."""
    pairs = [(pattern, node)]
    if isinstance(pattern, Scope) and isinstance(node, Scope):
        for one, other in zip(pattern.children, node.children, strict=True):
            pairs += pair(one, other)
    return pairs


def same_form(pattern: Node, node: Node) -> bool:
    """Whether two trees have the same extents, and statements at the same places."""
    if isinstance(pattern, Leaf) or isinstance(node, Leaf):
        return isinstance(pattern, Leaf) and isinstance(node, Leaf)
    return (
        pattern.extent == node.extent
        and len(pattern.children) == len(node.children)
        and all(same_form(one, other) for one, other in zip(pattern.children, node.children, strict=True))
    )
