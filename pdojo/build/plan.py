"""The nests of a kernel: which definitions become arrays, which nests write them, and in which order.

Every definition that an output needs becomes an array, with these exceptions. A product that only a sum takes, element
by element, is computed in the nest of the sum, where a move can contract both. An array that is only copied somewhere
is written there. An array whose last use is an update of every element is updated in place. Long sums are in levels
(`levels.py`), and the nests of their terms run over the parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from pdojo.build.axes import in_order_of_readers, split_alike
from pdojo.build.graph import (
    Computed,
    Definition,
    Indices,
    Operand,
    Read,
    Write,
    entries_in,
    expressions,
    identity,
    reads,
    within,
)
from pdojo.build.levels import in_levels
from pdojo.build.sizes import greatest
from pdojo.build.straight import by_source, straight
from pdojo.math.functions import FUNCTIONS, Signature


@dataclass(frozen=True)
class Plan:
    """The nests of a kernel."""

    writes: dict[Definition, tuple[Write, ...]]
    """Nests, keyed by the array that they write, in the order of execution."""
    hosts: dict[Definition, Definition]
    """Arrays updated in place, and the earlier arrays in whose memory they live."""


def plan(outputs: Collection[Definition]) -> Plan:
    """The nests that write the outputs, and the arrays that these need."""
    order = _constants_first(needed(outputs))
    writes = {each: each.writes for each in order if not each.is_input}
    _take_products_inside(writes, outputs)
    for each, nests in writes.items():
        writes[each] = tuple(straight(nest) for nest in nests if 0 not in nest.extents[: nest.outer])
    writes, of_parts = in_levels(writes)
    for each in of_parts:
        writes[each] = tuple(map(straight, writes[each]))
    _write_where_copied(writes, outputs)
    writes = in_order_of_readers(split_alike(writes, outputs, of_parts), outputs)
    return Plan(writes, _hosts(writes, outputs))


def needed(outputs: Iterable[Definition]) -> list[Definition]:
    """The outputs and all definitions that they need, in the order of creation."""
    found: set[Definition] = set()
    waiting = list(outputs)
    while waiting:
        if (each := waiting.pop()) not in found:
            found.add(each)
            waiting += [read.definition for write in each.writes if 0 not in write.extents for read in write.reads()]
    return sorted(found, key=lambda each: each.serial)


def index_ranges(outputs: Sequence[Operand]) -> dict[Definition, list[Indices]]:
    """The inputs whose elements are indices in what outputs need, each with its ranges in the order of their use."""
    made = needed(read.definition for output in outputs for read in reads(output))
    nests = [write for each in made for write in each.writes if 0 not in write.extents]
    shown = [*(e for nest in nests for e in expressions(nest)), *(e for output in outputs for e in within(output))]
    found: dict[Definition, list[Indices]] = {}
    for table in dict.fromkeys(table for table, _ in entries_in(shown)):
        found.setdefault(table.definition, []).append(table)
    return found


def _constants_first(order: Sequence[Definition]) -> list[Definition]:
    """The definitions that depend on constant inputs or numbers only, then the others: nests to join are neighbours."""
    constant: set[Definition] = set()
    for each in order:
        read = [read.definition for write in each.writes for read in write.reads()]
        is_known = not each.is_input and constant.issuperset(read) and (read or each.shape == ())
        if each.constant or is_known:
            constant.add(each)
    return sorted(order, key=lambda each: each not in constant)


def _uses(writes: dict[Definition, tuple[Write, ...]]) -> Counter[Definition]:
    """The number of reads of each definition."""
    return Counter(read.definition for nests in writes.values() for nest in nests for read in nest.reads())


def _take_products_inside(writes: dict[Definition, tuple[Write, ...]], outputs: Collection[Definition]) -> None:
    """Compute `x * y` in the nest of its only use, the first operand of a sum of the same shape."""
    uses = _uses(writes)
    for each, nests in tuple(writes.items()):
        match nests:
            case (Write(extents, _, Computed("arith.addf", (Read(product, index), other), dtype), (), None) as write,):
                match writes.get(product):
                    case (Write(_, _, Computed("arith.mulf") as value, (), None),) if (
                        uses[product] == 1 and product not in outputs and index == identity(extents) == write.target
                    ):
                        writes[each] = (replace(write, value=Computed("arith.addf", (value, other), dtype)),)
                        del writes[product]
                    case _:
                        pass
            case _:
                pass


def _write_where_copied(writes: dict[Definition, tuple[Write, ...]], outputs: Collection[Definition]) -> None:
    """Write an array to the destination of its copy, if a copy of all elements is its only use."""
    uses = _uses(writes)
    for each in tuple(writes):
        nests: list[Write] = []
        for copy in writes[each]:
            source = copy.value.definition if copy.is_copy and isinstance(copy.value, Read) else None
            if (
                source not in writes
                or source in outputs
                or uses[source] > 1
                or any(nest.loop is not copy.loop or _reads(nest, each) for nest in writes[source])
            ):
                nests.append(copy)
                continue
            whole = by_source(copy)
            if whole is None:
                nests.append(copy)
                continue
            nests += [straight(_redirected(nest, whole)) for nest in writes.pop(source)]
        writes[each] = tuple(nests)


def _reads(nest: Write, definition: Definition) -> bool:
    return any(read.definition is definition for read in nest.reads())


def _redirected(nest: Write, copy: Write) -> Write:
    """A nest that writes where `copy`, whose iterations are the elements of the nest's array, copies to."""
    replacements = dict(enumerate(nest.target))
    box = greatest(nest.extents)
    return replace(nest, target=tuple(e.substitute(replacements, box) for e in copy.target))


def _hosts(
    writes: dict[Definition, tuple[Write, ...]], outputs: Collection[Definition]
) -> dict[Definition, Definition]:
    """The arrays that live in the memory of others: `e = exp(e)`.

    The results of casts are kept as they are. An output is finished in place if it begins as a reduction.
    """
    uses, hosts = _uses(writes), dict[Definition, Definition]()
    for each, nests in writes.items():
        match nests:
            case (Write(_, target, Computed(_, (Read(first, index), *_)) as value, _, None),):
                own = [read for read in reads(value) if read.definition is first]
                if (
                    first in writes
                    and first not in outputs
                    and not any(_is_cast(nest.value) for nest in writes[first])
                    and (first.shape, first.dtype) == (each.shape, each.dtype)
                    and len(own) == uses[first]
                    and all(read.index == target == index for read in own)
                ):
                    if each not in outputs:
                        hosts[each] = hosts.get(first, first)
                    elif any(nest.reduction is not None for nest in writes[first]):
                        hosts[first] = each
            case _:
                pass
    return hosts


def _is_cast(value: Operand) -> bool:
    return isinstance(value, Computed) and FUNCTIONS[value.function].signature is Signature.CAST
