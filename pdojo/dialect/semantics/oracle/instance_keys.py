"""The identity of a statement instance across moves: the elements that it accesses.

The key of an instance is its statement and the tuple of all array elements and index values that it uses. Moves of
structure, mapping and storage keep keys, although they change scopes and induction variables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from pdojo.dialect.affine import Expr
from pdojo.dialect.semantics.oracle.relations import conjunction, domain, spell, union_map, unlimited
from pdojo.dialect.view.nest import Access, Constant, Index, Leaf, Nest
from pdojo.math.functions import FUNCTIONS

if TYPE_CHECKING:
    import islpy as isl

COUNTED = 200_000
"""Most instances of a statement that are enumerated to count them, if boxes do not give their number."""


@dataclass(frozen=True, eq=False)
class Keys:
    """The keys of all instances of a program; keys distinguish the instances within a group of statements."""

    nest: Nest
    groups: dict[Leaf, str]

    def accesses(self, leaf: Leaf) -> list[Expr]:
        """The numbers that make up the key of an instance."""
        found = list(leaf.output.index)
        for value in leaf.inputs:
            match value:
                case Access():
                    found += value.index
                case Index():
                    found.append(value.expression)
                case Constant():
                    pass
        return found

    def _piece(self, leaf: Leaf, space: str, target: str) -> str:
        ivs = [f"i{d}" for d in range(leaf.depth)]
        key = ", ".join(spell(e, ivs) for e in self.accesses(leaf))
        return f"{space}[{', '.join(ivs)}] -> {target}[{key}] : {conjunction(domain(leaf, ivs))}"

    @cached_property
    def writes(self) -> isl.UnionMap:
        """From the write of every instance to its key."""
        return union_map(self._piece(leaf, f"W{leaf.order}", group) for leaf, group in self.groups.items())

    @cached_property
    def reads(self) -> isl.UnionMap:
        """From every read of every instance to its key; the caller's reads at the end map to themselves."""
        pieces = [
            self._piece(leaf, f"R{leaf.order}_{k}", f"{group}_{k}")
            for leaf, group in self.groups.items()
            for k in range(len(leaf.reads))
        ]
        for array in self.nest.arrays.values():
            names = ", ".join(f"d{k}" for k in range(len(array.shape)))
            pieces.append(f"F0[{names}] -> F0[{names}]")
        return union_map(dict.fromkeys(pieces))

    def named(self, flow: isl.UnionMap) -> isl.UnionMap:
        """A relation between instances, translated to keys."""
        return flow.apply_domain(self.writes).apply_range(self.writes.union(self.reads))

    def count(self, group: str) -> int | None:
        """The number of a group's instances; None if counting is too much work."""
        total = 0
        for leaf, name in self.groups.items():
            if name == group:
                found = _count(leaf)
                if found is None:
                    return None
                total += found
        return total

    def statement(self, group: str) -> str:
        """A group, for messages."""
        leaf = next(leaf for leaf, name in self.groups.items() if name == group)
        return f"the statement that writes '{leaf.output.array.name}'"

    def describe(self, points: isl.UnionSet) -> str:
        """One key of the set, in words."""
        import islpy as isl

        point = points.sample_point()
        space = point.to_set()
        values = [str(point.get_coordinate_val(isl.dim_type.set, k)) for k in range(space.dim(isl.dim_type.set))]
        return f"{self.statement(space.get_tuple_name())} with accesses [{', '.join(values)}]"


