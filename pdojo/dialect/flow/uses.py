"""The uses of memory: accesses of statements, with the iterations and places that a question assumes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, replace

from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.flow.collision import Domain
from pdojo.dialect.view.messages import describe_access
from pdojo.dialect.view.nest import Access, Array, Buffer, Leaf, Nest, Scope
from pdojo.dialect.view.storage import accesses_of, cell_of, copy_depths


@dataclass(frozen=True, slots=True)
class Use:
    """One access of a statement: its kind, its element and its place."""

    leaf: Leaf
    access: Access
    chain: tuple[Scope, ...]
    """The enclosing scopes, under the mappings that the question assumes."""
    domain: Domain
    """The iterations of the statement."""
    cell: tuple[Expr, ...]
    """The place in `memory`: an element's index or a cell."""
    memory: Array | Buffer
    """Equal cells of one memory are one place. In an array, every element has a place of its own."""

    @property
    def writes(self) -> bool:
        """Whether the access writes."""
        return self.access is self.leaf.output

    @property
    def reads(self) -> bool:
        """Whether the access reads: an input, or an accumulation."""
        return not self.writes or self.leaf.accumulate is not None

    @property
    def buffer(self) -> Buffer:
        """The buffer that is, or holds, the memory."""
        return self.memory.buffer if isinstance(self.memory, Array) else self.memory

    @property
    def commutes_with(self) -> tuple[str, str] | None:
        """The array and function of an accumulation; two uses with an equal pair commute on one element."""
        if self.writes and self.leaf.accumulate is not None:
            return self.access.array.name, self.leaf.accumulate
        return None

    def of_element(self) -> Use:
        """The use with a place of its own for every element: the meaning of the program."""
        return replace(self, cell=self.access.index, memory=self.access.array)


class UsesOnDemand(MappingABC[Leaf, tuple[Use, ...]]):
    """The uses of statements, computed on first access, because a question needs few of them."""

    def __init__(self, leaves: Sequence[Leaf], decide: Callable[[Leaf], tuple[Use, ...]]) -> None:
        self._leaves, self._decide = leaves, decide
        self._known: dict[Leaf, tuple[Use, ...]] = {}

    def __getitem__(self, leaf: Leaf) -> tuple[Use, ...]:
        found = self._known.get(leaf)
        if found is None:
            found = self._known[leaf] = self._decide(leaf)
        return found

    def __iter__(self) -> Iterator[Leaf]:
        return iter(self._leaves)

    def __len__(self) -> int:
        return len(self._leaves)


def uses_of(
    nest: Nest, name: str, reuse: Sequence[int], mappings: MappingABC[Scope, Mapping] | None = None
) -> list[Use]:
    """All accesses to the buffer of array `name`, as if it had slots `reuse` and some scopes had other mappings."""
    return uses_together(nest, [nest.arrays[name].buffer], reuse, mappings)


def uses_together(
    nest: Nest, buffers: Sequence[Buffer], reuse: Sequence[int], mappings: MappingABC[Scope, Mapping] | None = None
) -> list[Use]:
    """All accesses to some buffers, as if these were one: the last one, with `reuse` as its slots.

    `mappings` are other mappings of some scopes.
    """
    users = {leaf for buffer in buffers for leaf, _ in accesses_of(nest, buffer)}
    placed = [
        (leaf, access, remapped_chain(leaf, mappings))
        for leaf in sorted(users, key=lambda leaf: leaf.order)
        for access in leaf.accesses
        if access.array.buffer in buffers
    ]
    copies = copy_depths([(access, chain) for _, access, chain in placed], reuse)
    return [
        Use(leaf, access, chain, domain_of(leaf), cell_of(access, chain, reuse, copies), buffers[-1])
        for leaf, access, chain in placed
    ]


def domain_of(leaf: Leaf) -> Domain:
    """The iterations of a statement."""
    return Domain(leaf.extents, leaf.guards)


def remapped_chain(leaf: Leaf, mappings: MappingABC[Scope, Mapping] | None) -> tuple[Scope, ...]:
    """The scopes around a statement, some with other mappings."""
    if not mappings:
        return leaf.chain
    return tuple(replace(s, mapping=mappings[s]) if s in mappings else s for s in leaf.chain)


def describe_use(use: Use, iteration: Sequence[int]) -> str:
    """`t[{0}] at iteration (3)` for messages."""
    return f"{describe_access(use.access)} at iteration ({', '.join(map(str, iteration))})"