@dataclass(frozen=True, eq=False)
class InstanceMatch:
    """The instances of two programs that have the same key."""

    before: Keys
    after: Keys

    @cached_property
    def injective(self) -> bool:
        """Whether every instance has a key of its own, in both programs."""
        return self.before.writes.is_injective() and self.after.writes.is_injective()

    def missing(self) -> str | None:
        """An instance that only one of the two programs has, in words; None if there is none."""
        before, after = self.before, self.after
        counts = [(group, before.count(group), after.count(group)) for group in sorted(set(before.groups.values()))]
        for group, one, two in counts:
            if one is not None and two is not None and one != two:
                return f"instances: {before.statement(group)} runs {one} times before the move, {two} times after"
        ways = [(before, after, "missing"), (after, before, "new")]
        if self.injective and all(one is not None and two is not None for _, one, two in counts):
            # Both programs have equally many instances, so one inclusion is enough: the one with the simpler target.
            ways = [way for way in ways if way[0] is self.finer]
        for one, two, what in ways:
            same = one.writes.apply_range(two.writes.reverse())
            lonely = one.writes.domain().subtract(same.domain())
            if not lonely.is_empty():
                return f"instances: {what} after the move: {one.describe(lonely.apply(one.writes))}"
        return None

    @cached_property
    def finer(self) -> Keys:
        """The program with more scopes; its instances determine the other's easily."""
        return max((self.after, self.before), key=lambda keys: sum(leaf.depth for leaf in keys.groups))

    def differences(self, before: isl.UnionMap, after: isl.UnionMap) -> list[tuple[isl.UnionMap, isl.UnionMap, str]]:
        """Relations of the two programs over the same instances: (one, the other, name of the program of the first)."""
        if not self.injective:
            before, after = self.before.named(before), self.after.named(after)
        elif self.finer is self.after:
            before = self._pulled_back(self.after, self.before, before)
        else:
            after = self._pulled_back(self.before, self.after, after)
        return [(before, after, "before"), (after, before, "after")]

    def _pulled_back(self, to: Keys, of: Keys, flow: isl.UnionMap) -> isl.UnionMap:
        """A flow of one program, as a relation between instances of the other."""
        writes = to.writes.apply_range(of.writes.reverse())
        reads = to.reads.apply_range(of.reads.reverse())
        return writes.apply_range(flow).apply_range(writes.union(reads).reverse())


def _count(leaf: Leaf) -> int | None:
    box = prod(leaf.extents)
    if not leaf.guards:
        return box
    if box > COUNTED:
        return None
    names = [f"i{d}" for d in range(leaf.depth)]
    import islpy as isl

    text = f"{{ [{', '.join(names)}] : {conjunction(domain(leaf, names))} }}"
    # isl returns nothing if its operations do not suffice for counting.
    with unlimited() as context:
        return isl.Set.read_from_str(context, text).count_val().to_python()


def keys_of(before: Nest, after: Nest) -> tuple[Keys, Keys] | None:
    """The keys of two programs; None if their statements or layouts differ.

    Statements are distinguished by their identifiers if both programs have the same ones; otherwise only by their
    computations, for example after a peeled scope duplicated its statements.
    """
    if _layout(before) != _layout(after):
        return None
    for name in (_identity, _signature):
        known = {leaf: name(leaf) for nest in (before, after) for leaf in nest.leaves}
        numbers = {signature: f"K{k}" for k, signature in enumerate(dict.fromkeys(known.values()))}
        left, right = ({leaf: numbers[known[leaf]] for leaf in nest.leaves} for nest in (before, after))
        if set(left.values()) == set(right.values()):
            return Keys(before, left), Keys(after, right)
    return None


def _layout(nest: Nest) -> Counter[Hashable]:
    return Counter((array.name, array.dtype, array.shape) for array in nest.arrays.values())


def _identity(leaf: Leaf) -> Hashable:
    return leaf.id, _signature(leaf)


def _signature(leaf: Leaf) -> Hashable:
    """A statement's computation, without the places that it accesses."""
    inputs = tuple(
        value.array.name if isinstance(value, Access) else (type(value).__name__, value.dtype, _constant(value))
        for value in leaf.inputs
    )
    function = leaf.function and FUNCTIONS[leaf.function].denotes
    return leaf.output.array.name, function, leaf.accumulate, leaf.contracted, inputs


def _constant(value: Constant | Index) -> str:
    return repr(value.value) if isinstance(value, Constant) else ""
